"""The other direction: tables that each engine is asked to write, which icesql then reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from msgspec import Struct, to_builtins

_FIRST: Final = (("1", "a", "1.50", "2020-01-01"), ("2", "b", "-0.01", "1969-12-31"))
_SECOND: Final = (("3", None, None, None), ("4", "a", "1234567.89", "9999-12-31"))


class Write(Struct, frozen=True):
    """Rows to append in two commits and rows to delete in a third, and what is left then."""

    name: str
    partition: str | None
    delete: str | None
    expected: tuple[tuple[str | None, ...], ...]
    batches: tuple[tuple[tuple[str | None, ...], ...], ...] = (_FIRST, _SECOND)

    def task(self, folder: Path) -> dict[str, Any]:
        """The task as adapters read it."""
        return {"folder": str(folder), **to_builtins(self)}


WRITES: Final = (
    Write("two appends", None, None, (*_FIRST, *_SECOND)),
    Write("two appends, partitioned by a column with NULL", "name", None, (*_FIRST, *_SECOND)),
    Write("two appends and a delete", None, "id = 2", (_FIRST[0], *_SECOND)),
    Write("two appends and a delete, partitioned", "name", "id = 2", (_FIRST[0], *_SECOND)),
)
