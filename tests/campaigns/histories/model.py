"""What a table has to hold: commits in their order, each by the rules of its own isolation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any


class Fault(AssertionError):
    """Something that must not be."""


class MustConflict(Exception):
    """A statement that saw this, and meets that, may not commit."""


class Row:
    """One version of a row: its values by field id, and its row id once that was seen."""

    __slots__ = ("cells", "parent", "row_id")

    def __init__(self, cells: dict[int, Any], parent: Row | None = None) -> None:
        self.cells, self.parent = cells, parent
        self.row_id: int | None = None if parent is None else parent.row_id


class Made(dict[Any, Row]):
    """The rows that a statement makes, each once: by what it makes them of."""

    def of(self, key: Any, cells: dict[int, Any], parent: Row | None = None) -> Row:
        """The row made of ``key``."""
        if key not in self:
            self[key] = Row(dict(cells), parent)
        return self[key]


Rows = tuple[Row, ...]
# What a statement makes of the rows that are there when it commits, and of those that it read.
Effect = Callable[[Rows, Rows], Rows]
Test = Callable[[Row], bool]


@dataclass(frozen=True)
class Part:
    """What a statement does to a branch of a table."""

    table: str
    effect: Effect
    branch: str = "main"


# ------------------------------------------------------------------ effects


def inserted(cells: Sequence[dict[int, Any]]) -> Effect:
    """New rows."""
    made = Made()

    def effect(now: Rows, seen: Rows) -> Rows:
        return (*now, *(made.of(number, each) for number, each in enumerate(cells)))

    return effect


def copied(test: Test, change: Callable[[Row], dict[int, Any]]) -> Effect:
    """New rows that are made of the rows that the statement saw."""

    def effect(now: Rows, seen: Rows) -> Rows:
        return (*now, *(Row(change(each)) for each in seen if test(each)))

    return effect


def same(now: Rows, seen: Rows) -> Rows:
    """No row is changed."""
    return now


def deleted(test: Test, *, as_seen: bool = False, vectors: bool = False) -> Effect:
    """Rows that go; ``as_seen``, those that the statement saw and no others.

    With ``vectors`` a row that goes may not have become another one meanwhile.
    """

    def effect(now: Rows, seen: Rows) -> Rows:
        if not as_seen:
            return tuple(each for each in now if not test(each))
        gone = {id(each) for each in seen if test(each)}
        if vectors and any(_comes_from(each, gone) for each in now if id(each) not in gone):
            raise MustConflict("a row that it deletes was updated")
        return tuple(each for each in now if id(each) not in gone)

    return effect


def updated(test: Test, change: Callable[[Row], dict[int, Any]], *, as_seen: bool) -> Effect:
    """Rows that become others. ``as_seen``: those that the statement saw, which must be there."""
    made = Made()

    def new(row: Row) -> Row:
        return made.of(row, change(row), row)

    def effect(now: Rows, seen: Rows) -> Rows:
        if not as_seen:
            return tuple(new(each) if test(each) else each for each in now)
        wanted = {id(each) for each in seen if test(each)}
        if wanted - {id(each) for each in now}:
            raise MustConflict("a row that it updates is gone")
        return tuple(new(each) if id(each) in wanted else each for each in now)

    return effect


def merged(
    key: Callable[[Row], Any],
    source: dict[Any, dict[int, Any]],
    matched: Callable[[Row, dict[int, Any]], dict[int, Any] | None],
    *,
    inserts: bool,
    as_seen: bool,
) -> Effect:
    """A MERGE by key: matched rows become others or go, the rest of the source comes."""
    new_rows = Made()

    def effect(now: Rows, seen: Rows) -> Rows:
        read = seen if as_seen else now
        hit = {id(each) for each in read if key(each) in source}
        if hit - {id(each) for each in now}:
            raise MustConflict("a row that it changes is gone")
        made: list[Row] = []
        for each in now:
            if id(each) not in hit:
                made.append(each)
                continue
            cells = matched(each, source[key(each)])
            made += [] if cells is None else [new_rows.of(each, cells, each)]
        known = {key(each) for each in read}
        new = [found for found in source if found not in known] if inserts else []
        return (*made, *(new_rows.of(each, source[each]) for each in new))

    return effect


def replaced(test: Test, cells: Sequence[dict[int, Any]]) -> Effect:
    """Rows that go and others that come, as one."""

    def effect(now: Rows, seen: Rows) -> Rows:
        return (
            *(each for each in now if not test(each)),
            *(Row(dict(each)) for each in cells),
        )

    return effect


def _comes_from(row: Row, gone: set[int]) -> bool:
    above = row.parent
    while above is not None:
        if id(above) in gone:
            return True
        above = above.parent
    return False


# ------------------------------------------------------------------ a table


@dataclass
class TableModel:
    """A table as it has to be; ``document`` is its metadata as it was last seen."""

    name: str
    document: dict[str, Any] | None = None
    place: str | None = None
    heads: dict[str, int] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=dict)
    snapshots: dict[int, Rows | None] = field(default_factory=dict)
    # The field ids of the columns that it was made with.
    ids: dict[str, int] = field(default_factory=dict)
    respecced: bool = False
    upgraded: bool = False
    keyed: bool = False  # it has equality deletes

    def at(self, branch: str) -> Rows:
        """The rows of a branch."""
        return self.rows.get(branch, ())

    def schema(self, schema_id: int | None = None) -> list[dict[str, Any]]:
        """The fields of a schema, by default the current one."""
        assert self.document is not None
        wanted = self.document["current-schema-id"] if schema_id is None else schema_id
        for each in self.document["schemas"]:
            if each["schema-id"] == wanted:
                fields: list[dict[str, Any]] = each["fields"]
                return fields
        raise Fault(f"{self.name} has no schema {wanted}")

    def names(self) -> dict[str, str]:
        """What the first columns are called now."""
        called = {each["id"]: each["name"] for each in self.schema()}
        return {own: called[number] for own, number in self.ids.items() if number in called}

    def type_of(self, own: str) -> Any:
        """The type of one of the first columns."""
        return {each["id"]: each["type"] for each in self.schema()}.get(self.ids[own])

    @property
    def version(self) -> int:
        """The format version."""
        assert self.document is not None
        return int(self.document["format-version"])

    def shown(self, rows: Iterable[Row], schema_id: int | None = None) -> list[tuple[Any, ...]]:
        """Rows as a query of all columns tells them."""
        fields = self.schema(schema_id)
        return [
            tuple(row.cells.get(each["id"], each.get("initial-default")) for each in fields)
            for row in rows
        ]

    def new_head(self, branch: str, states: Sequence[Rows]) -> None:
        """The branch went on by a snapshot for each state."""
        assert self.document is not None
        head = self.document["refs"][branch]["snapshot-id"]
        parents = {
            each["snapshot-id"]: each.get("parent-snapshot-id")
            for each in self.document["snapshots"]
        }
        chain = list[int]()
        current: int | None = head
        while current is not None and current in parents and current not in self.snapshots:
            chain.insert(0, current)
            current = parents[current]
        before = self.rows.get(branch, ())
        alike = all(tuple(map(id, each)) == tuple(map(id, before)) for each in states)
        for number, each in enumerate(chain):
            if len(chain) == len(states):
                self.snapshots[each] = states[number]
            else:
                self.snapshots[each] = states[-1] if alike or each == head else None
        self.rows[branch], self.heads[branch] = states[-1], head


def outcomes(parts: Sequence[Part], now: Rows, candidates: Iterable[Rows]) -> Iterator[list[Rows]]:
    """What may come of a statement, by what it may have read: the rows after each of its changes.

    A part of a transaction that changed none of the rows that it read is no change.
    """
    candidates = [*candidates]
    for seen in candidates:
        first = parts[0].effect(seen, seen) if len(parts) > 1 else ()
        if len(parts) > 1 and [*map(id, first)] == [*map(id, seen)]:
            # The table is the transaction's from its first change on: the next part looks again.
            yield from outcomes(parts[1:], now, candidates)
        if len(parts) > 1:
            yield from _taken_later(parts, now, seen)
        state, states = now, list[Rows]()
        try:
            for part in parts:
                made = part.effect(seen, seen)
                if len(parts) > 1 and [*map(id, made)] == [*map(id, seen)]:
                    continue
                state = made if state is seen else part.effect(state, seen)
                seen = made
                states.append(state)
        except MustConflict:
            continue
        yield states or [now]


def _taken_later(parts: Sequence[Part], now: Rows, seen: Rows) -> Iterator[list[Rows]]:
    """What comes of a transaction that has its table as its first change left it.

    That statement changed the rows that it had read in what was there by then, as one outside of a
    transaction does; those behind it read the result.
    """
    try:
        states = [parts[0].effect(now, seen)]
        for part in parts[1:]:
            made = part.effect(states[-1], states[-1])
            if [*map(id, made)] != [*map(id, states[-1])]:
                states.append(made)
    except MustConflict:
        return
    yield states


def difference(found: Iterable[Any], wanted: Iterable[Any]) -> str:
    """How two collections differ, empty where they do not."""
    one, other = Counter(map(repr, found)), Counter(map(repr, wanted))
    lost, extra = [*(other - one).elements()], [*(one - other).elements()]
    if not lost and not extra:
        return ""
    return f"{len(lost)} lost {lost[:4]}, {len(extra)} extra {extra[:4]}"
