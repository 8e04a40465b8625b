"""A fine-tuned embedding model as an ordinary sentence-transformers folder with a card."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from qgrag.errors import InputError
from qgrag.files import whole_folder
from qgrag.models.embedder import EmbedderConfig, LocalEmbedder
from qgrag.training.text_encoder import TextEncoder

CARD = "README.md"


@dataclass(frozen=True)
class TrainingRecord:
    """What a model card tells of a training run.

    Args:
        command: that repeats it.
        data: file or data set by role.
        seed: of the run.
        metrics: by name, on data that training did not see.
        seconds: of the run.
    """

    command: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None

    def to_markdown(self) -> str:
        lines = [f"- {role}: {name}" for role, name in self.data.items()]
        lines += [f"- seed: {self.seed}"] if self.seed is not None else []
        lines += [f"- time: {self.seconds:.0f} s"] if self.seconds is not None else []
        text = "## Training\n\n" + "\n".join(lines) + "\n"
        if self.command:
            text += f"\n```\n{self.command}\n```\n"
        if self.metrics:
            rows = "".join(f"| {name} | {value:.4f} |\n" for name, value in self.metrics.items())
            text += f"\n## Metrics\n\n| metric | value |\n| --- | --- |\n{rows}"
        return text


def export_embedding_model(encoder: TextEncoder, folder: str | Path, record: TrainingRecord) -> EmbedderConfig:
    """Write a folder that `SentenceTransformer(folder)` loads, and that an index can name as its model.

    The folder appears whole or not at all. Prompts are stored as sentence-transformers does
    (`query` and `document`), and the longest passage as the model's window.

    Args:
        encoder: the trained model; adapters are merged into a copy.
        folder: must not exist yet.
        record: for the model card.

    Returns:
        The configuration with which an index uses the model.

    Raises:
        InputError: there is something at `folder` already.
    """
    folder = Path(folder)
    if folder.exists():
        raise InputError(f"{folder}: exists already; name another folder, or remove it")
    c = encoder.config
    model = encoder.merged()
    prompts = {"query": c.query_prompt, "document": c.passage_prompt}
    model.prompts = {name: prompt for name, prompt in prompts.items() if prompt}
    model.max_seq_length = c.passage_tokens
    with whole_folder(folder) as aside:
        model.save_pretrained(str(aside), create_model_card=False)
        config = EmbedderConfig(model=str(aside), query_prompt=c.query_prompt, passage_prompt=c.passage_prompt)
        fingerprint = LocalEmbedder(config).fingerprint
        (aside / CARD).write_text(_card(encoder, folder.name, fingerprint, record), encoding="utf-8")
    return replace(config, model=str(folder))


def _card(encoder: TextEncoder, name: str, fingerprint: str, record: TrainingRecord) -> str:
    c = encoder.config
    base = Path(c.model).name if Path(c.model).is_absolute() else c.model
    prompts = f"\nQueries start with `{c.query_prompt}`, passages with `{c.passage_prompt}`.\n"
    return f"""---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
base_model: {base}
---

# {name}

An embedding model of {encoder.dimension} dimensions, fine-tuned from `{base}`. Queries of up to {c.query_tokens}
tokens, passages of up to {c.passage_tokens}; vectors are compared by cosine.
{prompts if c.query_prompt or c.passage_prompt else ""}
Fingerprint in an index: `{fingerprint}`. An index made with this model refuses to be searched with another.

{record.to_markdown()}"""
