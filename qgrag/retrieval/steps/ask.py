"""One question to a language model for each row of a batch that has something to ask."""

from collections.abc import Mapping, Sequence
from typing import Any, overload

from pydantic import BaseModel

from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompt
from qgrag.llm.records import SchemaT

Rows = Sequence[Mapping[str, object] | None]


@overload
def ask(model: LanguageModel, prompt: Prompt, rows: Rows, *, step: str) -> list[str | None]: ...
@overload
def ask(
    model: LanguageModel, prompt: Prompt, rows: Rows, *, step: str, schema: type[SchemaT]
) -> list[SchemaT | None]: ...
def ask(
    model: LanguageModel, prompt: Prompt, rows: Rows, *, step: str, schema: type[BaseModel] | None = None
) -> list[Any]:
    """Fill a prompt for each row and read the answers.

    Args:
        model: answers all rows together.
        prompt: what is filled.
        rows: B of them: the prompt's fields, among them `query`, on which the spending is counted; None for a row that
            is not asked about.
        step: name under which the spending is counted.
        schema: what the answers have to be; None for plain text.

    Returns:
        B answers: an instance of the schema, or the text; None for a row that was not asked about or whose request
        failed.

    Raises:
        LLMUnavailableError: the model cannot be used at all.
    """
    asked = [(number, row) for number, row in enumerate(rows) if row is not None]
    completions = model.complete(
        [prompt.fill(**row) for _, row in asked], schema, step=step, owners=[str(row["query"]) for _, row in asked]
    )
    answers: list[Any] = [None] * len(rows)
    for (number, _), completion in zip(asked, completions, strict=True):
        if schema is not None:
            answers[number] = completion.parsed(schema)
        elif completion.error is None:
            answers[number] = completion.text
    return answers
