"""What came of the requests about one chunk."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from qgrag.extraction.records import Extracted
from qgrag.llm.records import Completion, CompletionError

T = TypeVar("T")


def outcome(
    value: T, found: bool, errors: Sequence[CompletionError], counts: Counter[str], nothing: str
) -> Extracted[T]:
    """The outcome for one chunk.

    Its status is `failed` where an error left nothing, or where everything that came was dropped. It is `empty` where
    the model itself said that there is nothing.

    Args:
        value: what is left.
        found: whether that is anything.
        errors: of the chunk's requests.
        counts: what was dropped or repaired, by kind.
        nothing: the reason to give for an empty chunk.
    """
    kept = {kind: n for kind, n in sorted(counts.items()) if n}
    if found:
        return Extracted(value, counts=kept)
    if errors:
        return Extracted(value, "failed", str(errors[0]), kept)
    if kept:
        return Extracted(value, "failed", f"nothing usable was left of the answer: {kept}", kept)
    return Extracted(value, "empty", nothing)


def count_repairs(completion: Completion, counts: Counter[str]) -> None:
    """Add to `counts` what was wrong with an answer, and what was repaired in it."""
    counts["invalid_items"] += completion.dropped
    counts["repaired_answers"] += completion.repaired
    counts["truncated_answers"] += completion.truncated
    counts["asked_again"] += completion.asked_again
    counts["failed_answers"] += completion.error is not None
