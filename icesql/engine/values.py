"""Python values that the standard library lacks or would round: nanoseconds, far instants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

from icesql.errors import DataError

_EPOCH: Final = datetime(1970, 1, 1)
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
        made = cls(
            whole.year,
            whole.month,
            whole.day,
            whole.hour,
            whole.minute,
            whole.second,
            whole.microsecond,
            tzinfo=whole.tzinfo,
            fold=whole.fold,
        )
        made.nanosecond = nanos
        return made

    def isoformat(self, sep: str = "T", timespec: str = "auto") -> str:
        """ISO 8601 with nine fraction digits when there are nanoseconds."""
        text = super().isoformat(sep, timespec)
        if not self.nanosecond or timespec != "auto":
            return text
        head, tail = text[:19], text[26:] if self.microsecond else text[19:]
        return f"{head}.{self.microsecond:06d}{self.nanosecond:03d}{tail}"

    def __str__(self) -> str:
        return self.isoformat(" ")

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        if same is not True:
            return same
        return self.nanosecond == getattr(other, "nanosecond", 0)

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

    def __reduce__(self) -> tuple[Any, ...]:
        # datetime pickles its own bytes, which have no room for nanoseconds.
        base = datetime.combine(self.date(), self.timetz())
        return _restore, (base, self.nanosecond)


def _restore(base: datetime, nanosecond: int) -> Timestamp:
    made = Timestamp.combine(base.date(), base.timetz())
    made.nanosecond = nanosecond
    return made


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
