"""Python values that the standard library lacks or would round, and values as text for people."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Final

from icesql.errors import DataError
from icesql.interval import Interval

_EPOCH: Final = datetime(1970, 1, 1)
# The digits of a fraction beyond a datetime's microseconds.
_FINE: Final = r"([.,][0-9]{6})([0-9]{1,3})(?![0-9])"
_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Timestamp(datetime):
    """A datetime with nanoseconds: ``nanosecond`` counts 0 to 999 beyond ``microsecond``.

    Compares equal to a datetime of the same microsecond only when ``nanosecond`` is 0.
    """

    nanosecond: int = 0

    @classmethod
    def from_nanoseconds(cls, epoch_ns: int, zone: tzinfo | None) -> Timestamp:
        """The instant ``epoch_ns`` after 1970-01-01 (UTC), in ``zone``, naive without one."""
        micros, nanos = divmod(epoch_ns, 1000)
        if zone is None:
            whole = _EPOCH + timedelta(microseconds=micros)
        else:
            whole = microseconds_to_datetime(micros, zone)
        return cls._of(whole, nanos)

    @classmethod
    def _of(cls, base: datetime, nanosecond: int) -> Timestamp:
        # combine() loses the fold for a subclass.
        made = cls(
            base.year,
            base.month,
            base.day,
            base.hour,
            base.minute,
            base.second,
            base.microsecond,
            base.tzinfo,
            fold=base.fold,
        )
        made.nanosecond = nanosecond
        return made

    @classmethod
    def fromisoformat(cls, text: str) -> Timestamp:
        """The reverse of ``isoformat``; a fraction of seven to nine digits gives nanoseconds."""
        found = re.search(_FINE, text)
        if found is None:
            return cls._of(datetime.fromisoformat(text), 0)
        base = datetime.fromisoformat(text[: found.start(2)] + text[found.end(2) :])
        return cls._of(base, int(found[2].ljust(3, "0")))

    def replace(self, *args: Any, nanosecond: int | None = None, **changes: Any) -> Timestamp:
        """Replace fields; ``nanosecond`` stays unless it is given, even with a new microsecond."""
        if nanosecond is None:
            nanosecond = self.nanosecond
        elif not 0 <= nanosecond <= 999:
            raise ValueError("nanosecond must be in 0..999")
        return self._of(super().replace(*args, **changes), nanosecond)

    def astimezone(self, tz: tzinfo | None = None) -> Timestamp:
        """The same instant in another zone, to the nanosecond."""
        return self._of(super().astimezone(tz), self.nanosecond)

    def __add__(self, other: timedelta) -> Timestamp:
        moved = super().__add__(other)
        return moved if moved is NotImplemented else self._of(moved, self.nanosecond)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        """A Timestamp minus a timedelta; for two times, the whole microseconds (rounded down)."""
        if isinstance(other, timedelta):
            return self._of(super().__sub__(other), self.nanosecond)
        between = super().__sub__(other)
        if between is NotImplemented or self.nanosecond >= getattr(other, "nanosecond", 0):
            return between
        return between - timedelta(microseconds=1)

    def __rsub__(self, other: Any) -> Any:
        if not isinstance(other, datetime):
            return NotImplemented
        between = other - datetime.combine(self.date(), self.timetz())
        return between - timedelta(microseconds=1) if self.nanosecond else between

    def isoformat(self, sep: str = "T", timespec: str = "auto") -> str:
        """ISO 8601 with nine fraction digits when there are nanoseconds."""
        text = super().isoformat(sep, timespec)
        if not self.nanosecond or timespec != "auto":
            return text
        head, tail = text[:19], text[26:] if self.microsecond else text[19:]
        return f"{head}.{self.microsecond:06d}{self.nanosecond:03d}{tail}"

    def __repr__(self) -> str:
        text = super().__repr__()
        return f"{text[:-1]}, nanosecond={self.nanosecond})" if self.nanosecond else text

    def __str__(self) -> str:
        return self.isoformat(" ")

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        if same is not True:
            return same
        return self.nanosecond == getattr(other, "nanosecond", 0)

    def __ne__(self, other: object) -> bool:
        same = self.__eq__(other)
        return same if same is NotImplemented else not same

    def __hash__(self) -> int:
        return (
            super().__hash__()
            if not self.nanosecond
            else hash((super().__hash__(), self.nanosecond))
        )

    def __lt__(self, other: Any) -> bool:
        return self._order(other, super().__lt__(other), below=True)

    def __gt__(self, other: Any) -> bool:
        return self._order(other, super().__gt__(other), below=False)

    def __le__(self, other: Any) -> bool:
        return bool(self < other or self == other)

    def __ge__(self, other: Any) -> bool:
        return bool(self > other or self == other)

    def _order(self, other: Any, by_microsecond: Any, *, below: bool) -> bool:
        if by_microsecond is NotImplemented or not datetime.__eq__(self, other):
            return by_microsecond  # type: ignore[no-any-return]
        mine, others = self.nanosecond, getattr(other, "nanosecond", 0)
        return mine < others if below else mine > others

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # datetime's pickle format has no room for nanoseconds.
        base = datetime.combine(self.date(), self.timetz())
        return _restore, (base, self.nanosecond)


def _restore(base: datetime, nanosecond: int) -> Timestamp:
    return Timestamp._of(base, nanosecond)


def microseconds_to_datetime(epoch_us: int, zone: tzinfo) -> datetime:
    """The instant ``epoch_us`` µs after 1970 in ``zone``.

    Raises DataError for years outside 1 to 9999, which Python's datetime does not have.
    """
    try:
        instant = _EPOCH_UTC + timedelta(microseconds=epoch_us)
        return instant if zone is UTC else instant.astimezone(zone)
    except OverflowError as error:
        raise DataError(
            f"the instant {epoch_us} µs after 1970 lies outside the years 1 to 9999 of Python's "
            "datetime; CAST it to VARCHAR or read it through arrow()"
        ) from error


def text_of(value: Any) -> str:
    """One value as people read it; NULL is ``NULL``, nested values are JSON."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return repr(value)
        case Decimal():
            return format(value, "f")
        case bytes() | bytearray() | memoryview():
            return "0x" + bytes(value).hex()
        case datetime():
            return value.isoformat(" ")
        case timedelta():
            return str(Interval.of(value))
        case list() | tuple() | dict():
            return json_of(value)
        case _:
            return str(value)


def json_of(value: Any) -> str:
    """One value as JSON text: exact decimals as numbers, NaN and infinities as strings.

    Times are ISO 8601 strings, bytes lower-case hex, a struct is an object, a map a list of
    [key, value] pairs.
    """
    match value:
        case None | bool() | int():
            return json.dumps(value)
        case float():
            if value != value:
                return '"NaN"'
            if value in (float("inf"), float("-inf")):
                return '"Infinity"' if value > 0 else '"-Infinity"'
            return repr(value)
        case Decimal():
            return format(value, "f") if value.is_finite() else f'"{value}"'
        case bytes() | bytearray() | memoryview():
            return f'"{bytes(value).hex()}"'
        case date() | time():
            return f'"{value.isoformat()}"'
        case timedelta():
            return json.dumps(str(Interval.of(value)))
        case dict():
            pairs = (
                f"{json.dumps(str(key), ensure_ascii=False)}: {json_of(item)}"
                for key, item in value.items()
            )
            return "{" + ", ".join(pairs) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(json_of, value)) + "]"
        case _:
            return json.dumps(str(value), ensure_ascii=False)
