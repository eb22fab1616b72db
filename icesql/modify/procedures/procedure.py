"""A procedure: its name, parameters, result columns and planner; and what a plan consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final

from icesql.frozen import Frozen
from icesql.modify.procedures import system
from icesql.query.like import is_like

if TYPE_CHECKING:
    from icesql.iceberg.manifest.data_file import DataFile
    from icesql.modify.procedures.call import Call

Columns = tuple[tuple[str, str], ...]


class Parameter(Frozen):
    """One parameter. ``kind`` is a type name of Spark, or one of our own.

    The kinds are "string", "boolean", "int", "bigint", "timestamp", "array<string>",
    "array<bigint>", "map<string, string>"; "table" is a string with the name of a table, "place"
    one with a name or a path, "condition" one with a WHERE condition, "snapshot" one with a
    snapshot id or a word for it. ``default`` is only shown; each procedure handles a missing value
    itself.
    """

    name: str
    kind: str
    default: str = ""
    required: bool = False

    @property
    def text(self) -> str:
        """As in a signature, such as ``retain_last int``; in brackets if optional."""
        kind = shown_kind(self.kind)
        default = f" = {self.default}" if self.default else ""
        return f"{self.name} {kind}" if self.required else f"[{self.name} {kind}{default}]"


class Procedure(Frozen):
    """One procedure of ``system``; ``columns`` are names and types of its result columns.

    Positional arguments follow the order of ``parameters``. ``plan`` changes nothing.
    ``changes``: running the procedure changes something.
    """

    name: str
    about: str
    parameters: tuple[Parameter, ...]
    columns: Columns
    plan: Callable[[Call], Plan]
    changes: bool = True

    @property
    def signature(self) -> str:
        """Such as ``rollback_to_snapshot(table string, snapshot_id bigint)``."""
        return f"{self.name}({', '.join(each.text for each in self.parameters)})"

    @property
    def result(self) -> str:
        """The result columns, such as ``snapshot_id bigint, timestamp bigint``."""
        return ", ".join(f"{name} {_SHOWN.get(kind, kind)}" for name, kind in self.columns)


def procedure(
    about: str, *parameters: Parameter, rows: str, changes: bool = True
) -> Callable[[Callable[[Call], Plan]], Procedure]:
    """Decorate a planning function: a procedure with the name of the function and of its file.

    ``rows`` are the result columns, such as "snapshot_id bigint, timestamp bigint".
    """
    columns = tuple((name, kind) for name, kind in map(str.split, rows.split(", ")))

    def of(plan: Callable[[Call], Plan]) -> Procedure:
        return Procedure(plan.__name__, about, parameters, columns, plan, changes)

    return of


def required(name: str, kind: str) -> Parameter:
    """A parameter that a CALL must give."""
    return Parameter(name, kind, required=True)


def procedure_names() -> list[str]:
    """The names of all procedures, in order."""
    return sorted(each.name for each in iter_modules(system.__path__))


def find_procedure(name: str) -> Procedure:
    """The procedure with a name from ``procedure_names``."""
    found: Procedure = getattr(import_module(f"{system.__name__}.{name}"), name)
    return found


def list_procedures(like: str | None) -> tuple[Columns, list[tuple[Any, ...]]]:
    """SHOW PROCEDURES: the columns, and a row for each name that matches; case is ignored."""
    names = [each for each in procedure_names() if like is None or is_like(each, like.lower())]
    return _LISTED, [
        (f"system.{each.name}", each.signature, each.result, each.about)
        for each in map(find_procedure, names)
    ]


def shown_kind(kind: str) -> str:
    """The kind of a parameter as a type name of Spark."""
    return "string" if kind in ("table", "place", "condition", "snapshot") else kind


_SHOWN: Final = {"integer": "int", "varchar": "string"}
_LISTED: Final = (
    ("procedure", "varchar"), ("signature", "varchar"), ("result", "varchar"),
    ("description", "varchar"),
)  # fmt: skip

# Parameters and columns that several procedures share, as in Spark.
# Source: Java ``org.apache.iceberg.spark.procedures``.
TABLE: Final = required("table", "table")
PLACE: Final = required("table", "place")
SNAPSHOT: Final = Parameter("snapshot_id", "bigint", "the current one")
BRANCH: Final = Parameter("branch", "string", "main")
OPTIONS: Final = Parameter("options", "map<string, string>")
PROPERTIES: Final = Parameter("properties", "map<string, string>")
AT_ONCE: Final = Parameter("max_concurrent_deletes", "int")
WHERE: Final = Parameter("where", "condition")
# Follows all of Spark's parameters.
BELOW: Final = Parameter("delete_below", "array<string>", "the setting delete_below")
MOVED: Final = "previous_snapshot_id bigint, current_snapshot_id bigint"
PICKED: Final = "source_snapshot_id bigint, current_snapshot_id bigint"


class Step(Frozen):
    """One thing that is read, written, removed, kept or set, and the reason.

    ``action`` is "read", "write", "remove", "keep", "set" or "call". ``what`` is the kind of thing:
    "data file", "delete file", "manifest", "manifest list", "snapshot", "branch" … ``name`` is a
    path, an id, a name or a statement; for something that is not written yet it is a description in
    brackets. Sizes are None where metadata does not record them.
    """

    action: str
    what: str
    name: str
    reason: str
    bytes: int | None = None
    records: int | None = None

    @classmethod
    def of_file(cls, action: str, what: str, file: DataFile, reason: str) -> Step:
        """The step for a data file or delete file."""
        return cls(action, what, file.path, reason, file.file_size_in_bytes, file.record_count)


class Rows(Frozen):
    """The result rows of a procedure, in the order of its columns, and a note for the user."""

    rows: Sequence[tuple[Any, ...]]
    note: str = ""
    snapshot_id: int | None = None


class Plan(Frozen):
    """The steps of a CALL, and the function that carries them out; only ``run`` changes anything.

    ``steps`` may be computed lazily: only EXPLAIN reads them. ``summary`` gives their total in one
    line.
    """

    steps: Iterable[Step]
    run: Callable[[], Rows]
    summary: str = ""
