"""A model of a table's contents: commits in order, each by the rules of its isolation level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.writer.model import path_to, shown
from tests.writer.model import seen as as_seen_by_users
from tests.writer.values import from_json


class Fault(AssertionError):
    """A violation of the rules."""


class MustConflict(Exception):
    """A statement that saw these rows may not commit on the current ones."""


# Values by field id, also inside of structs; missing ones are the column's default.
Cells = dict[int, Any]


class Row:
    """One version of a row: its values, and its row id once it was seen."""

    __slots__ = ("cells", "parent", "row_id")

    def __init__(self, cells: Cells, parent: Row | None = None) -> None:
        self.cells, self.parent = cells, parent
        self.row_id: int | None = None if parent is None else parent.row_id


class Made(dict[Any, Row]):
    """The rows that a statement creates, each once, by the row that it is made from."""

    def of(self, key: Any, cells: Cells, parent: Row | None = None) -> Row:
        """The row made from ``key``."""
        if key not in self:
            self[key] = Row(dict(cells), parent)
        return self[key]


Rows = tuple[Row, ...]
# Computes a statement's result from the rows at its commit and the rows that it read.
Effect = Callable[[Rows, Rows], Rows]
# SQL's three truth values: a row matches only if the value is True.
Test = Callable[[Row], bool | None]


@dataclass(frozen=True)
class Part:
    """The effect of a statement on a branch of a table."""

    table: str
    effect: Effect
    branch: str = "main"


# ------------------------------------------------------------------ effects


def inserted(cells: Sequence[Cells]) -> Effect:
    """New rows."""
    made = Made()

    def effect(now: Rows, seen: Rows) -> Rows:
        return (*now, *(made.of(number, each) for number, each in enumerate(cells)))

    return effect


def copied(test: Test, change: Callable[[Row], Cells]) -> Effect:
    """New rows made from the rows that the statement saw."""

    def effect(now: Rows, seen: Rows) -> Rows:
        return (*now, *(Row(change(each)) for each in seen if test(each) is True))

    return effect


def same(now: Rows, seen: Rows) -> Rows:
    """No row is changed."""
    return now


def deleted(test: Test, *, as_seen: bool = False, vectors: bool = False) -> Effect:
    """Delete rows; with ``as_seen`` exactly those that the statement saw.

    With ``vectors`` a row to delete must not have been updated meanwhile.
    """

    def effect(now: Rows, seen: Rows) -> Rows:
        if not as_seen:
            return tuple(each for each in now if test(each) is not True)
        gone = {id(each) for each in seen if test(each) is True}
        if vectors and any(_comes_from(each, gone) for each in now if id(each) not in gone):
            raise MustConflict("a row that it deletes was updated")
        return tuple(each for each in now if id(each) not in gone)

    return effect


def updated(test: Test, change: Callable[[Row], Cells], *, as_seen: bool) -> Effect:
    """Update rows; with ``as_seen`` those that the statement saw, which must still exist."""
    made = Made()

    def new(row: Row) -> Row:
        return made.of(row, change(row), row)

    def effect(now: Rows, seen: Rows) -> Rows:
        if not as_seen:
            return tuple(new(each) if test(each) is True else each for each in now)
        wanted = {id(each) for each in seen if test(each) is True}
        if wanted - {id(each) for each in now}:
            raise MustConflict("a row that it updates is gone")
        return tuple(new(each) if id(each) in wanted else each for each in now)

    return effect


def merged(
    key: int,
    source: dict[Any, Cells],
    on: Test | None,
    matched: Sequence[tuple[Test | None, Callable[[Row, Cells], Cells] | None]],
    missing: Sequence[tuple[Test | None, Sequence[int]]],
    alone: Sequence[tuple[Test | None, Callable[[Row], Cells] | None]],
    *,
    as_seen: bool,
) -> Effect:
    """A MERGE by key: clauses for matched, source and table rows, of which the first true one acts.

    A clause is a condition, and a change (None deletes the row) or the columns of a new row.
    """
    new_rows = Made()

    def first(clauses: Sequence[tuple[Test | None, Any]], row: Row) -> tuple[bool, Any]:
        for test, change in clauses:
            if test is None or test(row) is True:
                return True, change
        return False, None

    def is_hit(row: Row) -> bool:
        return row.cells.get(key) in source and (on is None or on(row) is True)

    def become(row: Row) -> Cells | None:
        if is_hit(row):
            given = source[row.cells[key]]
            holds, change = first(matched, row)
            return row.cells if not holds else None if change is None else change(row, given)
        holds, change = first(alone, row)
        return row.cells if not holds else None if change is None else change(row)

    def effect(now: Rows, seen: Rows) -> Rows:
        read = seen if as_seen else now
        changed = {id(each): become(each) for each in read}
        changed = {n: c for each in read if (c := changed[n := id(each)]) is not each.cells}
        if changed.keys() - {id(each) for each in now}:
            raise MustConflict("a row that it changes is gone")
        made: list[Row] = []
        for each in now:
            if id(each) not in changed:
                made.append(each)
            elif (cells := changed[id(each)]) is not None:
                made.append(new_rows.of(each, cells, each))
        known = {each.cells[key] for each in read if is_hit(each)}
        for found in (found for found in source if found not in known):
            holds, kept = first(missing, Row(source[found]))
            if holds:
                made.append(new_rows.of(found, {each: source[found][each] for each in kept}))
        return tuple(made)

    return effect


def replaced(test: Test, cells: Sequence[Cells]) -> Effect:
    """Delete rows and insert others, as one change."""

    def effect(now: Rows, seen: Rows) -> Rows:
        return (
            *(each for each in now if test(each) is not True),
            *(Row(dict(each)) for each in cells),
        )

    return effect


def key_of(value: Any) -> Any:
    """A value as SQL compares it: NaN is the greatest number, and both zeros are equal."""
    if value is None:
        return None
    return (1, 0) if value != value else (0, value)


def value_at(row: Row, path: Sequence[dict[str, Any]]) -> Any:
    """The value of a column, or of a field of structs."""
    first = path[0]
    if first["id"] in row.cells:
        value = row.cells[first["id"]]
    else:
        value = from_json(first["type"], first.get("initial-default"))
    for each in path[1:]:
        value = None if value is None else value.get(each["id"])
    return value


def project(column: dict[str, Any], value: Any) -> Any:
    """A value in the current type: struct fields that were added later are NULL."""
    type_ = column["type"]
    if value is None or isinstance(type_, str):
        return value
    match type_["type"]:
        case "struct":
            return {each["id"]: project(each, value.get(each["id"])) for each in type_["fields"]}
        case "list":
            return [project({"type": type_["element"]}, each) for each in value]
        case _:
            inner = {"type": type_["value"]}
            return [(key, project(inner, each)) for key, each in value]


def told(rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows of a result, in the form of the model's own."""
    return [tuple(map(as_seen_by_users, each)) for each in rows]


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
    """The expected state of a table; ``document`` is its latest known metadata."""

    name: str
    document: dict[str, Any] | None = None
    place: str | None = None
    heads: dict[str, int] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=dict)
    snapshots: dict[int, Rows | None] = field(default_factory=dict)
    # The field ids of the columns with which it was created.
    ids: dict[str, int] = field(default_factory=dict)
    respecced: bool = False
    upgraded: bool = False
    keyed: bool = False  # it has equality deletes
    # The rows of snapshots that only append to a branch.
    appended: dict[int, list[Cells]] = field(default_factory=dict)

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

    def by_id(self) -> dict[int, dict[str, Any]]:
        """The columns by their ids."""
        return {each["id"]: each for each in self.schema()}

    def field(self, number: int) -> dict[str, Any]:
        """The column with an id."""
        return self.by_id()[number]

    def at_path(self, path: Sequence[str], name: str) -> dict[str, Any]:
        """A column, or a field of structs, by its name."""
        level = self.schema()
        for each in path:
            level = next(e["type"]["fields"] for e in level if e["name"] == each)
        return next(each for each in level if each["name"] == name)

    def names(self) -> dict[str, str]:
        """The current names of the first columns."""
        called = {each["id"]: each["name"] for each in self.schema()}
        return {own: called[number] for own, number in self.ids.items() if number in called}

    def own_name(self, column: dict[str, Any]) -> str:
        """Which of id, p and x a column is, or an empty string."""
        for each in ("id", "p", "x"):
            if self.ids.get(each) == column["id"]:
                return each
        return ""

    def spec(self) -> list[tuple[list[dict[str, Any]], str]]:
        """The current partition fields: the path of each source, and the transform."""
        assert self.document is not None
        fields = next(each["fields"] for each in self.document["partition-specs"]
                      if each["spec-id"] == self.document["default-spec-id"])  # fmt: skip
        found = [(path_to(self.schema(), each["source-id"]), each["transform"]) for each in fields]
        return [(path, form) for path, form in found if path is not None]

    def sources(self) -> set[int]:
        """The ids of columns that partition fields and orders use, and of their parent structs."""
        assert self.document is not None
        orders = (each for order in self.document["sort-orders"] for each in order["fields"])
        specs = (each for spec in self.document["partition-specs"] for each in spec["fields"])
        paths = (path_to(self.schema(), each["source-id"]) for each in (*orders, *specs))
        return {each["id"] for path in paths for each in path or ()}

    def parents(self) -> dict[int, int | None]:
        """The snapshots, oldest first, with the parent of each."""
        assert self.document is not None
        return {each["snapshot-id"]: each.get("parent-snapshot-id")
                for each in self.document["snapshots"]}  # fmt: skip

    @property
    def version(self) -> int:
        """The format version."""
        assert self.document is not None
        return int(self.document["format-version"])

    def shown(self, rows: Iterable[Row], schema_id: int | None = None) -> list[tuple[Any, ...]]:
        """Rows as a query of all columns returns them, see ``told``."""
        fields = self.schema(schema_id)
        return [
            tuple(shown(each["type"], project(each, value_at(row, [each]))) for each in fields)
            for row in rows
        ]

    def new_head(self, branch: str, states: Sequence[Rows]) -> None:
        """Advance the branch by a snapshot for each state."""
        assert self.document is not None
        head, parents = self.document["refs"][branch]["snapshot-id"], self.parents()
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
    """Possible outcomes of a statement, by the rows it may have read: the rows after each change.

    A part of a transaction that changed none of the rows that it read is no change.
    """
    candidates = [*candidates]
    for seen in candidates:
        first = parts[0].effect(seen, seen) if len(parts) > 1 else ()
        if len(parts) > 1 and [*map(id, first)] == [*map(id, seen)]:
            # After its first change the transaction keeps its view; the next part reads again.
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
    """The outcomes of a transaction that sees its table as its first change left it.

    That statement applied its change to the current rows, as one outside of a transaction does;
    later statements read the result.
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
    """Describe the difference of two collections; empty if they are equal."""
    one, other = Counter(map(repr, found)), Counter(map(repr, wanted))
    lost, extra = [*(other - one).elements()], [*(one - other).elements()]
    if not lost and not extra:
        return ""
    return f"{len(lost)} lost {lost[:4]}, {len(extra)} extra {extra[:4]}"
