"""JSON in columns of text: Iceberg has no JSON, and the engine reads it by path."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import types


class _Path:
    """A bound value that is written as a path, also as a literal."""

    def bind_processor(self, dialect: Any) -> Callable[[Any], Any]:
        """The path as text."""
        return self._path

    def literal_processor(self, dialect: Any) -> Callable[[Any], str]:
        """The path as a literal."""
        return lambda value: "'" + self._path(value).replace("'", "''") + "'"

    def _path(self, value: Any) -> str:
        return "$" + _step(value)


class IcesqlJSONIndex(_Path, types.JSON.JSONIndexType):
    """``column["key"]`` and ``column[0]``."""


class IcesqlJSONPath(_Path, types.JSON.JSONPathType):
    """``column[("key", 0)]``."""

    def _path(self, value: Sequence[Any]) -> str:
        return "$" + "".join(map(_step, value))


def _step(value: Any) -> str:
    return f"[{value}]" if isinstance(value, int) else f".{json.dumps(value, ensure_ascii=False)}"
