"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place beside `path` to write to, which takes its name once the block has ended well."""
    aside = path.with_name(f"{path.name}.part")
    aside.unlink(missing_ok=True)
    yield aside
    os.replace(aside, path)
