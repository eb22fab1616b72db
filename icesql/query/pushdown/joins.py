"""Which sources of a SELECT a condition may filter, given the joins between them."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from icesql.query.names import SelectScope, Source

_JOIN_KINDS: Final = ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI")


class OuterJoins:
    """The joins of one SELECT. ``opaque``: nothing may be filtered before them."""

    def __init__(self, scope: SelectScope) -> None:
        self._sources = scope.sources
        self._joins = list(scope.select.args.get("joins") or ())
        self.opaque = any(
            join.kind not in _JOIN_KINDS or join.method == "POSITIONAL" for join in self._joins
        ) or bool(scope.select.args.get("sample"))

    def _nullable_before(self, end: int) -> set[int]:
        """Sources that the joins before number ``end`` may fill with NULL."""
        nullable: set[int] = set()
        for join in self._joins[:end]:
            if join.kind in ("SEMI", "ANTI"):
                continue
            right = {id(source) for source in self._sources if source.join is join}
            if join.side in ("LEFT", "FULL"):
                nullable |= right
            if join.side in ("RIGHT", "FULL"):
                nullable |= {id(source) for source in self._left_of(join)}
        return nullable

    def _left_of(self, join: exp.Join) -> list[Source]:
        before = self._joins[: self._position(join)]
        return [
            source
            for source in self._sources
            if source.join is None or any(source.join is each for each in before)
        ]

    def _position(self, join: exp.Join) -> int:
        return next(index for index, each in enumerate(self._joins) if each is join)

    def _usable(self, source: Source) -> bool:
        # Which row of an ASOF join's right side is nearest depends on all of its rows.
        nearest = source.join is not None and source.join.method == "ASOF"
        return source.plain and not nearest

    def seen_by_where(self) -> list[tuple[Source, bool]]:
        """Sources that WHERE may filter, and whether they may be NULL there."""
        nullable = self._nullable_before(len(self._joins))
        return [
            (source, id(source) in nullable)
            for source in self._sources
            if self._usable(source) and not source.is_filter_only
        ]

    def seen_by_on(self, join: exp.Join) -> list[tuple[Source, bool]]:
        """Sources that the ON of ``join`` may filter, and whether they may be NULL there."""
        if join.method == "ASOF" or join.side == "FULL":
            return []
        right = [source for source in self._sources if source.join is join]
        left = self._left_of(join)
        if join.kind == "ANTI" or (join.kind != "SEMI" and join.side == "LEFT"):
            left = []
        elif join.kind != "SEMI" and join.side == "RIGHT":
            right = []
        nullable = self._nullable_before(self._position(join))
        return [
            (source, id(source) in nullable)
            for source in (*left, *right)
            if self._usable(source) and not (source.is_filter_only and source.join is not join)
        ]
