"""MERGE in plain Python, and random statements that it and an engine can run.

The table has the columns (k INT, a INT, w VARCHAR), and so has the source. A row is a tuple; NULL is
None, and a condition acts only where it is True.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Row = tuple[int | None, int | None, str | None]
# A condition or a value, computed from a row of the table and one of the source.
Told = Callable[[Any, Any], Any]


class Refused(Exception):
    """Two source rows match one row of the table, and a clause takes it."""


class Clause(NamedTuple):
    kind: str
    action: str
    condition: Told | None
    # The new row.
    row: Callable[[Any, Any], Row] | None


class Case(NamedTuple):
    """A statement: its SQL with {t} and {s} for the table names, and its meaning."""

    sql: str
    on: Told
    clauses: list[Clause]


def merged(case: Case, table: Sequence[Row], source: Sequence[Row]) -> tuple[list[Row], int]:
    """The rows afterwards, and the number of changed, inserted or deleted ones. Raises Refused."""
    rows: list[Row] = []
    changed = 0
    used = [False] * len(source)
    of_kind = {
        kind: [each for each in case.clauses if each.kind == kind] for kind in ("M", "N", "B")
    }
    may_repeat = [(each.action, each.condition) for each in of_kind["M"]] == [("delete", None)]
    for row in table:
        found = [n for n, other in enumerate(source) if case.on(row, other) is True]
        for n in found:
            used[n] = True
        if not found:
            taken = [_first(of_kind["B"], row, None)]
        else:
            taken = [_first(of_kind["M"], row, source[n]) for n in found]
        acting = [each for each in taken if each is not None]
        if len(found) > 1 and acting and not may_repeat:
            raise Refused
        if not acting:
            rows.append(row)
            continue
        changed += 1
        if acting[0].row is not None:
            rows.append(acting[0].row(row, source[found[0]] if found else None))
    for n, other in enumerate(source):
        clause = None if used[n] else _first(of_kind["N"], None, other)
        if clause is not None and clause.row is not None:
            rows.append(clause.row(None, other))
            changed += 1
    return rows, changed


def _first(clauses: Sequence[Clause], row: Any, other: Any) -> Clause | None:
    for each in clauses:
        if each.condition is None or each.condition(row, other) is True:
            return each
    return None


def _less(one: Any, other: Any) -> bool | None:
    return None if one is None or other is None else one < other


def _equal(one: Any, other: Any) -> bool | None:
    return None if one is None or other is None else one == other


def _and(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _sum(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


_ON: list[tuple[str, Told]] = [
    ("t.k = s.k", lambda t, s: _equal(t[0], s[0])),
    ("s.k = t.k AND t.a > 2", lambda t, s: _and(_equal(t[0], s[0]), _less(2, t[1]))),
    ("t.k = s.k AND s.a < 6", lambda t, s: _and(_equal(t[0], s[0]), _less(s[1], 6))),
    ("t.k = s.k + 1", lambda t, s: _equal(t[0], _sum(s[0], 1))),
    ("t.w = s.w", lambda t, s: _equal(t[2], s[2])),
    ("t.k = s.k AND t.w = s.w", lambda t, s: _and(_equal(t[0], s[0]), _equal(t[2], s[2]))),
    ("t.k < s.k AND s.k < 4", lambda t, s: _and(_less(t[0], s[0]), _less(s[0], 4))),
]
_CONDITIONS: dict[str, list[tuple[str, Told]]] = {
    "M": [
        ("t.a > s.a", lambda t, s: _less(s[1], t[1])),
        ("s.a IS NULL", lambda t, s: s[1] is None),
        ("t.k < 5", lambda t, s: _less(t[0], 5)),
        ("s.w = t.w", lambda t, s: _equal(t[2], s[2])),
        ("t.a + s.a > 7", lambda t, s: _less(7, _sum(t[1], s[1]))),
    ],
    "N": [
        ("s.a > 3", lambda t, s: _less(3, s[1])),
        ("a IS NOT NULL", lambda t, s: s[1] is not None),
        ("k < 7", lambda t, s: _less(s[0], 7)),
    ],
    "B": [
        ("t.a < 4", lambda t, s: _less(t[1], 4)),
        ("w IS NULL", lambda t, s: t[2] is None),
        ("k > 3", lambda t, s: _less(3, t[0])),
    ],
}
_UPDATES: dict[str, list[tuple[str, Callable[[Any, Any], Row]]]] = {
    "M": [
        ("UPDATE SET *", lambda t, s: s),
        ("UPDATE SET a = s.a", lambda t, s: (t[0], s[1], t[2])),
        ("UPDATE SET t.a = t.a + s.a, w = s.w", lambda t, s: (t[0], _sum(t[1], s[1]), s[2])),
        ("UPDATE SET k = t.a, a = t.k", lambda t, s: (t[1], t[0], t[2])),
        (
            "UPDATE SET w = concat(coalesce(s.w, ''), '!')",
            lambda t, s: (t[0], t[1], (s[2] or "") + "!"),
        ),
        ("UPDATE SET w = NULL, a = 9", lambda t, s: (t[0], 9, None)),
    ],
    "B": [
        ("UPDATE SET a = a + 1", lambda t, s: (t[0], _sum(t[1], 1), t[2])),
        ("UPDATE SET w = 'gone'", lambda t, s: (t[0], t[1], "gone")),
    ],
}
_INSERTS: list[tuple[str, Callable[[Any, Any], Row]]] = [
    ("INSERT *", lambda t, s: s),
    ("INSERT (k, a) VALUES (s.k, a + 1)", lambda t, s: (s[0], _sum(s[1], 1), None)),
    ("INSERT (w, k, a) VALUES ('new', k, 7)", lambda t, s: (s[0], 7, "new")),
]


def random_case(chance: random.Random) -> Case:
    """A statement with the same meaning in Spark and DuckDB."""
    on_sql, on = chance.choice(_ON)
    parts, clauses = [], []
    kinds = chance.choice(["M", "N", "B", "MN", "MN", "MB", "NB", "MNB", "MNB"])
    for kind in kinds:
        count = chance.choice([1, 1, 2, 3])
        for number in range(count):
            words = {"M": "MATCHED", "N": "NOT MATCHED", "B": "NOT MATCHED BY SOURCE"}[kind]
            condition = None
            if number < count - 1 or chance.random() < 0.4:
                sql, condition = chance.choice(_CONDITIONS[kind])
                words += f" AND {sql}"
            if kind == "N":
                action, (done, row) = "insert", chance.choice(_INSERTS)
            elif chance.random() < 0.35:
                action, done, row = "delete", "DELETE", None
            else:
                action, (done, row) = "update", chance.choice(_UPDATES[kind])
            parts.append(f"WHEN {words} THEN {done}")
            clauses.append(Clause(kind, action, condition, row))
    chance.shuffle(parts) if len(kinds) == len(clauses) and chance.random() < 0.2 else None
    sql = f"MERGE INTO {{t}} AS t USING {{s}} AS s ON {on_sql} " + " ".join(parts)
    return Case(sql, on, clauses)


def random_rows(chance: random.Random, count: int, *, distinct: bool = False) -> list[Row]:
    """Random rows; with ``distinct`` each key occurs once."""
    keys: list[int | None] = [chance.choice([None, *range(9)]) for _ in range(count)]
    if distinct:
        keys = [*dict.fromkeys(keys)]
    return [
        (key, chance.choice([None, *range(9)]), chance.choice([None, "x", "y", "z", f"w{key}"]))
        for key in keys
    ]


def values(rows: Sequence[Row]) -> str:
    """The rows in SQL, after VALUES."""

    def shown(value: Any) -> str:
        return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)

    return ", ".join("(" + ", ".join(map(shown, row)) + ")" for row in rows)
