"""Which changes of a table a reference selects: ``CHANGES FROM VERSION a TO VERSION b``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from icesql.frozen import Frozen
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.time_travel import TimeTravel, travel_of

if TYPE_CHECKING:
    from sqlglot import exp

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
