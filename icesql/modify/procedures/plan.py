"""The plan of a procedure: EXPLAIN CALL shows it, CALL performs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct


class Step(Struct, frozen=True):
    """One thing that is read, written, removed, kept or set, and why.

    ``action`` is "read", "write", "remove", "keep", "set" or "call". ``what`` is its kind:
    "data file", "delete file", "manifest", "manifest list", "snapshot", "branch" … ``name`` is a
    path, an id, a name or a statement; what is not known before it is written is described in
    brackets. Sizes are None where nothing tells them.
    """

    action: str
    what: str
    name: str
    reason: str
    bytes: int | None = None
    records: int | None = None


class Rows(Struct, frozen=True):
    """The rows of a procedure, by its columns, and what is worth telling with them."""

    rows: Sequence[tuple[Any, ...]]
    note: str = ""
    snapshot_id: int | None = None


class Plan(Struct, frozen=True):
    """The steps, and what carries them out; until ``run`` is called nothing is changed.

    ``steps`` may be made while they are read: EXPLAIN alone looks at them. ``summary`` says in one
    line what the steps come to.
    """

    steps: Iterable[Step]
    run: Callable[[], Rows]
    summary: str = ""
