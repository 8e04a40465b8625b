"""An experiment: retrievers over one data set and its index, and answers from what they find."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from qgrag.config import unknown_name
from qgrag.errors import ConfigError, InputError
from qgrag.evaluation.answers.answering import AnswerRun, Measures, Writer, run_answers
from qgrag.evaluation.answers.judgements import NO_REFERENCE, pair_name
from qgrag.evaluation.answers.metrics import Language, check_language, load_meteor
from qgrag.evaluation.answers.summary import AnswerSummary
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets.records import Dataset
from qgrag.evaluation.datasets.sources import DataSource
from qgrag.evaluation.metrics import DEFAULT_KS
from qgrag.evaluation.plots import plot_sets
from qgrag.evaluation.runs.harness import dataset_settings, run_evaluation, settings_of
from qgrag.evaluation.runs.report import sets_markdown
from qgrag.evaluation.runs.run_folder import (
    ANSWERS_PATTERN,
    COMPARISONS_PATTERN,
    VERDICTS_PATTERN,
    RunFolder,
    write_json,
)
from qgrag.evaluation.runs.sets import SetsSummary, shown_metrics, summarise_sets
from qgrag.evaluation.runs.summary import Summary
from qgrag.generation.answers import AnswerConfig, AnswerWriter
from qgrag.generation.correctness import CorrectnessJudge
from qgrag.generation.pairwise import PairwiseJudge
from qgrag.index.config import IndexConfig
from qgrag.index.documents import DocumentSet, compare
from qgrag.index.reader import Index
from qgrag.llm.model import LanguageModel, model_settings
from qgrag.llm.prompts import PromptConfig, Prompts
from qgrag.retrieval.base import Retriever
from qgrag.retrieval.registry import load_retriever, retriever_settings


@dataclass(frozen=True)
class AnswerPlan:
    """How questions are answered, and how answers are measured.

    Args:
        reader: who answers: a language model, or rules (`local`).
        config: what the reader gets and writes.
        language: of questions and answers.
        compare: the retriever whose answers are compared with those of each other one; empty judges each answer alone.
        meteor: whether METEOR is measured too.
        batch: number of questions that are answered together.
    """

    reader: Literal["llm", "local"] = "llm"
    config: AnswerConfig = field(default_factory=AnswerConfig)
    language: Language = "en"
    compare: str = ""
    meteor: bool = False
    batch: int = 16


@dataclass(frozen=True)
class Experiment:
    """What is measured, whatever the data.

    Args:
        retrievers: names, or YAML files, whose row in the tables is the file's name without its ending.
        ks: cut-offs of the metrics.
        batch: number of questions that are scored together.
        seed: of the bootstrap intervals.
        index_config: how an index is built where none is named; None for the defaults.
        device: of embedding and scoring.
        llm_steps: whether a language model takes the steps of retrieval.
        answers: None measures retrieval alone.

    Raises:
        ConfigError: a retriever is unknown, or values do not go together.
        InputError: two retrievers would have the same row.
    """

    retrievers: tuple[str, ...]
    ks: tuple[int, ...] = DEFAULT_KS
    batch: int = 64
    seed: int = 0
    index_config: IndexConfig | None = None
    device: str = "auto"
    llm_steps: bool = False
    answers: AnswerPlan | None = None

    def __post_init__(self) -> None:
        rows = row_names(self.retrievers)
        for name in self.retrievers:
            retriever_settings(name)
        if self.answers is None:
            return
        if self.answers.compare and self.answers.compare not in rows:
            raise ConfigError(unknown_name("--compare", self.answers.compare, rows))
        passages = self.answers.config.max_passages
        if passages > max(self.ks):
            raise ConfigError(
                f"--passages {passages} is more than the {max(self.ks)} hits that a question keeps; "
                f"extend the cut-offs: --ks '{[*self.ks, passages]}'"
            )

    @property
    def asks_model(self) -> bool:
        """Whether a language model has to be there."""
        return self.llm_steps or (self.answers is not None and self.answers.reader == "llm")

    def check(self, dataset: Dataset) -> None:
        """Raise what can be known to be wrong before anything is computed.

        Raises:
            InputError: the references are not in the language of the answers, or METEOR is asked for in that language.
            MissingExtraError: METEOR is asked for, and NLTK is not installed.
            MissingComponentError: METEOR is asked for, and WordNet is not there.
        """
        if self.answers is not None:
            check_language(dataset.questions, self.answers.language)
            Measures(self.answers.language, meteor=load_meteor() if self.answers.meteor else None)


@dataclass(frozen=True)
class Models:
    """The language models of an experiment.

    Args:
        reader: answers, and takes the steps of retrieval; None where nothing asks it.
        judge: judges answers; None where nothing is judged.
        prompts: of both.
    """

    reader: LanguageModel | None = None
    judge: LanguageModel | None = None
    prompts: Prompts = field(default_factory=Prompts)


def row_names(retrievers: Sequence[str]) -> list[str]:
    """The row that each retriever has in the tables.

    Raises:
        InputError: two of them have the same row.
    """
    rows: list[str] = []
    for name in retrievers:
        row = Path(name).stem if name.endswith((".yaml", ".yml")) else name
        if row in rows:
            raise InputError(f"--retrievers names {row!r} twice; rename one of the files")
        rows.append(row)
    return rows


def evaluate_retrieval(
    experiment: Experiment,
    source: DataSource,
    dataset: Dataset,
    out: Path,
    models: Models,
    *,
    reading_seconds: float = 0.0,
) -> tuple[Index, Summary]:
    """Open or build the index, and run every retriever over the questions; resumable by question.

    Args:
        experiment: what is measured.
        source: that `dataset` was loaded from.
        dataset: documents and questions.
        out: folder of the run; an index that is built lies in `out/index`.
        models: language models.
        reading_seconds: that loading `dataset` took, for the timings.

    Raises:
        InputError: the index is of other documents, or `out` holds another run.
    """
    index, seconds = _index_of(experiment, source, dataset, out / "index")
    model = models.reader if experiment.llm_steps else None
    settings: dict[str, Any] = {
        "index": index.config.identity(),
        "embedder": index.manifest.embedder,
        "extractors": index.manifest.extractors,
        "limit": source.limit,
        "llm_steps": experiment.llm_steps,
    }
    if model is not None:
        settings |= {"model": model_settings(model), **_own_prompts(models.prompts)}
    retrievers: dict[str, Retriever] = {
        row: load_retriever(index, name, model=model, prompts=models.prompts)
        for row, name in zip(row_names(experiment.retrievers), experiment.retrievers, strict=True)
    }
    summary = run_evaluation(
        dataset,
        retrievers,
        out,
        ks=experiment.ks,
        batch=experiment.batch,
        seed=experiment.seed,
        config=settings,
        retriever_configs={name: settings_of(retriever) for name, retriever in retrievers.items()},
        stage_seconds={"reading": reading_seconds, **seconds},
    )
    return index, summary


def evaluate_answers(
    experiment: Experiment, dataset: Dataset, index: Index, out: Path, models: Models
) -> AnswerSummary:
    """Answer every question from what each retriever found, and measure the answers; resumable by question.

    `evaluate_retrieval` has to have run with the same arguments.

    Raises:
        InputError: `out` holds answers that were made with other settings.
    """
    plan = experiment.answers or AnswerPlan()
    judge, prompts = models.judge, _own_prompts(models.prompts)
    write: Writer
    if plan.reader == "local" or models.reader is None:
        from qgrag.generation.local_answers import LocalAnswerWriter

        write = LocalAnswerWriter(index.embedder.encode_queries, plan.config)
        reader: Mapping[str, str] | str = plan.reader
    else:
        write = AnswerWriter(models.reader, plan.config, models.prompts)
        reader = model_settings(models.reader)
    measures = Measures(
        plan.language,
        CorrectnessJudge(judge, models.prompts) if judge is not None and not plan.compare else None,
        load_meteor() if plan.meteor else None,
        PairwiseJudge(judge, models.prompts) if judge is not None and plan.compare else None,
        plan.compare,
    )
    run = AnswerRun(
        plan.batch,
        {"answers": dataclasses.asdict(plan.config), "reader": reader, **prompts},
        BootstrapConfig(seed=experiment.seed),
        {"judge": model_settings(judge), **prompts} if judge is not None else {},
    )
    return run_answers(dataset, row_names(experiment.retrievers), out, write, measures, run)


def failures(experiment: Experiment, out: Path) -> list[str]:
    """Answers and judgements of language models that failed, one sentence each; the same run asks for them again."""
    if experiment.answers is None or experiment.answers.reader == "local":
        return []
    folder = RunFolder(out)
    rows = row_names(experiment.retrievers)
    failed = [
        f"answer from {row} to question {record['id']}: {record['error']}"
        for row in rows
        for record in folder.all_results(row, ANSWERS_PATTERN)
        if record["error"]
    ]
    failed += [
        f"verdict on the answer from {row} to question {record['id']}: {record['reason']}"
        for row in rows
        for record in folder.all_results(row, VERDICTS_PATTERN)
        if record["correct"] is None and record["reason"] != NO_REFERENCE
    ]
    pairs = [pair_name(experiment.answers.compare, row) for row in rows]
    failed += [
        f"comparison {pair} for question {record['id']}: judged in {record['judged']} of 2 orders"
        for pair in pairs
        for record in folder.all_results(pair, COMPARISONS_PATTERN)
        if record["judged"] < 2
    ]
    return failed


def compare_sets(experiment: Experiment, names: Sequence[str], out: Path) -> SetsSummary:
    """Put the runs of several data sets side by side; writes `sets.json`, `table.md` and `sets.png`.

    Args:
        experiment: what was measured.
        names: of the sets; `out/NAME` holds the run of each.
        out: folder of all runs.
    """
    rows = row_names(experiment.retrievers)
    results = {}
    for name in names:
        folder = RunFolder(out / name)
        results[name] = {row: folder.all_results(row) for row in rows}
    bootstrap = BootstrapConfig(seed=experiment.seed)
    summary = summarise_sets(results, shown_metrics(experiment.ks), bootstrap)
    write_json(out / "sets.json", summary.to_dict())
    (out / "table.md").write_text(sets_markdown(summary), encoding="utf-8")
    plot_sets(summary, out / "sets.png")
    return summary


def _index_of(
    experiment: Experiment, source: DataSource, dataset: Dataset, folder: Path
) -> tuple[Index, dict[str, float]]:
    """The named index as it is, or one that is built in `folder`; and the seconds of each stage of building."""
    if source.index is not None:
        index = Index.open(source.index, device=experiment.device)
        changes = compare(index.documents.hashes, DocumentSet.of(dataset.documents).hashes)
        if changes:
            raise InputError(
                f"{source.index}: is not an index of this corpus ({len(changes.added)} documents are not in it, "
                f"{len(changes.changed)} differ, {len(changes.removed)} are not in the corpus); leave --index out to "
                "build one, or bring it up to date with qgrag index"
            )
        return index, {}
    config = experiment.index_config or IndexConfig()
    RunFolder(folder.parent).check(
        {"dataset": dataset_settings(dataset), "config": {"index": config.identity(), "limit": source.limit}}
    )
    from qgrag.index.builder import build_index

    report = build_index(dataset.documents, folder, config)
    index = Index.open(folder, device=experiment.device)
    return index, {f"index: {stage}": spent for stage, spent in report.seconds.items()}


def _own_prompts(prompts: Prompts) -> Mapping[str, Any]:
    """What a run records of prompts that are not the package's own: their language and fingerprints."""
    config = prompts.config
    if config == PromptConfig():
        return {}
    return {"prompts": {"language": config.language} | {name: prompts[name].fingerprint for name in config.files}}
