"""Which items of a SELECT a condition may filter, given the joins between them."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from icesql.query.names import FromItem, SelectScope

_JOIN_KINDS: Final = ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI")


class OuterJoins:
    """The joins of one SELECT. ``opaque``: nothing may be filtered before them."""

    def __init__(self, scope: SelectScope) -> None:
        self._items = scope.items
        self._joins = list(scope.select.args.get("joins") or ())
        self.opaque = any(join.kind not in _JOIN_KINDS for join in self._joins) or bool(
            scope.select.args.get("sample")
        )

    def _nullable_before(self, end: int) -> set[int]:
        """Items that the joins before number ``end`` may fill with NULL."""
        nullable: set[int] = set()
        for join in self._joins[:end]:
            if join.kind in ("SEMI", "ANTI"):
                continue
            right = {id(item) for item in self._items if item.join is join}
            if join.side in ("LEFT", "FULL"):
                nullable |= right
            if join.side in ("RIGHT", "FULL"):
                nullable |= {id(item) for item in self._left_of(join)}
        return nullable

    def _left_of(self, join: exp.Join) -> list[FromItem]:
        before = self._joins[: self._position(join)]
        return [
            item
            for item in self._items
            if item.join is None or any(item.join is each for each in before)
        ]

    def _position(self, join: exp.Join) -> int:
        return next(index for index, each in enumerate(self._joins) if each is join)

    def is_usable(self, item: FromItem) -> bool:
        """Whether conditions may leave out rows of an item at all."""
        # Which row of an ASOF join's right side is nearest depends on all of its rows.
        nearest = item.join is not None and item.join.method == "ASOF"
        return item.plain and not nearest

    def seen_by_where(self) -> list[tuple[FromItem, bool]]:
        """Items that WHERE may filter, and whether they may be NULL there."""
        nullable = self._nullable_before(len(self._joins))
        return [
            (item, id(item) in nullable)
            for item in self._items
            if self.is_usable(item) and not item.is_filter_only
        ]

    def seen_by_on(self, join: exp.Join) -> list[tuple[FromItem, bool]]:
        """Items that the ON of ``join`` may filter, and whether they may be NULL there."""
        if join.method == "ASOF" or join.side == "FULL":
            return []
        right = [item for item in self._items if item.join is join]
        left = self._left_of(join)
        if join.kind == "ANTI" or (join.kind != "SEMI" and join.side == "LEFT"):
            left = []
        elif join.kind != "SEMI" and join.side == "RIGHT":
            right = []
        nullable = self._nullable_before(self._position(join))
        return [
            (item, id(item) in nullable)
            for item in (*left, *right)
            if self.is_usable(item) and not (item.is_filter_only and item.join is not join)
        ]
