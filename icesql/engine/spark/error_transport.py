"""Errors of Spark's workers as data: one of icesql's classes and its fields, after a mark.

An error crosses Spark as text, and that text quotes rows, paths and names of strangers. So only the
text after the query's mark is decoded: the mark is a random word that the driver makes for this
query, which no data can contain. The decoded error has one of a fixed list of classes and plain
values; any other content is ignored.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import secrets
from typing import Any, Final

import icesql.errors
from icesql.errors import Error

# The classes that a text may be decoded to, by name.
CLASSES: Final[dict[str, type[Error]]] = {
    name: each
    for name, each in vars(icesql.errors).items()
    if isinstance(each, type) and issubclass(each, Error)
}
_PLAIN = str | int | float | bool | None


def new_mark() -> str:
    """A new mark for one query; it must not get into a file, a name or a row."""
    return f"icesql-{secrets.token_hex(16)}:"


def encode_error(error: Error, mark: str) -> str:
    """``error`` as text that begins with the mark and contains no character that is quoted."""
    cls = next(each for each in type(error).__mro__ if CLASSES.get(each.__name__) is each)
    content = {
        "class": cls.__name__,
        "message": str(error),
        "fields": {name: _plain(value) for name, value in vars(error).items()},
    }
    text = json.dumps(content, ensure_ascii=True, allow_nan=True)
    return f"{mark}{base64.b64encode(text.encode('ascii')).decode('ascii')};"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [each if isinstance(each, _PLAIN) else str(each) for each in value]
    return value if isinstance(value, _PLAIN) else str(value)


def decode_error(text: str, mark: str) -> Error | None:
    """The error that a worker of the query with this mark raised; None if the text has none.

    The last one counts, since Spark adds text after messages. A malformed one counts as none.
    """
    payloads = re.findall(re.escape(mark) + r"([A-Za-z0-9+/=]+);", text)
    if not payloads:
        return None
    try:
        return _restored(json.loads(base64.b64decode(payloads[-1], validate=True)))
    except (binascii.Error, ValueError, RecursionError):
        return None


def _restored(data: Any) -> Error | None:
    """The error from parsed JSON; None unless it has exactly the form of ``encode_error``."""
    match data:
        case {"class": str(name), "message": str(message), "fields": dict(fields)}:
            cls = CLASSES.get(name)
        case _:
            return None
    if cls is None or not all(_is_field(cls, key, value) for key, value in fields.items()):
        return None
    error = cls.__new__(cls)
    error.args = (message,)
    for key, value in fields.items():
        error.__dict__[key] = tuple(value) if isinstance(value, list) else value
    return error


def _is_field(cls: type[Error], name: str, value: Any) -> bool:
    """True if an error may have this field: a plain value, and a name that overrides at most a
    plain default of its class."""
    values = value if isinstance(value, list) else [value]
    return (
        name.isidentifier()
        and not name.startswith("_")
        and isinstance(getattr(cls, name, None), _PLAIN)
        and all(isinstance(each, _PLAIN) for each in values)
    )
