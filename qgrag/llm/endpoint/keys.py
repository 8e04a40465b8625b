"""Keys of endpoints: read from the environment, checked before use, and taken out of every message."""

import json
import os
import re
import unicodedata
from urllib.parse import quote, quote_plus

from qgrag.errors import ConfigError

KEY_VARIABLE = "QGRAG_LLM_API_KEY"
OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"
HEADER_VARIABLES = ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID")
MIN_SECRET_CHARACTERS = 4

_NOT_IN_HEADER = re.compile(r"[^!-~]")


def read_key(variable: str) -> str:
    """The value of an environment variable that goes into a header, without white space around it.

    Raises:
        ConfigError: a character that no header can carry, by position and name. The message has no part of the key.
    """
    key = os.environ.get(variable, "").strip()
    odd = _NOT_IN_HEADER.search(key)
    if odd:
        name = unicodedata.name(odd[0], f"U+{ord(odd[0]):04X}").lower()
        raise ConfigError(
            f"{variable}: character {odd.start() + 1} of {len(key)} is {name!r}, which no HTTP header can carry; "
            "copy the value again, without quotation marks around it and as one word"
        )
    return key


def redact(text: str) -> str:
    """A text in which `***` stands for every key of the environment, in any form that a message may give it.

    That is: as it is, stripped, as a Python or JSON literal, or percent-encoded. Values of fewer than
    `MIN_SECRET_CHARACTERS` characters are no secrets.
    """
    forms = {form for variable in (KEY_VARIABLE, OPENAI_KEY_VARIABLE) for form in _forms(os.environ.get(variable, ""))}
    if not forms:
        return text
    pattern = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    return re.sub(pattern, "***", text, flags=re.IGNORECASE)


def _forms(raw: str) -> set[str]:
    forms = set()
    for key in (raw, raw.strip()):
        literal = json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1], repr(key)[1:-1], ascii(key)[1:-1]
        data = key.encode("utf-8", "surrogateescape")
        forms |= {key, *literal, repr(data)[2:-1], quote(data, safe=""), quote(data), quote_plus(data)}
    return {form for form in forms if len(form.strip()) >= MIN_SECRET_CHARACTERS}
