"""Write answers to what retrievers found and measure them: the second stage of a run, resumable by question."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from qgrag.errors import InputError
from qgrag.evaluation.answer_summary import AnswerSummary, summarise_answers
from qgrag.evaluation.answers import Language, answer_metrics
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.comparing import compare_all
from qgrag.evaluation.datasets.records import Dataset, Question
from qgrag.evaluation.export import write_results_table
from qgrag.evaluation.meteor import Meteor
from qgrag.evaluation.run_folder import ANSWERS_PATTERN, RunFolder, open_run, write_json
from qgrag.generation.answers import Answer
from qgrag.generation.correctness import Verdict
from qgrag.generation.pairwise import Comparison
from qgrag.llm.usage import measure
from qgrag.progress import progress
from qgrag.retrieval.results import Hit, RetrievalResult

ANSWER_SETTINGS_FILE = "answers-run.json"
ANSWER_SUMMARY_FILE = "answers.json"
NO_RETRIEVAL = "llm-only"
VIEWS_ONLY = "kg"
"""The retriever whose reader gets the graph's statements and no passage: the baseline LLM + graph."""


class Writer(Protocol):
    """What answering needs: `qgrag.generation.answers.AnswerWriter`, or the local one."""

    def __call__(self, results: Sequence[RetrievalResult]) -> list[Answer]: ...

    def without_evidence(self, queries: Sequence[str]) -> list[Answer]: ...


class Judge(Protocol):
    """`qgrag.generation.correctness.CorrectnessJudge`."""

    def __call__(
        self, queries: Sequence[str], references: Sequence[Sequence[str]], answers: Sequence[str]
    ) -> list[Verdict]: ...


class PairJudge(Protocol):
    """`qgrag.generation.pairwise.PairwiseJudge`."""

    def __call__(self, queries: Sequence[str], first: Sequence[str], second: Sequence[str]) -> list[Comparison]: ...


@dataclass(frozen=True)
class Measures:
    """What is measured of answers.

    Args:
        language: of questions and answers.
        judge: says whether each answer is correct; None leaves that out.
        meteor: see `qgrag.evaluation.meteor.load_meteor`, for English alone; None leaves METEOR out.
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
    """How the answers of a run are made, besides who writes them.

    Args:
        batch: questions a call of the writer, and between two writes.
        config: settings of writer and judges, JSON-serialisable, recorded and compared when a run is continued.
        bootstrap: how intervals are drawn.
    """

    batch: int = 16
    config: Mapping[str, Any] = field(default_factory=dict)
    bootstrap: BootstrapConfig = field(default_factory=BootstrapConfig)


def run_answers(
    dataset: Dataset, retrievers: Sequence[str], out: Path, write: Writer, measures: Measures, run: AnswerRun
) -> AnswerSummary:
    """Answer every question from what each retriever found, as `run_evaluation` left it in `out`.

    Results are on disk after each batch. The same call continues where the last one ended and may bring further
    retrievers; a call with other settings is refused. `out` then also holds `answers.json`
    (`AnswerSummary.to_dict()`), `answers-RETRIEVER.jsonl` (a line a question: answer, citations, metrics, verdict,
    usage), with a pair judge `comparisons-A-vs-B.jsonl`, and `results.parquet` has a row's answer and metrics too.

    Raises:
        InputError: a retriever's results are not all in `out`, or `out` holds answers made with other settings.
        LLMUnavailableError: the model cannot be used at all; what was written until then is kept.
    """
    if run.batch < 1:
        raise InputError(f"batch has to be at least 1, not {run.batch}")
    settings: dict[str, Any] = {
        "config": dict(run.config),
        "language": measures.language,
        "judge": measures.judge is not None,
        "meteor": measures.meteor is not None,
        "compare_with": measures.compare_with,
        "retrievers": {name: {} for name in retrievers},
    }
    ids = [question.id for question in dataset.questions]
    with open_run(out) as folder:
        settings = folder.settle(settings, ANSWER_SETTINGS_FILE)
        for name in retrievers:
            _answer_all(name, dataset, folder, write, measures, run.batch)
        answers = {name: folder.results(name, ids, ANSWERS_PATTERN) for name in settings["retrievers"]}
        answers = {name: records for name, records in answers.items() if len(records) == len(ids)}
        comparisons = {}
        if measures.pair_judge is not None:
            comparisons = compare_all(dataset, answers, measures.compare_with, measures.pair_judge, folder, run.batch)
        summary = summarise_answers(dataset.questions, answers, comparisons, settings, run.bootstrap)
        write_json(out / ANSWER_SUMMARY_FILE, summary.to_dict())
        results = {name: folder.results(name, ids) for name in answers}
        write_results_table(results, out / "results.parquet", answers)
    return summary


def _answer_all(name: str, dataset: Dataset, folder: RunFolder, write: Writer, measures: Measures, batch: int) -> None:
    """Append answers for every question that has none yet."""
    ids = [question.id for question in dataset.questions]
    records = folder.results(name, ids)
    if len(records) < len(ids):
        raise InputError(
            f"{folder.path}: holds results of {name!r} for {len(records)} of {len(ids)} questions; "
            "evaluate its retrieval first"
        )
    texts = {document.id: document.text for document in dataset.documents}
    done = len(folder.results(name, ids, ANSWERS_PATTERN))
    with progress(f"Answering from {name}", len(ids) - done) as bar:
        for start in range(done, len(ids), batch):
            part = slice(start, start + batch)
            results = [restored(record, name, texts) for record in records[part]]
            began = time.perf_counter()
            answers = _write(results, write)
            written = time.perf_counter()
            made = _measured(dataset.questions[part], answers, measures)
            folder.append_results(name, made, ANSWERS_PATTERN)
            labels = {"retriever": name, "questions": len(results)}
            folder.append_timing("answer", written - began, **labels)
            folder.append_timing("judge", time.perf_counter() - written, **labels)
            bar.advance(len(results))


def restored(record: Mapping[str, Any], name: str, texts: Mapping[str, str]) -> RetrievalResult:
    """The retrieval result that a run's record tells of, its passages cut from the documents again."""
    hits = tuple(
        Hit(
            **{
                **hit,
                "document_ids": tuple(hit["document_ids"]),
                "evidence": tuple(hit["evidence"]),
                "text": texts[hit["document_id"]][hit["start"] : hit["end"]],
            }
        )
        for hit in record["hits"]
    )
    return RetrievalResult(record["question"], record.get("retriever", name), hits, record["evidence"], record["usage"])


def _write(results: Sequence[RetrievalResult], write: Writer) -> list[Answer]:
    """Answers from what each baseline lets its reader see."""
    if results[0].retriever == NO_RETRIEVAL:
        return write.without_evidence([result.query for result in results])
    if results[0].retriever == VIEWS_ONLY:
        results = [replace(result, hits=()) if result.evidence.get("triples") else result for result in results]
    return write(results)


def _measured(questions: Sequence[Question], answers: Sequence[Answer], measures: Measures) -> list[dict[str, Any]]:
    verdicts: list[Verdict | None] = [None] * len(questions)
    judged = [i for i, question in enumerate(questions) if question.answers]
    with measure() as meter:
        if measures.judge is not None:
            given = measures.judge(
                [questions[i].text for i in judged],
                [questions[i].answers for i in judged],
                [answers[i].text for i in judged],
            )
            by_row = dict(zip(judged, given, strict=True))
            verdicts = [by_row.get(i) for i in range(len(questions))]
    records = []
    for question, answer, verdict in zip(questions, answers, verdicts, strict=True):
        plain = answer.to_dict()
        records.append(
            {
                "id": question.id,
                "answer": answer.text,
                "answered": answer.answered,
                "truncated": answer.truncated,
                "error": answer.error,
                "citations": plain["citations"],
                "invented_citations": answer.invented_citations,
                "metrics": _metrics(question, answer, verdict, measures),
                "verdict": verdict and {"correct": verdict.correct, "reason": verdict.reason},
                "usage": plain["usage"],
                "judge_usage": meter.to_dict(question.text),
            }
        )
    return records


def _metrics(
    question: Question, answer: Answer, verdict: Verdict | None, measures: Measures
) -> dict[str, float | None] | None:
    """Every metric of one answer, None for a question without reference; `judge` is None where the judge failed."""
    if not question.answers:
        return None
    values: dict[str, float | None] = {**answer_metrics(answer.text, question.answers, measures.language)}
    if measures.meteor is not None:
        values["meteor"] = measures.meteor(answer.text, question.answers)
    if measures.judge is not None:
        values["judge"] = None if verdict is None or verdict.correct is None else float(verdict.correct)
    return values
