"""Random predicates over the columns of a result, with literals that its values suggest."""

from __future__ import annotations

import math
import uuid
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

from tests.campaigns.grammar import Grammar

KINDS = (str, float, datetime, date, bool, int)


class Predicates(Grammar):
    """Predicates with ``?`` for their literals, as (SQL, parameters).

    ``columns`` are (SQL expression, values) pairs.
    """

    def __init__(self, chance, columns):
        super().__init__(chance, Path(__file__).with_suffix(".txt"))
        self.columns = [(name, values) for name, values in columns if usable(values)]
        self.names = [name for name, _ in columns]

    def predicate(self):
        self.parameters = []
        return self.text("predicate" if self.columns else "null"), self.parameters

    def _any(self):
        return self.chance.choice(self.names)

    def _column(self):
        name, values = self.chance.choice(self.columns)
        self.known = [each for each in values if each is not None]
        return name

    def _typed(self):
        """A predicate of the forms of a column's type; nanoseconds are of no form."""
        name, value = self._column(), self.chance.choice(self.known)
        finer = hasattr(value, "nanosecond")
        kind = next((each for each in KINDS if type(value) is each and not finer), None)
        return self.text(kind.__name__ if kind else "other").replace("@", name)

    def _value(self, form="near"):
        """A value of the column or one beside it, in a form."""
        chance, value = self.chance, self.chance.choice(self.known)
        near = self.beside(value) if chance.random() < 0.5 else value
        forms = {
            "near": lambda: near,
            "exact": lambda: value,
            "prefix": lambda: value[: chance.randint(0, 18)],
            "start": lambda: value[: chance.randint(0, 18)].translate(dict.fromkeys(b"%_\\", "_")) + "%",
            "day": lambda: near.date(),
            "year": lambda: near.year,
            "local": lambda: near.replace(tzinfo=None),
            "moment": lambda: datetime.combine(near, time(chance.choice((0, 12)))),
            "number": lambda: chance.choice((value + 0.5, value - Decimal("0.1"), value * 2)),
        }  # fmt: skip
        self.parameters.append(forms[form]())
        return "?"

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
