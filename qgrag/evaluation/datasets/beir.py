"""BEIR's layout: `corpus.jsonl`, `queries.jsonl`, and relevance judgements by split in `qrels/SPLIT.tsv`."""

from pathlib import Path

from qgrag.errors import InputError
from qgrag.evaluation.datasets.files import read_json_lines, read_text
from qgrag.evaluation.datasets.layout import Layout, corpus_reader
from qgrag.evaluation.datasets.records import Question

QUERIES_FILE = "queries.jsonl"
COLUMNS = ("query-id", "corpus-id", "score")


def read_questions(path: Path) -> list[Question]:
    """The queries that a file of judgements `qrels/SPLIT.tsv` judges, in the order of `queries.jsonl`.

    The gold is every document with a relevance above 0, whatever its grade. The type is `single` or `multi` by the
    number of these documents, and `null` where there is none. There are no answers.

    Raises:
        InputError: a file is missing or broken, or a judged query is not in `queries.jsonl`.
    """
    judged = _read_judgements(path)
    queries = path.parent.parent / QUERIES_FILE
    texts = {entry.text("_id"): entry.text("text") for entry in read_json_lines(queries)}
    missing = [id_ for id_ in judged if id_ not in texts]
    if missing:
        raise InputError(f"{path}: query {missing[0]!r} is judged, but {queries} does not hold it")
    kinds = ("null", "single", "multi")
    return [
        Question(id_, text, (), tuple(judged[id_]), kinds[min(len(judged[id_]), 2)])
        for id_, text in texts.items()
        if id_ in judged
    ]


def _read_judgements(path: Path) -> dict[str, dict[str, None]]:
    """The relevant documents of each judged query, in the order of the file."""
    judged: dict[str, dict[str, None]] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        values = tuple(line.split("\t"))
        if not line.strip() or (number == 1 and values == COLUMNS):
            continue
        try:
            query, document, score = values
            relevant = float(score) > 0
        except ValueError:
            raise InputError(
                f"{path}, line {number}: expected {', '.join(COLUMNS)} with tabs between them, not {line!r}"
            ) from None
        documents = judged.setdefault(query, {})
        if relevant:
            documents[document] = None
    return judged


LAYOUT = Layout(
    corpus_reader("jsonl"),
    read_questions,
    ("corpus.jsonl",),
    ("qrels/test.tsv", "qrels/*.tsv"),
    split_file="qrels/{}.tsv",
    further_files=(QUERIES_FILE,),
)
