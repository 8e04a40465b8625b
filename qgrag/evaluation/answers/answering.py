"""Write answers to what retrievers found and measure them: the second stage of a run, resumable by question."""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import Any, Protocol

from qgrag.errors import InputError
from qgrag.evaluation.answers.judgements import Judge, compare_all, is_about, judge_all, pair_name
from qgrag.evaluation.answers.metrics import Language, Meteor, answer_metrics, check_language
from qgrag.evaluation.answers.summary import AnswerSummary, summarise_answers
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets.records import Dataset, Question
from qgrag.evaluation.runs.results_table import write_results_table
from qgrag.evaluation.runs.run_folder import (
    ANSWERS_PATTERN,
    COMPARISONS_PATTERN,
    RESULTS_PATTERN,
    VERDICTS_PATTERN,
    RunFolder,
    complete_records,
    open_run,
    write_json,
)
from qgrag.generation.answers import Answer
from qgrag.generation.context import reader_views
from qgrag.generation.pairwise import Comparison
from qgrag.retrieval.base import Reads
from qgrag.retrieval.evidence.base import Evidence
from qgrag.retrieval.evidence.reading import evidence_from_dict, item_from_dict
from qgrag.retrieval.results import Hit, RetrievalResult

logger = logging.getLogger(__name__)
ANSWER_SETTINGS_FILE = "answers-run.json"
VERDICT_SETTINGS_FILE = "verdicts-run.json"
COMPARISON_SETTINGS_FILE = "comparisons-run.json"
ANSWER_SUMMARY_FILE = "answers.json"


class Writer(Protocol):
    """What answering needs: `qgrag.generation.answers.AnswerWriter`, or the local one."""

    def __call__(self, results: Sequence[RetrievalResult]) -> list[Answer]: ...

    def without_evidence(self, queries: Sequence[str]) -> list[Answer]: ...


class PairJudge(Protocol):
    """`qgrag.generation.pairwise.PairwiseJudge`."""

    def __call__(self, queries: Sequence[str], first: Sequence[str], second: Sequence[str]) -> list[Comparison]: ...


@dataclass(frozen=True)
class Measures:
    """What is measured of answers.

    Args:
        language: of questions and answers.
        judge: says whether each answer is correct; None leaves that out.
        meteor: see `qgrag.evaluation.answers.metrics.load_meteor`, for English alone; None leaves METEOR out.
        pair_judge: compares the answers of two retrievers; None leaves that out.
        compare_with: the retriever that every other one is compared with by `pair_judge`.
    """

    language: Language = "en"
    judge: Judge | None = None
    meteor: Meteor | None = None
    pair_judge: PairJudge | None = None
    compare_with: str = ""

    def __post_init__(self) -> None:
        if self.meteor is not None and self.language != "en":
            raise InputError(f"METEOR knows English words alone, but the answers' language is {self.language!r}")


@dataclass(frozen=True)
class AnswerRun:
    """How the answers of a run are made, apart from who writes them.

    Args:
        batch: number of questions per call of the writer or a judge. Each batch is on disk before the next one begins.
        config: settings of the writer, JSON-serialisable. They are recorded, and compared when a run is continued.
        bootstrap: how intervals are drawn.
        judge_config: settings of the judge, likewise. A judge may join a run whose answers are already written.
    """

    batch: int = 16
    config: Mapping[str, Any] = field(default_factory=dict)
    bootstrap: BootstrapConfig = field(default_factory=BootstrapConfig)
    judge_config: Mapping[str, Any] = field(default_factory=dict)


def run_answers(
    dataset: Dataset, retrievers: Sequence[str], out: Path, write: Writer, measures: Measures, run: AnswerRun
) -> AnswerSummary:
    """Answer every question from what each retriever found, as `run_evaluation` left it in `out`, and measure.

    The reader of each method sees what the method gives it (`Retriever.reads`). Where that is nothing, it answers from
    what it knows. Results are on disk after each batch. The same call continues where the last one ended, asks for
    failed answers and verdicts again, and may bring further retrievers and measures. A call with other settings of the
    writer or of the judge is refused.

    `out` then also holds `answers.json` (`AnswerSummary.to_dict()`) and `answers-RETRIEVER.jsonl` (one line per
    question: answer, citations, usage). A judge adds `verdicts-RETRIEVER.jsonl`, a pair judge
    `comparisons-A-vs-B.jsonl`. `results.parquet` gets the answer of each row and its metrics.

    Raises:
        InputError: results of a retriever are missing in `out`; `out` holds answers that were made with other settings;
            `compare_with` is not among `retrievers`; or the references are not in the language of the measures.
        LLMUnavailableError: the model cannot be used at all. What was written until then is kept.
    """
    if run.batch < 1:
        raise InputError(f"batch has to be at least 1, not {run.batch}")
    check_language(dataset.questions, measures.language)
    if measures.pair_judge is not None and measures.compare_with not in retrievers:
        raise InputError(
            f"there are no answers of {measures.compare_with!r} to compare with; known are {', '.join(retrievers)}"
        )
    ids = [question.id for question in dataset.questions]
    joined: dict[str, Any] = {"retrievers": {name: {} for name in retrievers}}
    with open_run(out) as folder:
        settings = folder.settle({"config": dict(run.config), **joined}, ANSWER_SETTINGS_FILE)
        for name in retrievers:
            _answer_all(name, dataset, folder, write, run.batch)
        answers = _whole(folder, settings["retrievers"], ids, ANSWERS_PATTERN)
        judged: dict[str, Any] = {"config": dict(run.judge_config), "retrievers": {name: {} for name in answers}}
        if measures.judge is not None:
            folder.settle(judged, VERDICT_SETTINGS_FILE)
            for name, records in answers.items():
                judge_all(name, dataset, records, measures.judge, folder, run.batch)
        verdicts = {
            name: records
            for name, records in _whole(folder, answers, ids, VERDICTS_PATTERN).items()
            if all(is_about(record, a["answer"]) for record, a in zip(records, answers[name], strict=True))
        }
        if measures.pair_judge is not None:
            folder.settle(judged, COMPARISON_SETTINGS_FILE)
            compare_all(dataset, answers, measures.compare_with, measures.pair_judge, folder, run.batch)
        pairs = {pair_name(first, second): (first, second) for first, second in permutations(answers, 2)}
        comparisons = {
            name: records
            for name, records in _whole(folder, pairs, ids, COMPARISONS_PATTERN).items()
            if all(
                is_about(record, a["answer"], b["answer"])
                for record, a, b in zip(records, *(answers[side] for side in pairs[name]), strict=True)
            )
        }
        judged_all = verdicts.keys() == answers.keys()
        if verdicts and not judged_all:
            lacking = ", ".join(name for name in answers if name not in verdicts)
            logger.warning("verdicts are left out, since answers of %s have none yet: name the judge again", lacking)
        measured = {
            name: _measured(dataset.questions, records, verdicts[name] if judged_all else None, measures)
            for name, records in answers.items()
        }
        settings |= {
            "language": measures.language,
            "verdicts": folder.recorded(VERDICT_SETTINGS_FILE).get("config") if judged_all else None,
            "comparisons": folder.recorded(COMPARISON_SETTINGS_FILE).get("config") if comparisons else None,
        }
        summary = summarise_answers(dataset.questions, measured, comparisons, settings, run.bootstrap)
        write_json(out / ANSWER_SUMMARY_FILE, summary.to_dict())
        write_results_table(_whole(folder, folder.recorded()["retrievers"], ids), out / "results.parquet", measured)
    return summary


def _whole(
    folder: RunFolder, names: Iterable[str], ids: Sequence[str], pattern: str = RESULTS_PATTERN
) -> dict[str, list[dict[str, Any]]]:
    """The records of each of the names that has one of every question."""
    found = {name: folder.results(name, ids, pattern) for name in names}
    return {name: records for name, records in found.items() if len(records) == len(ids)}


def _answer_all(name: str, dataset: Dataset, folder: RunFolder, write: Writer, batch: int) -> None:
    """Write answers for every question that has none yet, or a failed one."""
    ids = [question.id for question in dataset.questions]
    records = folder.results(name, ids)
    if len(records) < len(ids):
        raise InputError(
            f"{folder.path}: holds results of {name!r} for {len(records)} of {len(ids)} questions; "
            "evaluate its retrieval first"
        )
    texts = {document.id: document.text for document in dataset.documents}

    def answered(positions: Sequence[int]) -> list[dict[str, Any]]:
        results = [restored(records[i], texts) for i in positions]
        began = time.perf_counter()
        answers = _write(results, records[positions[0]]["reads"], write)
        folder.append_timing("answer", time.perf_counter() - began, retriever=name, questions=len(results))
        return [_record(ids[i], answer) for i, answer in zip(positions, answers, strict=True)]

    complete_records(
        folder,
        name,
        ANSWERS_PATTERN,
        ids,
        answered,
        lambda _, record: bool(record["error"]),
        batch=batch,
        title=f"Answering from {name}",
    )


def _record(id_: str, answer: Answer) -> dict[str, Any]:
    plain = answer.to_dict()
    return {
        "id": id_,
        "answer": answer.text,
        **{key: plain[key] for key in ("answered", "truncated", "error", "citations", "invented_citations", "usage")},
    }


def restored(record: Mapping[str, Any], texts: Mapping[str, str]) -> RetrievalResult:
    """The retrieval result of a run's record, with the passages cut from the documents again."""
    hits = tuple(
        Hit(
            **{
                **hit,
                "document_ids": tuple(hit["document_ids"]),
                "evidence": tuple(map(item_from_dict, hit["evidence"])),
                "text": texts[hit["document_id"]][hit["start"] : hit["end"]],
            }
        )
        for hit in record["hits"]
    )
    evidence = evidence_from_dict(record["evidence"])
    return RetrievalResult(record["question"], record["retriever"], hits, evidence, record["usage"])


def _write(results: Sequence[RetrievalResult], reads: Reads, write: Writer) -> list[Answer]:
    """Answers from what the method gives its reader; where that is nothing, from what the reader knows."""
    if reads == "views":
        shown = [replace(result, hits=()) for result in results]
    else:
        shown = [replace(result, evidence=Evidence()) for result in results]
    told = [
        i for i, result in enumerate(shown) if reads != "nothing" and (result.hits or reader_views(result.evidence))
    ]
    alone = [i for i in range(len(results)) if i not in set(told)]
    answers: dict[int, Answer] = {}
    if told:
        answers |= zip(told, write([shown[i] for i in told]), strict=True)
    if alone:
        answers |= zip(alone, write.without_evidence([results[i].query for i in alone]), strict=True)
        answers |= {i: replace(answers[i], usage={**results[i].usage, **answers[i].usage}) for i in alone}
    return [answers[i] for i in range(len(results))]


def _measured(
    questions: Sequence[Question],
    answers: Sequence[Mapping[str, Any]],
    verdicts: Sequence[Mapping[str, Any]] | None,
    measures: Measures,
) -> list[dict[str, Any]]:
    """The records with `metrics`: 0 for an answer that failed, None for a question without reference.

    `judge` is None where the judge failed.
    """
    records = []
    for number, (question, answer) in enumerate(zip(questions, answers, strict=True)):
        metrics: dict[str, float | None] | None = None
        if question.answers:
            metrics = {**answer_metrics(answer["answer"], question.answers, measures.language)}
            if measures.meteor is not None:
                metrics["meteor"] = measures.meteor(answer["answer"], question.answers)
            if answer["error"]:
                metrics = dict.fromkeys(metrics, 0.0)
            if verdicts is not None:
                correct = verdicts[number]["correct"]
                metrics["judge"] = None if correct is None else float(correct)
        records.append({**answer, "metrics": metrics})
    return records
