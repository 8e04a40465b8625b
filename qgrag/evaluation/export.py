"""Every question's result in one table for notebooks."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Records = Sequence[Mapping[str, Any]]


def write_results_table(
    results: Mapping[str, Records], path: Path, answers: Mapping[str, Records] | None = None
) -> None:
    """Write one row a retriever and question, for `pandas.read_parquet`.

    Columns: `retriever`, `id`, `question`, `type`, `gold` (list), `documents` and `chunks` (lists, best
        first), `scores` (list), and each metric (null for a question without gold). With answers also `answer`,
        `answered`, `error`, and each answer metric as `answer_METRIC`.

    Args:
        results: records of `results-RETRIEVER.jsonl` by retriever.
        path: Parquet file, written whole or not at all.
        answers: records of `answers-RETRIEVER.jsonl` by retriever, in the same order.
    """
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
        }
        for retriever, records in results.items()
        for number, record in enumerate(records)
    ]
    columns = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({column: [row.get(column) for row in rows] for column in columns})
    aside = path.with_name(f"{path.name}.part")
    pq.write_table(table, aside)
    os.replace(aside, path)


def _answer_columns(record: Mapping[str, Any] | None) -> dict[str, Any]:
    if record is None:
        return {}
    metrics = {f"answer_{name}": value for name, value in (record["metrics"] or {}).items()}
    return {"answer": record["answer"], "answered": record["answered"], "error": record["error"], **metrics}
