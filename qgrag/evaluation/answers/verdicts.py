"""Whether the answers of a run are correct, as a judge has it: a record a question, resumable."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from qgrag.evaluation.datasets.records import Dataset
from qgrag.evaluation.runs.by_question import complete_records
from qgrag.evaluation.runs.run_folder import VERDICTS_PATTERN, RunFolder
from qgrag.generation.correctness import Verdict
from qgrag.llm.usage import measure

Records = Sequence[Mapping[str, Any]]


class Judge(Protocol):
    """`qgrag.generation.correctness.CorrectnessJudge`."""

    def __call__(
        self, queries: Sequence[str], references: Sequence[Sequence[str]], answers: Sequence[str]
    ) -> list[Verdict]: ...


def judge_all(name: str, dataset: Dataset, answers: Records, judge: Judge, folder: RunFolder, batch: int) -> None:
    """Write a verdict on each answer of a retriever; `correct` is None without a reference or where the judge failed.

    An answer that the judge failed on, or that changed since, is judged anew.
    """
    ids = [question.id for question in dataset.questions]

    def judged(positions: Sequence[int]) -> list[Mapping[str, Any]]:
        began = time.perf_counter()
        questions = [dataset.questions[i] for i in positions]
        asked = [i for i, question in zip(positions, questions) if question.answers]
        with measure() as meter:
            verdicts = judge(
                [dataset.questions[i].text for i in asked],
                [dataset.questions[i].answers for i in asked],
                [answers[i]["answer"] for i in asked],
            )
        by_position = dict(zip(asked, verdicts, strict=True))
        folder.append_timing("judge", time.perf_counter() - began, retriever=name, questions=len(positions))
        records: list[Mapping[str, Any]] = []
        for i, question in zip(positions, questions):
            verdict = by_position.get(i, Verdict(None, "no reference"))
            text = {"of": fingerprint(answers[i]["answer"]), "correct": verdict.correct, "reason": verdict.reason}
            records.append({"id": question.id, **text, "usage": meter.to_dict(question.text)})
        return records

    def stale(position: int, record: Mapping[str, Any]) -> bool:
        missing = record["correct"] is None and bool(dataset.questions[position].answers)
        return missing or not is_about(record, answers[position]["answer"])

    complete_records(
        folder, name, VERDICTS_PATTERN, ids, judged, stale, batch=batch, title=f"Judging answers from {name}"
    )


def fingerprint(*answers: str) -> str:
    """Of the answers that a judgement is about: 16 hexadecimal digits."""
    return hashlib.sha256("\0".join(answers).encode()).hexdigest()[:16]


def is_about(judgement: Mapping[str, Any], *answers: str) -> bool:
    """Whether a recorded judgement is about these very answers, which may have been written anew since."""
    return bool(judgement["of"] == fingerprint(*answers))
