"""A procedure: its name, what it takes and what its rows are."""

from __future__ import annotations

from msgspec import Struct


class Parameter(Struct, frozen=True):
    """One parameter. ``kind`` is in Spark's words, with some of our own.

    They are "string", "boolean", "int", "bigint", "timestamp", "array<string>", "array<bigint>",
    "map<string, string>"; "table" is the name of a table in a string, "place" that or its
    path, "condition" a WHERE in one, "snapshot" an id or a word for it.
    ``default`` is shown; what a procedure does without a value is its own affair.
    """

    name: str
    kind: str
    required: bool = False
    default: str = ""

    @property
    def text(self) -> str:
        """As a signature shows it, such as ``retain_last int``, in brackets if optional."""
        kind = shown_kind(self.kind)
        default = f" = {self.default}" if self.default else ""
        return f"{self.name} {kind}" if self.required else f"[{self.name} {kind}{default}]"


class Procedure(Struct, frozen=True):
    """One procedure of ``system``; ``columns`` are names and kinds of its rows.

    The order of the parameters is that of arguments by position. ``changes``: it does more than
    tell.
    """

    name: str
    about: str
    parameters: tuple[Parameter, ...]
    columns: tuple[tuple[str, str], ...]
    changes: bool = True

    @property
    def signature(self) -> str:
        """Such as ``rollback_to_snapshot(table string, snapshot_id bigint)``."""
        return f"{self.name}({', '.join(each.text for each in self.parameters)})"

    @property
    def result(self) -> str:
        """Its columns, such as ``snapshot_id bigint, timestamp bigint``."""
        return ", ".join(f"{name} {_SHOWN.get(kind, kind)}" for name, kind in self.columns)


def shown_kind(kind: str) -> str:
    """A kind of parameters in Spark's words."""
    return "string" if kind in ("table", "place", "condition", "snapshot") else kind


_SHOWN = {"integer": "int", "varchar": "string"}
