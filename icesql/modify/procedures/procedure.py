"""A procedure: its name, parameters and planner, the plan, and the check of a CALL's arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final

from icesql.config import property_text
from icesql.errors import ProgrammingError, nearest
from icesql.frozen import Frozen
from icesql.modify.procedures import system
from icesql.query.show_request import is_like
from icesql.sql.table_name import name_parts
from icesql.sql.writes.procedure_calls import CallArgument, Duration
from icesql.sql.writes.statements import TableName

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


# ------------------------------------------------------------------ arguments


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def bind(
    procedure: Procedure, given: Sequence[CallArgument], *, zone: tzinfo, now_ms: int
) -> tuple[dict[str, Any], dict[str, int | None]]:
    """The value of each parameter, None for missing arguments, and the offsets of the given ones.

    See ``Parameter`` for the kinds. A timestamp is in milliseconds since 1970; a map is a dict of
    strings, an array a tuple. ``zone`` applies to timestamps without a zone.
    Arguments by position come before those by name. NULL counts as missing. Raises
    ProgrammingError, with the signature, for an unknown, repeated, missing or invalid argument.
    """
    parameters = {each.name: each for each in procedure.parameters}
    values: dict[str, Any] = {}
    offsets: dict[str, int | None] = {}
    named = False
    for place, each in enumerate(given):
        name = each.name.lower()
        if not name:
            if named:
                problem = "an argument by position follows one by name"
                raise unfit(procedure, problem, each.offset)
            if place >= len(procedure.parameters):
                problem = f"it takes {len(parameters)} arguments, not {len(given)}"
                raise unfit(procedure, problem, each.offset)
            name = procedure.parameters[place].name
        else:
            named = True
        if name not in parameters:
            hint = nearest(name, parameters)
            raise unfit(procedure, f"there is no parameter {each.name}{hint}", each.offset)
        if name in values:
            raise unfit(procedure, f"{name} is given twice", each.offset)
        offsets[name] = each.offset
        values[name] = None
        if each.value is not None:
            values[name] = _fit(procedure, parameters[name], each, zone, now_ms)
    for parameter in procedure.parameters:
        if parameter.required and values.get(parameter.name) is None:
            raise unfit(procedure, f"{parameter.name} is missing", offsets.get(parameter.name))
        values.setdefault(parameter.name, None)
    return values, offsets


def unfit(procedure: Procedure, problem: str, offset: int | None) -> ProgrammingError:
    """The error for arguments that the procedure cannot take."""
    hint = f"; the signature is {procedure.signature}"
    return hinted(f"CALL {procedure.name}: {problem}", hint, offset)


def hinted(problem: str, hint: str, offset: int | None) -> ProgrammingError:
    """An error at an offset of the text, with a hint."""
    error = ProgrammingError(f"{problem}{hint}")
    error.sql_offset, error.hint_length = offset, len(hint)
    return error


def _fit(
    procedure: Procedure, parameter: Parameter, given: CallArgument, zone: tzinfo, now_ms: int
) -> Any:
    """The value converted to the parameter's kind."""
    value = given.value
    try:
        match parameter.kind:
            case "timestamp":
                return _instant(value, zone, now_ms)
            case "table" | "place" if isinstance(value, TableName):
                return value
            case "table" | "place" as kind if kind == "table" or "/" not in _text(value):
                parts = name_parts(_text(value))
                if not all(parts):
                    problem = f"{parameter.name} is {value!r}, which is no name of a table"
                    raise unfit(procedure, problem, given.offset)
                return TableName(parts, given.offset)
            case "snapshot" if not isinstance(value, str):
                return str(_long(value))
            case kind:
                read: Callable[[Any], Any] = _READERS.get(kind, _text)
                return read(value)
    except _Unfit:
        kind, shown = shown_kind(parameter.kind), repr(value)
        shown = shown if len(shown) <= 60 else f"{shown[:59]}…"
        problem = f"{parameter.name} is {shown}, and takes {_ARTICLES.get(kind, 'a')} {kind}"
        raise unfit(procedure, problem, given.offset) from None


_ARTICLES: Final = {"int": "an", "array<string>": "an", "array<bigint>": "an"}


class _Unfit(Exception):
    """The value has a wrong kind or is out of range."""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Unfit
    return value


def _whole(value: Any, most: int) -> int:
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Unfit
    if not -most - 1 <= value <= most:
        raise _Unfit
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Unfit
    return value


def _array(item: Callable[[Any], Any], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _Unfit
    return tuple(map(item, value))


def _map(value: Any) -> dict[str, str]:
    """Keys have to be strings; values may also be numbers and booleans."""
    if not isinstance(value, dict):
        raise _Unfit
    found = {}
    for key, each in value.items():
        if not isinstance(key, str) or not isinstance(each, str | int | Decimal | float | bool):
            raise _Unfit
        found[key] = property_text(each)
    return found


_long: Final = partial(_whole, most=2**63 - 1)
# By the kind of a parameter; other kinds are texts.
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "int": partial(_whole, most=2**31 - 1),
    "bigint": _long,
    "boolean": _boolean,
    "array<string>": partial(_array, _text),
    "array<bigint>": partial(_array, _long),
    "map<string, string>": _map,
}


def _instant(value: Any, zone: tzinfo, now_ms: int) -> int:
    """Convert a time, a date, or either as a string to milliseconds since 1970."""
    if isinstance(value, Duration):
        return now_ms - value.milliseconds
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise _Unfit from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise _Unfit
    if value.tzinfo is None:
        value = value.replace(tzinfo=zone)
    # astimezone() fails near the ends of datetime's range.
    return int((value - _EPOCH) // timedelta(milliseconds=1))
