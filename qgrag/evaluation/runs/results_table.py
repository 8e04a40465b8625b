"""The results of all questions in one table, for notebooks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qgrag.files import whole_file

Records = Sequence[Mapping[str, Any]]


def write_results_table(
    results: Mapping[str, Records], path: Path, answers: Mapping[str, Records] | None = None
) -> None:
    """Write one row per retriever and question, for `pandas.read_parquet`.

    Columns: `retriever`, `id`, `question`, `type`, `gold` (list), `documents` and `chunks` (lists, best first),
    `scores` (list), and each metric (null for a question without gold). With answers also `answer`, `answered`,
    `answer_error`, and each answer metric as `answer_METRIC`. Without them, the answers of the table that is replaced
    are kept.

    Args:
        results: records of `results-RETRIEVER.jsonl` by retriever.
        path: Parquet file, written whole or not at all.
        answers: records of `answers-RETRIEVER.jsonl` by retriever, in the same order, with their `metrics`.
    """
    kept = _answers_in(path) if answers is None else {}
    answers = answers or {}
    rows = [
        {
            "retriever": retriever,
            "id": record["id"],
            "question": record["question"],
            "type": record["type"],
            "gold": record["gold"],
            "documents": [hit["document_id"] for hit in record["hits"]],
            "chunks": [hit["chunk_id"] for hit in record["hits"]],
            "scores": [hit["score"] for hit in record["hits"]],
            **(record["metrics"] or {}),
            **_answer_columns(answers[retriever][number] if retriever in answers else None),
            **kept.get((retriever, record["id"]), {}),
        }
        for retriever, records in results.items()
        for number, record in enumerate(records)
    ]
    columns = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({column: [row.get(column) for row in rows] for column in columns})
    with whole_file(path) as aside:
        pq.write_table(table, aside)


def _answer_columns(record: Mapping[str, Any] | None) -> dict[str, Any]:
    if record is None:
        return {}
    metrics = {f"answer_{name}": value for name, value in (record["metrics"] or {}).items()}
    return {"answer": record["answer"], "answered": record["answered"], "answer_error": record["error"], **metrics}


def _answers_in(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What the table there holds of answers, by retriever and question."""
    if not path.exists():
        return {}
    table = pq.read_table(path)
    columns = [name for name in table.column_names if name.startswith("answer")]
    return {(row["retriever"], row["id"]): {name: row[name] for name in columns} for row in table.to_pylist()}
