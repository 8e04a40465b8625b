"""What a build says of itself, before and after."""

from dataclasses import dataclass, field
from pathlib import Path

from qgrag.index.documents import Changes
from qgrag.llm.model import StepEstimate


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did.

    Args:
        path: the index folder.
        changes: documents added, changed and removed against the index that stood there.
        done: False where nothing had changed and nothing was written.
        counts: what the index holds now.
        new: what was computed in this run: chunks, embedded texts, extracted chunks.
        seconds: time of each stage.
        failures: chunks whose extraction failed, as `kind of chunk id: reason`; tried again at the next build.
        empty: chunks in which there was nothing to extract, in the same form.
        usage: LLM calls, tokens and seconds of this run, by step.
        extraction: see `Manifest`.
    """

    path: Path
    changes: Changes
    done: bool
    counts: dict[str, int]
    new: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    usage: dict[str, dict[str, float]] = field(default_factory=dict)
    extraction: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """What a build would do: see `plan_index`.

    Args:
        changes: documents added, changed and removed against the index that stands there.
        duplicates: documents that repeat another's content.
        chunks: of all documents.
        new_chunks: those that the index does not know.
        estimates: what each step that asks a language model would spend.
    """

    changes: Changes
    duplicates: int
    chunks: int
    new_chunks: int
    estimates: tuple[StepEstimate, ...] = ()
