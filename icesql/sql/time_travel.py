"""Which snapshot a reference asks for: a travel clause becomes one of four values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from icesql.sql.positions import syntax_error, unsupported

if TYPE_CHECKING:
    from sqlglot import exp


class SnapshotId(Struct, frozen=True):
    """The snapshot with this id."""

    id: int


class VersionText(Struct, frozen=True):
    """A branch or tag name; a text of digits is a snapshot id first and a ref name second."""

    text: str


class AsOf(Struct, frozen=True):
    """The snapshot that was current at an instant: microseconds since 1970-01-01 00:00 UTC.

    ``text`` is what the user wrote, for reports and errors.
    """

    epoch_us: int
    text: str


class AtTime(Struct, frozen=True):
    """The snapshot that was current at a time, an expression that binding folds to an instant.

    ``numbers_are_seconds``: a bare number is a time in epoch seconds (Spark's rule).
    ``offset`` is where the clause begins in the SQL, for errors.
    """

    expression: exp.Expr
    text: str
    numbers_are_seconds: bool = False
    offset: int | None = None


TimeTravel = SnapshotId | VersionText | AsOf | AtTime

# Java's ids have 63 bits, those of other writers up to 128.
_LONGEST_ID: Final = 40
_REF_KINDS: Final = frozenset({"BRANCH", "TAG", "VERSION_TAG", "VERSION_REF"})


def read_travel(clause: exp.Expr, *, seconds: bool) -> TimeTravel:
    """The value of a parsed travel clause.

    ``clause`` is sqlglot's Version or HistoricalData as ``sql/dialect.py`` makes them, with
    parameters already bound. Raises SqlSyntaxError, UnsupportedSqlError.
    """
    kind = str(clause.args["this"] if clause.key == "version" else clause.args["kind"]).upper()
    value = clause.args["expression"]
    offset = clause.meta.get("start")
    if kind == "TIMESTAMP":
        written = clause.meta.get("text") or ""
        if not written or clause.meta.get("has_parameter"):
            written = value.sql(dialect="duckdb")
        return AtTime(value, written, seconds, offset)
    return _version(value, kind, offset)


def _version(value: exp.Expr, kind: str, offset: int | None) -> TimeTravel:
    from sqlglot import exp

    only_refs = kind in _REF_KINDS
    match value:
        case exp.Paren():
            return _version(value.this, kind, offset)
        case exp.Literal() if value.is_string:
            text = str(value.this)
            if not text:
                raise syntax_error("an empty text names no branch or tag", offset)
            return VersionText(text)
        case exp.Literal() if str(value.this).isdigit() and not only_refs:
            if len(str(value.this)) > _LONGEST_ID:
                raise syntax_error(f"{value.this} is too large for a snapshot id", offset)
            return SnapshotId(int(value.this))
        case exp.Column() if isinstance(value.this, exp.Identifier) and not value.table:
            return VersionText(value.name)
        case exp.Identifier():
            return VersionText(value.name)
        case exp.Neg():
            raise unsupported(
                f"the negative version {value.sql()}",
                offset,
                "name a snapshot id, a branch or a tag",
            )
        case exp.Cast() if isinstance(value.this, exp.Literal):
            # CAST('7635660646343998149' AS BIGINT), and what a parameter becomes.
            if value.to.is_type(*exp.DataType.INTEGER_TYPES) and str(value.this.this).isdigit():
                return _version(exp.Literal.number(value.this.this), kind, offset)
            if value.to.is_type(*exp.DataType.TEXT_TYPES):
                return _version(exp.Literal.string(value.this.this), kind, offset)
        case _:
            pass
    wanted = "a branch or tag name" if only_refs else "a snapshot id, a branch or a tag"
    raise syntax_error(
        f"{_shown(value)} is not {wanted}; a version must be a constant; quote names "
        "that contain other characters than letters, digits and _",
        offset,
    )


def _shown(value: Any) -> str:
    return str(value.sql(dialect="duckdb"))
