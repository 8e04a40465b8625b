"""Run retrievers over a data set: resumable by question, measured, with figures that repeat."""

import logging
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from qgrag.errors import InputError
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets.records import Dataset, Question
from qgrag.evaluation.metrics import DEFAULT_KS, check_ks, retrieval_metrics
from qgrag.evaluation.plots import plot_recall
from qgrag.evaluation.runs.report import summary_markdown
from qgrag.evaluation.runs.results_table import write_results_table
from qgrag.evaluation.runs.run_folder import SUMMARY_FILE, RunFolder, open_run, write_json
from qgrag.evaluation.runs.summary import OVERALL, Summary, groups, summarise
from qgrag.progress import progress
from qgrag.retrieval.base import Reads
from qgrag.retrieval.results import RetrievalResult

logger = logging.getLogger(__name__)
IMPLAUSIBLY_LOW_RECALL = 0.05
FORMAT_VERSION = 2


class BatchRetriever(Protocol):
    """What the harness needs of a retriever; every `qgrag.retrieval.base.Retriever` is one."""

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[RetrievalResult]:
        """One result a query, in order, of at most `top_k` hits each."""


def settings_of(retriever: Any) -> dict[str, Any]:
    """What a run records of a retriever: registered name, configuration, and the steps that a language model takes."""
    config = getattr(retriever, "config", None)
    steps = getattr(retriever, "llm_steps", ())
    return {
        "retriever": retriever.name,
        **(asdict(config) if config is not None else {}),
        **({"llm_steps": list(steps)} if steps else {}),
    }


def dataset_settings(dataset: Dataset) -> dict[str, Any]:
    """What a run records of its data set: name, number of questions, and files with their checksums."""
    return {"name": dataset.name, "questions": len(dataset.questions), "files": dict(dataset.files)}


def run_evaluation(
    dataset: Dataset,
    retrievers: Mapping[str, BatchRetriever],
    out: Path,
    *,
    ks: Sequence[int] = DEFAULT_KS,
    batch: int = 64,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
    retriever_configs: Mapping[str, Mapping[str, Any]] | None = None,
    stage_seconds: Mapping[str, float] | None = None,
    bootstrap: BootstrapConfig | None = None,
    plot: bool = True,
) -> Summary:
    """Ask every retriever every question and write what came of it to `out`.

    Results are on disk after each batch. The same call over the same folder continues where the last one ended, and may
    bring further retrievers. A call with other settings is refused, so that no run overwrites another.

    `out` then holds `summary.json` (`Summary.to_dict()`), `results-RETRIEVER.jsonl` (one line per question: metrics,
    hits with their spans and evidence), `results.parquet` (the same as one table without the evidence), `table.md` (the
    main figures with their intervals), `recall.png`, `run.json` (the settings) and `timings.jsonl`.

    Args:
        dataset: documents and questions; the retrievers' index has to be built from these documents.
        retrievers: by name; the names make file names.
        out: folder of the run, made if need be.
        ks: cut-offs of the metrics; the largest is the number of hits asked for.
        batch: number of questions per call of a retriever. Each batch is on disk before the next one begins. The first
            question is asked alone.
        seed: of the bootstrap's draws; takes the place of `bootstrap.seed`.
        config: further settings of the whole run, JSON-serialisable. They are recorded, and compared when a run is
            continued.
        retriever_configs: settings of each retriever, likewise.
        stage_seconds: seconds that earlier stages took (reading, indexing), recorded with the timings.
        bootstrap: number of draws and confidence of the intervals.
        plot: whether `recall.png` is drawn.

    Raises:
        InputError: an argument is out of range, `out` holds another run or is being written to, or a
            retriever returns documents that the data set lacks.
    """
    ks = check_ks(ks)
    if batch < 1:
        raise InputError(f"batch has to be at least 1, not {batch}")
    if not retrievers:
        raise InputError("there is no retriever to evaluate; name at least one")
    groups(dataset.questions)
    bootstrap = bootstrap or BootstrapConfig()
    bootstrap = BootstrapConfig(bootstrap.resamples, bootstrap.confidence, seed)
    configs = retriever_configs or {}
    settings: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "dataset": dataset_settings(dataset),
        "ks": list(ks),
        "seed": seed,
        "bootstrap": {"resamples": bootstrap.resamples, "confidence": bootstrap.confidence},
        "config": dict(config or {}),
        "retrievers": {name: dict(configs.get(name, {})) for name in retrievers},
    }
    with open_run(out) as folder:
        settings = folder.settle(settings)
        for stage, seconds in (stage_seconds or {}).items():
            folder.append_timing(stage, seconds)
        for name, retriever in retrievers.items():
            _ask_all(name, retriever, dataset, folder, ks, batch)
        ids = [question.id for question in dataset.questions]
        results = {name: folder.results(name, ids) for name in settings["retrievers"]}
        results = {name: records for name, records in results.items() if len(records) == len(ids)}
        summary = summarise(dataset.questions, results, folder.timings(), settings, dataset.problems, bootstrap)
        write_json(out / SUMMARY_FILE, summary.to_dict())
        write_results_table(results, out / "results.parquet")
        (out / "table.md").write_text(summary_markdown(summary), encoding="utf-8")
        if plot and any(summary.retrievers.values()):
            plot_recall(summary, out / "recall.png")
    finds = [name for name, retriever in retrievers.items() if _reads(retriever) != "nothing"]
    _warn_of_low_recall(summary, finds, ks[-1])
    return summary


def _ask_all(
    name: str, retriever: BatchRetriever, dataset: Dataset, folder: RunFolder, ks: Sequence[int], batch: int
) -> None:
    """Append results for every question that has none yet.

    The first question is asked alone and timed as a stage of its own, because models are loaded for it, and the
    retriever prepares what it needs once.
    """
    done = len(folder.results(name, [question.id for question in dataset.questions]))
    known = {document.id for document in dataset.documents}
    left = dataset.questions[done:]
    if done:
        logger.info("%s: %d of %d questions were done before", name, done, len(dataset.questions))
    with progress(f"Evaluating {name}", len(left)) as bar:
        for start in (0, *range(1, len(left), batch)) if left else ():
            questions = left[start : start + batch] if start else left[:1]
            began = time.perf_counter()
            answers = retriever.retrieve([question.text for question in questions], top_k=ks[-1])
            retrieved = time.perf_counter()
            if len(answers) != len(questions):
                raise InputError(f"retriever {name!r} returned {len(answers)} results for {len(questions)} questions")
            records = [
                _record(name, question, answer, known, ks) | {"reads": _reads(retriever)}
                for question, answer in zip(questions, answers)
            ]
            measured = time.perf_counter()
            folder.append_results(name, records)
            labels = {"retriever": name, "questions": len(questions)}
            folder.append_timing("retrieve" if start else "first", retrieved - began, **labels)
            folder.append_timing("measure", measured - retrieved, **labels)
            bar.advance(len(questions))


def _record(
    name: str, question: Question, result: RetrievalResult, known: AbstractSet[str], ks: Sequence[int]
) -> dict[str, Any]:
    for hit in result.hits:
        if known.isdisjoint(hit.document_ids):
            raise InputError(
                f"retriever {name!r} returned document {hit.document_id!r}, which the data set lacks; "
                "build the index from this data set's documents"
            )
    ranking = [hit.document_ids for hit in result.hits]
    answer = result.to_dict()
    for hit in answer["hits"]:
        del hit["text"]
    return {
        "id": question.id,
        "question": question.text,
        "type": question.type,
        "retriever": result.retriever,
        "gold": question.gold,
        **({"groups": question.groups} if question.groups else {}),
        "answers": question.answers,
        "metrics": retrieval_metrics(ranking, question.evidence, ks) if question.gold else None,
        "hits": answer["hits"],
        "evidence": answer["evidence"],
        "usage": answer["usage"],
    }


def _reads(retriever: Any) -> Reads:
    reads: Reads = getattr(retriever, "reads", "passages")
    return reads


def _warn_of_low_recall(summary: Summary, names: Sequence[str], k: int) -> None:
    for name in names:
        figures = summary.retrievers[name]
        recall = figures[OVERALL][f"recall@{k}"] if OVERALL in figures else 1.0
        if recall < IMPLAUSIBLY_LOW_RECALL:
            logger.warning(
                "%s finds %.3f of the evidence among its first %d hits, implausibly little: check that the "
                "index holds this corpus in its language and that the thresholds suit the embedding model",
                name,
                recall,
                k,
            )
