"""Parameters become literal and cast nodes of the tree; text is never spliced.

Positional: ``?`` and ``$1``. Named: ``:name`` and ``$name``. One statement uses one kind.
"""

from __future__ import annotations

import datetime as dt
import numbers
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from icesql import quoting
from icesql.context import Variables
from icesql.errors import DataError, ProgrammingError
from icesql.interval import Interval
from icesql.sql.edited_text import LIST, VALUE, Edit
from icesql.sql.lexer import Span
from icesql.sql.parser.literal_list import SHORTEST, base_value, hold, list_of
from icesql.sql.positions import unsupported
from icesql.sql.trees import exp

_EPOCH: Final = dt.datetime(1970, 1, 1)
_LARGEST: Final = (1 << 127) - 1


class Parameters:
    """The values given to one ``execute``, and which of them the statements have used.

    ``inside`` is a construct without parameters, such as "a view", that is being read.
    """

    def __init__(
        self, values: Sequence[Any] | Mapping[str, Any] | None, inside: str | None = None
    ) -> None:
        if values is not None and not isinstance(values, (Mapping, Sequence)):
            raise ProgrammingError(
                f"parameters must be a sequence or a mapping, not a {type(values).__name__}"
            )
        if isinstance(values, (str, bytes, bytearray)):
            raise ProgrammingError("parameters must be a sequence, not a string; pass [value]")
        # The values as given.
        self.given = values
        self._inside = inside
        # Number of ``?`` read so far; reset to bind another tree of the same statement.
        self.place = 0
        self._label: int | str = 0
        self._used: set[int | str] = set()

    def bind(self, tree: exp.Expr, edits: list[Edit]) -> exp.Expr:
        """Return ``tree`` with every parameter replaced by its value, in the order of the text.

        ``edits`` get the SQL of the values in DuckDB's spelling, with the spans of the parameters.
        Raises ProgrammingError for a missing value, UnsupportedSqlError where parameters are not
        allowed, DataError for a value that SQL cannot hold.
        """
        found = [
            node
            for node in tree.dfs()
            if isinstance(node, exp.Placeholder)
            or (isinstance(node, exp.Parameter) and not isinstance(node.parent, exp.TableAlias))
        ]
        if found and self._inside is not None:
            raise unsupported(f"a parameter in {self._inside}", found[0], "write the value")
        # The tree of FROM t SELECT ? has the clauses in another order than the text.
        if all("start" in node.meta for node in found):
            found.sort(key=lambda node: int(node.meta["start"]))
        for node in found:
            if isinstance(node.parent, exp.In) and self._bind_list(node, node.parent, edits):
                continue
            value = self._literal(node, self._value_of(node), edits)
            if node is tree:
                return value
            node.replace(value)
        return tree

    def _literal(self, node: exp.Expr, given: Any, edits: list[Edit]) -> exp.Expr:
        """Return the literal of a parameter's value, which knows the parameter and its offset."""
        value = literal(given)
        value.meta["parameter"] = self._label
        if "start" in node.meta:
            value.meta["parameter_at"] = node.meta["start"]
        if (place := _place_of(node)) is not None:
            edits.append(Edit(*place, VALUE, write_literal(value)))
        return value

    def _bind_list(self, node: exp.Expr, parent: exp.In, edits: list[Edit]) -> bool:
        """Bind ``IN ?`` to a list, or ``IN (?, ?, …)`` if one node represents all of its ``?``."""
        count = parent.args.get("parameters")
        if count is not None and node.arg_key == "expressions":
            parent.set("parameters", None)
            values = [self._value_of(node) for _ in range(count)]
        elif node.arg_key == "field":
            given = self._value_of(node)
            if not isinstance(given, list | tuple | set | frozenset) or not given:
                node.replace(self._literal(node, given, edits))
                return True
            parent.meta["parameter"] = self._label
            values = list(given)
            parent.set("field", None)
            if (place := _place_of(node)) is not None:
                parent.meta["list"] = (*place, "(", ")")
        else:
            return False
        found = list_of(values) if len(values) >= SHORTEST else None
        if found is not None:
            hold(parent, found)
            kind, written = LIST, found.sql
        else:
            items = [literal(each) for each in values]
            kind, written = VALUE, ", ".join(map(write_literal, items))
            parent.set("expressions", items)
        if "list" in parent.meta:
            start, end, *around = parent.meta["list"]
            edits.append(Edit(start, end, kind, written, *around))
        return True

    def finish(self) -> None:
        """Raise ProgrammingError for given values that no statement used."""
        match self.given:
            case None | Variables():
                return
            case Mapping():
                spare = [str(name) for name in self.given if name not in self._used]
                # A shared dictionary often has more names than needed. That is harmless, unless
                # none of them is used.
                if spare and not self._used:
                    raise ProgrammingError(f"the statement has no parameter named {_listed(spare)}")
            case values if len(values) > (used := len(self._used)):
                raise ProgrammingError(
                    f"the statement has {used or 'no'} parameter{'s' * (used != 1)}, "
                    f"but {len(values)} "
                    f"value{'s were' if len(values) != 1 else ' was'} given"
                )

    def _value_of(self, node: exp.Expr) -> Any:
        label = _label(node)
        if label is None:
            self.place += 1
            label = self.place
        values: Any = self.given
        shown = f"${label}" if isinstance(label, int) else f":{label}"
        match values:
            case None:
                raise ProgrammingError(
                    f"the statement has a parameter ({shown}), but none was given"
                )
            case Mapping():
                if isinstance(label, int):
                    raise ProgrammingError(
                        "the statement has positional parameters (?), but a mapping was given"
                    )
                if label not in values:
                    raise ProgrammingError(
                        f"no value for the parameter :{label}; given: {_listed(list(values))}"
                    )
            case _:
                if isinstance(label, str):
                    raise ProgrammingError(
                        f"the parameter :{label} is named, but a sequence was given; give a mapping"
                    )
                if not 1 <= label <= len(values):
                    raise ProgrammingError(
                        f"no value for parameter {label}; {len(values)} "
                        f"{'was' if len(values) == 1 else 'were'} given"
                    )
        self._used.add(label)
        self._label = label
        return values[label if isinstance(label, str) else label - 1]


class ParameterReader:
    """Returns the value of ``:name``, or of the next ``?``, without marking it as used.

    For a caller that finds the parameters in the text; it begins where the parameters are now.
    """

    def __init__(self, parameters: Parameters) -> None:
        self._parameters, self._read = parameters, parameters.place

    def __call__(self, name: str | None) -> Any:
        """Return the value. Raises ProgrammingError if the statement's parameters lack it."""
        values: Any = self._parameters.given
        if name is None:
            self._read += 1
        try:
            return values[name] if name is not None else values[self._read - 1]
        except (LookupError, TypeError):
            raise ProgrammingError("the parameters are not those of the statement") from None

    def check(self) -> None:
        """Raise ProgrammingError unless the text has as many ``?`` as the tree."""
        if self._read != self._parameters.place:
            raise ProgrammingError("Spark does not accept a parameter here")


def _place_of(node: exp.Expr) -> Span | None:
    """Return the span of a parameter in the SQL."""
    if "start" in node.meta and "stop" in node.meta:
        return int(node.meta["start"]), int(node.meta["stop"])
    return None


def write_literal(node: exp.Expr) -> str:
    """Return the SQL of a node made by ``literal``, in DuckDB's spelling.

    Common nodes are written without sqlglot's generator, which takes 30 ms to import. Negative
    numbers are in parentheses: after a minus sign they would begin a comment.
    """
    match node:
        case exp.Null():
            return "NULL"
        case exp.Boolean():
            return "true" if node.this else "false"
        case exp.Literal() if node.is_string:
            return quoting.literal(str(node.this))
        case exp.Literal():
            return str(node.this)
        case exp.Neg():
            return f"(-{write_literal(node.this)})"
        case exp.Cast() if isinstance(node.to.this, exp.DataType.Type):
            plain = node.to.this == exp.DataType.Type.TIMESTAMPNTZ
            name = "TIMESTAMP" if plain else node.to.this.value
            sizes = ", ".join(str(each.name) for each in node.to.expressions)
            return f"CAST({write_literal(node.this)} AS {name}{sizes and f'({sizes})'})"
        case _:
            return str(node.sql(dialect="duckdb"))


def _label(node: exp.Expr) -> int | str | None:
    """Return the 1-based position or the name; None for the next ``?``."""
    inner = node.this
    if inner is None:
        return None
    text = inner if isinstance(inner, str) else inner.name
    return int(text) if re.fullmatch(r"[0-9]+", text) else str(text)


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(str(name) for name in names) or "none"


def literal(value: Any) -> exp.Expr:
    """Convert a Python value to a literal, cast, array or struct node with its SQL type.

    datetime without zone is TIMESTAMP, with zone TIMESTAMPTZ in UTC; Decimal keeps its scale;
    float is DOUBLE; a datetime with ``nanosecond`` is TIMESTAMP_NS. A value of a subclass (a member
    of ``class Status(str, Enum)``) is the value of its base. None and the missing values of pandas
    and numpy (NaT, NA) are NULL. Raises DataError for values without a SQL form, ProgrammingError
    for other Python types.
    """
    try:
        return _literal(value)
    except (ArithmeticError, TypeError, ValueError) as error:
        # A class breaks a promise of its base class, or a time is outside SQL's calendar.
        raise DataError(f"a {_kind(value)} cannot be a parameter: {error}") from error


def _literal(value: Any) -> exp.Expr:
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case str():
            text = base_value(value)
            if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
                raise DataError(
                    "a string with a lone surrogate (half of a character) has no SQL value"
                )
            return exp.Literal.string(text)
        case bytes() | bytearray() | memoryview():
            return exp.HexString(this=memoryview(value).tobytes().hex().upper())
        case Decimal():
            return _decimal(value)
        case dt.datetime():
            return exp.Null() if _is_missing(value) else _datetime(value)
        case dt.date():
            return _cast(dt.date.isoformat(value), exp.DataType.Type.DATE)
        case dt.time():
            if value.tzinfo is not None:
                raise DataError("a time of day with a time zone has no SQL type; give one without")
            return _cast(dt.time.isoformat(value), exp.DataType.Type.TIME)
        case dt.timedelta():
            microseconds, finer = divmod(value, dt.timedelta(microseconds=1))
            if finer:
                raise DataError("an INTERVAL counts microseconds, and no part of one")
            return exp.Interval(
                this=exp.Literal.string(str(microseconds)), unit=exp.var("MICROSECOND")
            )
        case Interval():
            return _interval(value)
        case int():
            return _integer(base_value(value))
        case float():
            return _double(base_value(value))
        case Mapping():
            return exp.Struct(
                expressions=[
                    exp.PropertyEQ(
                        this=exp.to_identifier(str(base_value(name)), quoted=True),
                        expression=_literal(item),
                    )
                    for name, item in value.items()
                ]
            )
        case list() | tuple() | set() | frozenset():
            return exp.Array(expressions=[_literal(item) for item in value])
    if _is_missing(value):
        return exp.Null()
    if type(value).__name__ in ("datetime64", "timedelta64"):
        return _numpy_time(value)
    if isinstance(value, numbers.Integral):
        return _integer(int(value))
    if isinstance(value, numbers.Real):
        return _double(float(value))
    from uuid import UUID

    if isinstance(value, UUID):
        return _cast(UUID.__str__(value), exp.DataType.Type.UUID)
    unwrap = getattr(value, "item", None)
    if callable(unwrap) and getattr(value, "shape", None) == ():
        return _literal(unwrap())
    raise _no_parameter(value)


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__name__}"


def _no_parameter(value: Any) -> ProgrammingError:
    return ProgrammingError(
        f"a {_kind(value)} cannot be a parameter; convert it to a "
        "number, text, bytes, date, time, datetime, Decimal, UUID, list or dict"
    )


def _is_missing(value: Any) -> bool:
    """True for pandas' NA, and for its NaT, which is an instance of datetime."""
    kind = type(value)
    return kind.__name__ in ("NaTType", "NAType") and kind.__module__.startswith("pandas")


def _numpy_time(value: Any) -> exp.Expr:
    """Convert numpy's datetime64 and timedelta64, some of whose units Python's types lack."""
    plain, kind = value.item(), type(value).__name__
    if not isinstance(plain, int):
        return _literal(plain)
    unit = str(value.dtype).partition("[")[2].strip("0123456789]")
    if kind == "timedelta64" and unit in ("Y", "M"):
        return _interval(Interval(months=int(value.astype("timedelta64[M]").astype("int64"))))
    if unit not in ("ns", "ps", "fs", "as"):
        raise _no_parameter(value)
    least = "us" if kind == "timedelta64" else "ns"
    shorter = value.astype(f"{kind}[{least}]")
    if shorter != value:
        raise DataError(f"{value} is finer than SQL keeps it ({least})")
    whole = shorter.astype(f"{kind}[us]")
    if whole == shorter:
        return _literal(whole.item())
    return _cast(str(shorter).replace("T", " "), exp.DataType.Type.TIMESTAMP_NS)


def _cast(text: str, to: exp.DType, *sizes: int) -> exp.Cast:
    parameters = [exp.DataTypeParam(this=exp.Literal.number(size)) for size in sizes]
    return exp.Cast(
        this=exp.Literal.string(text),
        to=exp.DataType(this=to, expressions=parameters, nested=False),
    )


def _integer(value: int) -> exp.Expr:
    if abs(value) > _LARGEST:
        raise DataError(f"the integer {value} does not fit 128 bits")
    number = exp.Literal.number(str(abs(value)))
    return exp.Neg(this=number) if value < 0 else number


def _double(value: float) -> exp.Cast:
    # A number with a point is a DECIMAL in DuckDB; the shortest text of a double reads back.
    return _cast(repr(value), exp.DataType.Type.DOUBLE)


def _decimal(value: Decimal) -> exp.Cast:
    value = Decimal(value)
    if not value.is_finite():
        raise DataError(f"Decimal('{value}') has no SQL form")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > 38:
        raise DataError(f"{value} has {precision} digits; DECIMAL holds at most 38")
    return _cast(format(value, "f"), exp.DataType.Type.DECIMAL, precision, scale)


def _interval(value: Interval) -> exp.Expr:
    parts = (("MONTH", value.months), ("DAY", value.days), ("MICROSECOND", value.microseconds))
    made: exp.Expr | None = None
    for unit, count in parts:
        if count or (made is None and unit == "MICROSECOND"):
            each = exp.Interval(this=exp.Literal.string(str(count)), unit=exp.var(unit))
            made = each if made is None else exp.Add(this=made, expression=each)
    assert made is not None
    return exp.Paren(this=made) if isinstance(made, exp.Add) else made


def _datetime(value: dt.datetime) -> exp.Cast:
    nanoseconds = int(getattr(value, "nanosecond", 0) or 0)
    aware = value.tzinfo is not None
    shift = (value.utcoffset() or dt.timedelta()) if aware else dt.timedelta()
    # Only the base class's fields, without anything that a subclass adds.
    plain = dt.datetime.combine(dt.datetime.date(value), dt.datetime.time(value))
    if plain.year != value.year:
        raise DataError(f"the year {value.year} is none of a datetime; give the time as text")
    text = (plain - shift).isoformat(" ", timespec="microseconds")
    if nanoseconds:
        # icesql's nanosecond datetimes count 0 to 999 below the microsecond, as pandas' do.
        if aware:
            raise DataError(
                "a nanosecond time with a zone cannot be a parameter; give it in UTC "
                "without zone, or as text"
            )
        return _cast(f"{text}{nanoseconds % 1000:03d}", exp.DataType.Type.TIMESTAMP_NS)
    if aware:
        return _cast(f"{text}+00:00", exp.DataType.Type.TIMESTAMPTZ)
    return _cast(text, exp.DataType.Type.TIMESTAMPNTZ)
