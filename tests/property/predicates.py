"""Random predicates over the columns of a result, with literals that its values suggest."""

from __future__ import annotations

import math
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal


class Predicates:
    """Predicates with ``?`` for their literals, as (SQL, parameters).

    ``columns`` are (SQL expression, values) pairs.
    """

    def __init__(self, chance, columns):
        self.chance = chance
        self.columns = [(name, values) for name, values in columns if usable(values)]
        self.nullable = [name for name, _ in columns]

    def predicate(self, depth=2):
        chance = self.chance
        if depth and chance.random() < 0.45:
            left, right = self.predicate(depth - 1), self.predicate(depth - 1)
            word = chance.choice(("AND", "OR"))
            return f"({left[0]} {word} {right[0]})", [*left[1], *right[1]]
        if depth and chance.random() < 0.15:
            inner = self.predicate(depth - 1)
            return f"NOT ({inner[0]})", inner[1]
        return self.leaf()

    def leaf(self):
        chance = self.chance
        if not self.columns or chance.random() < 0.1:
            return f"{chance.choice(self.nullable)} IS {chance.choice(('', 'NOT '))}NULL", []
        name, values = chance.choice(self.columns)
        known = [each for each in values if each is not None]
        kind = chance.random()
        if kind < 0.5:
            operator = chance.choice(("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"))
            return f"{name} {operator} ?", [self.literal(known)]
        if kind < 0.65:
            many = [self.literal(known) for _ in range(chance.randint(1, 4))]
            word = chance.choice(("IN", "NOT IN"))
            return f"{name} {word} ({', '.join('?' * len(many))})", many
        if kind < 0.75:
            return f"{name} BETWEEN ? AND ?", [self.literal(known), self.literal(known)]
        return self.by_type(name, known)

    def by_type(self, name, known):
        chance, value = self.chance, self.chance.choice(known)
        match value:
            case str():
                prefix = value[: chance.randint(0, 18)]
                word = chance.choice(("LIKE", "NOT LIKE"))
                if chance.random() < 0.5 and not set(prefix) & set("%_\\"):
                    return f"{name} {word} ?", [prefix + "%"]
                return f"starts_with({name}, ?)", [prefix]
            case float():
                return chance.choice((f"isnan({name})", f"NOT isnan({name})")), []
            case datetime() if not hasattr(value, "nanosecond"):
                near = self.literal(known)
                return chance.choice(
                    (
                        (f"CAST({name} AS DATE) = ?", [near.date()]),
                        (f"year({name}) = ?", [near.year]),
                        (f"date_trunc('month', {name}) <= ?", [near.replace(tzinfo=None)]),
                    )
                )
            case date() if not hasattr(value, "nanosecond"):
                near = self.literal(known)
                moment = datetime.combine(near, time(chance.choice((0, 12))))
                return chance.choice(
                    ((f"year({name}) < ?", [near.year]), (f"{name} <= ?", [moment]))
                )
            case bool():
                return name, []
            case int():
                return f"{name} {chance.choice('<>')} ?", [
                    chance.choice((value + 0.5, Decimal(value) - Decimal("0.1"), value * 2))
                ]
            case _:
                return f"{name} IS NOT DISTINCT FROM ?", [value]

    def literal(self, known):
        """A value of the column or one beside it."""
        value = self.chance.choice(known)
        return self.beside(value) if self.chance.random() < 0.5 else value

    def beside(self, value):
        chance = self.chance
        try:
            match value:
                case bool():
                    return not value
                case int():
                    return min(max(value + chance.choice((-1, 1)), -(2**63)), 2**63 - 1)
                case float():
                    return chance.choice(
                        (-value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf))
                    )
                case Decimal():
                    unit = Decimal((0, (1,), value.as_tuple().exponent))
                    return value + chance.choice((unit, -unit, unit / 2))
                case str():
                    return chance.choice((value[:16], value[:-1], value + "a", value[:15] + "~"))
                case bytes():
                    return chance.choice((value[:16], value[:-1], value + b"\0"))
                case datetime() if not hasattr(value, "nanosecond"):
                    step = chance.choice(
                        (timedelta(microseconds=1), timedelta(hours=1), timedelta(days=1))
                    )
                    return value + chance.choice((-1, 1)) * step
                case date() if not isinstance(value, datetime):
                    return value + timedelta(days=chance.choice((-1, 1, 30)))
                case uuid.UUID():
                    return uuid.UUID(int=value.int ^ 1)
        except (OverflowError, ValueError, ArithmeticError):
            pass
        return value


def usable(values):
    """Whether literals can be drawn from the values: there is one, and it is no list or map."""
    known = [each for each in values if each is not None]
    return bool(known) and not isinstance(known[0], (list, dict))


def columns_of(names, rows):
    """The columns of a result and the children of its structs, as ``Predicates`` takes them."""
    found = []
    for index, name in enumerate(names):
        found += expand(quoted(name), [row[index] for row in rows])
    return found


def expand(expression, values):
    structs = [each for each in values if isinstance(each, dict)]
    if not structs:
        return [(expression, values)]
    found = [(expression, [])]
    for name in structs[0]:
        children = [None if each is None else each[name] for each in values]
        found += expand(f"{expression}.{quoted(name)}", children)
    return found


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
