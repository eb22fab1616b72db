"""Snapshots of a table that came with those of its branches and tags alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from icesql.iceberg.metadata.snapshot import Snapshot


class ReferencedFirst(Mapping[int, Snapshot]):
    """The snapshots of refs; all others are fetched when one of them is asked for."""

    def __init__(
        self,
        referenced: Mapping[int, Snapshot],
        fetch: Callable[[], Mapping[int, Snapshot]],
    ) -> None:
        self._referenced, self._fetch = referenced, fetch
        self._all: Mapping[int, Snapshot] | None = None

    def _whole(self) -> Mapping[int, Snapshot]:
        if self._all is None:
            self._all = self._fetch()
        return self._all

    def __getitem__(self, snapshot_id: int) -> Snapshot:
        found = self._referenced.get(snapshot_id)
        return self._whole()[snapshot_id] if found is None else found

    def __contains__(self, snapshot_id: object) -> bool:
        return snapshot_id in self._referenced or snapshot_id in self._whole()

    def __iter__(self) -> Iterator[int]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker needs the snapshot that is read, which is here.
        return dict, (dict(self._referenced if self._all is None else self._all),)
