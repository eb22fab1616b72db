"""Which snapshot, or which changes, of a table a reference selects, as a value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

from icesql.frozen import Frozen
from icesql.sql.keywords import word_set
from icesql.sql.positions import syntax_error, unsupported

if TYPE_CHECKING:
    from sqlglot import exp


class SnapshotId(Frozen):
    """The snapshot with this id."""

    id: int


class VersionText(Frozen):
    """A branch or tag name; a text of digits is a snapshot id first and a ref name second.

    ``may_be_time``: other digits are a time, as in Delta (``t@yyyyMMddHHmmssSSS``) and BigQuery
    (``t@milliseconds``).
    """

    text: str
    may_be_time: bool = False


class AsOf(Frozen):
    """The snapshot that was current at an instant: microseconds since 1970-01-01 00:00 UTC.

    ``text`` is the user's text, for reports and errors.
    """

    epoch_us: int
    text: str


class AtTime(Frozen):
    """The snapshot that was current at a time, an expression that binding folds to an instant.

    ``numbers_are_seconds``: a bare number is a time in epoch seconds (Spark's rule).
    ``offset`` is the start of the clause in the SQL, for errors.
    """

    expression: exp.Expr
    text: str
    numbers_are_seconds: bool = False
    offset: int | None = None


class Before(Frozen):
    """The snapshot that was current just before a time, or before a snapshot was committed."""

    travel: SnapshotId | VersionText | AsOf | AtTime | ByQuery


class BranchAt(Frozen):
    """The snapshot that was the head of a branch at a time."""

    branch: str
    time: AsOf | AtTime


class ByQuery(Frozen):
    """Time travel by the one value of a query, which runs before the statement is bound.

    ``sql`` has blanks before the query, so that its offsets stay; ``text`` is the query alone.
    ``kind`` is the kind of the value: "VERSION", "TIMESTAMP" or "TEXT" for either.
    """

    sql: str
    text: str
    kind: str = "TEXT"
    numbers_are_seconds: bool = False
    offset: int | None = None


class Back(Frozen):
    """The snapshot ``commits`` commits before the current one, or before the head of ``ref``."""

    commits: int
    ref: str | None = None


TimeTravel = SnapshotId | VersionText | AsOf | AtTime | BranchAt | ByQuery | Before | Back

# Java's ids have 63 bits, those of other writers up to 128.
_LONGEST_ID: Final = 40
_REF_KINDS: Final = word_set("BRANCH TAG VERSION_TAG VERSION_REF")
# A text that begins with a date, or gives a time relative to now, is not a branch name.
_TIME: Final = re.compile(
    r"(?i)\s*(?:\d{4}-\d{1,2}-\d{1,2}|now\s*$|today|yesterday|-\s*\d|\d++\s*+\w++\s+ago)"
)


def is_back(text: str) -> bool:
    """True if a text is a number of commits to go back: ``-1``."""
    return re.fullmatch(r"-[1-9]\d{0,8}", text) is not None


def is_time(text: str) -> bool:
    """True if a text that may be a version or a time is a time."""
    return _TIME.match(text) is not None


def travel_of(
    kind: str, value: exp.Expr, *, seconds: bool, offset: int | None, text: str = ""
) -> TimeTravel:
    """Return the time travel of a kind by a value; ``text`` is the value as the user wrote it.

    The kinds are those of ``sql/parser/travel``, the parameters in the value are bound. Raises
    SqlSyntaxError, UnsupportedSqlError.
    """
    if kind == "BRANCH AT":
        return _branch_at(value, seconds, offset, text)
    if kind.endswith(" BEFORE"):
        at = kind.removesuffix(" BEFORE")
        travel = travel_of(at, value, seconds=seconds, offset=offset, text=text)
        if isinstance(travel, Before | Back | BranchAt):
            raise unsupported(f"BEFORE {written_value(value)}", offset, "count one commit more")
        return Before(travel)
    if query := value.meta.get("query"):
        if kind == "OFFSET":
            raise unsupported("a query after OFFSET", offset, "use TIMESTAMP => (SELECT …)")
        wanted = kind if kind in ("TIMESTAMP", "TEXT") else "VERSION"
        placed, inner = query
        return ByQuery(placed, inner, wanted, seconds, offset)
    if kind == "TEXT":
        kind = _kind_of(value)
    if kind == "MILLISECONDS":
        return AsOf(int(value.name) * 1000, value.name)
    if kind == "AT SIGN":
        return VersionText(value.name, may_be_time=True)
    if kind == "OFFSET":
        return AtTime(_after_now(value), f"now and {written_value(value)} s", seconds, offset)
    if kind == "TIMESTAMP":
        return AtTime(value, text or written_value(value), seconds, offset)
    return _version(value, kind, offset)


def _branch_at(both: exp.Expr, seconds: bool, offset: int | None, text: str) -> BranchAt:
    """Read ``AT BRANCH b AS OF 'time'``."""
    name, value = both.expressions
    branch = _version(name, "BRANCH", offset)
    time = travel_of("TIMESTAMP", value, seconds=seconds, offset=offset, text=text)
    if not isinstance(branch, VersionText) or not isinstance(time, AtTime):
        raise unsupported("a query for a branch at a time", offset, "write a constant time")
    return BranchAt(branch.text, time)


def _kind_of(value: exp.Expr) -> str:
    """Return whether a value without a keyword before it is a version or a time."""
    from sqlglot import exp

    match value:
        case exp.Literal() if value.is_string:
            return "TIMESTAMP" if is_time(value.name) else "VERSION"
        case exp.Literal() | exp.Column() | exp.Identifier() | exp.Neg(this=exp.Literal()):
            return "VERSION"
        case exp.Cast(to=to) if to.is_type(*exp.DataType.INTEGER_TYPES, *exp.DataType.TEXT_TYPES):
            return "VERSION"
        case _:
            return "TIMESTAMP"


def _after_now(seconds: exp.Expr) -> exp.Expr:
    """Return the current time plus a number of seconds, which may be negative."""
    from sqlglot import exp

    second = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("SECOND"))
    return exp.Add(
        this=exp.CurrentTimestamp(),
        expression=exp.Paren(this=exp.Mul(this=second, expression=exp.Paren(this=seconds))),
    )


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
        case exp.Neg(this=exp.Literal()) if value.this.name.isdigit() and not only_refs:
            if len(value.this.name) > _LONGEST_ID:
                raise syntax_error("no table has so many commits", offset)
            return Back(int(value.this.name))
        case exp.Cast() if isinstance(value.this, exp.Literal):
            # CAST('7635660646343998149' AS BIGINT), or a bound parameter.
            if value.to.is_type(*exp.DataType.INTEGER_TYPES) and str(value.this.this).isdigit():
                return _version(exp.Literal.number(value.this.this), kind, offset)
            if value.to.is_type(*exp.DataType.TEXT_TYPES):
                return _version(exp.Literal.string(value.this.this), kind, offset)
    wanted = "a branch or tag name" if only_refs else "a snapshot id, a branch or a tag"
    raise syntax_error(
        f"{written_value(value)} is not {wanted}; a version must be a constant; quote names "
        "that contain other characters than letters, digits and _",
        offset,
    )


def written_value(value: Any) -> str:
    """Return the value of a time-travel clause for messages, in DuckDB's spelling."""
    from sqlglot.errors import SqlglotError

    try:
        return str(value.sql(dialect="duckdb"))
    except SqlglotError:  # a call that DuckDB's spelling does not allow without arguments
        return str(value.sql())


# ------------------------------------------------------------------ changes
# ``CHANGES FROM VERSION a TO VERSION b`` as a value.


Deduplication = Literal["none", "dropCarryovers", "netChanges"]
_DEDUPLICATION: Final[dict[str, Deduplication]] = {
    each.lower(): each for each in ("none", "dropCarryovers", "netChanges")
}
OPTIONS: Final = ("deduplicationMode", "computeUpdates")


class ChangeRange(Frozen):
    """The commits after ``start`` up to ``end``; None is the first, or the current, state.

    ``keys`` are the columns that identify a row in its versions. ``offset`` is the start of the
    clause in the SQL, for errors. ``direct``: compare the two states, whatever lies between them.
    ``appends_only``: skip commits that do anything but append. ``blame``: go back as far as the
    history is known, and return who committed; rows that existed before it are "present".
    """

    start: TimeTravel | None
    end: TimeTravel | None
    includes_start: bool = False
    includes_end: bool = True
    deduplication: Deduplication = "dropCarryovers"
    compute_updates: bool = False
    keys: tuple[str, ...] = ()
    direct: bool = False
    appends_only: bool = False
    blame: bool = False
    offset: int | None = None


def read_changes(clause: exp.Expr, *, seconds: bool) -> ChangeRange:
    """Return the value of a clause from ``sql/parser/travel/changes.py``, with parameters bound.

    Raises SqlSyntaxError, UnsupportedSqlError.
    """
    offset = clause.meta.get("start")
    ends: list[TimeTravel | None] = []
    for bound, name in zip(clause.args["expression"].expressions, ("from", "to"), strict=True):
        bound_words: dict[str, Any] = clause.meta[name]
        if not bound_words:
            ends.append(None)
            continue
        kind, place = bound_words["kind"], bound_words["start"]
        text = bound_words["text"] if clause.meta["text"] else ""
        ends.append(travel_of(kind, bound, seconds=seconds, offset=place, text=text))
    options: dict[str, str] = clause.meta["options"]
    mode = options.get("deduplicationmode", "dropcarryovers").lower()
    if mode not in _DEDUPLICATION:
        raise syntax_error(
            f"deduplicationMode {mode}", offset, tuple(sorted(_DEDUPLICATION.values()))
        )
    compares = "direct" in options or "blame" in options
    by_key = "true" if compares and clause.meta["keys"] else "false"
    updates = options.get("computeupdates", by_key).lower()
    if updates not in ("true", "false"):
        raise syntax_error(f"computeUpdates {updates}", offset, ("true", "false"))
    if updates == "true" and mode == "none":
        raise unsupported(
            "computeUpdates with deduplicationMode none",
            offset,
            "rows carried over would be updates",
        )
    return ChangeRange(
        start=ends[0],
        end=ends[1],
        includes_start=bool(clause.meta["from"].get("included", False)),
        includes_end=bool(clause.meta["to"].get("included", True)),
        deduplication=_DEDUPLICATION[mode],
        compute_updates=updates == "true",
        keys=tuple(clause.meta["keys"]),
        direct="direct" in options,
        appends_only="appends" in options,
        blame="blame" in options,
        offset=offset,
    )
