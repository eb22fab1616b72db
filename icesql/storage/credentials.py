"""Which properties are secret, and how they are kept out of everything that is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_SECRET: Final = re.compile(
    r"secret|token|password|passwd|credential|key|sas|signature|auth|connection-string",
    re.IGNORECASE,
)
_URL_PASSWORD: Final = re.compile(r"(?<=://)([^/\s:@]*):[^/\s@]+@")


def masked(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with the values of everything that may be secret as "***"."""
    return {
        key: "***" if _SECRET.search(key) else redact(str(value), {})
        for key, value in properties.items()
    }


def redact(text: str, properties: Mapping[str, str]) -> str:
    """``text`` without the secret values of ``properties`` and without passwords in URLs.

    For messages of foreign libraries, which may quote what they were given.
    """
    for key, value in properties.items():
        if _SECRET.search(key) and len(str(value)) >= 4:
            text = text.replace(str(value), "***")
    return _URL_PASSWORD.sub(r"\1:***@", text)
