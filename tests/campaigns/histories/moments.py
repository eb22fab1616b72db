"""Moments inside of a statement, at some of which a callback runs."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import icesql.commit.attempts as attempts
import icesql.commit.transaction as fixed
from icesql.catalog.directory import DirectoryCatalog
from icesql.catalog.rest.catalog import RestCatalog
from icesql.catalog.sqlite import SqliteCatalog
from icesql.catalog.writes import sqlite
from icesql.commit.manifests.store import OwnFiles
from icesql.scan.manifest_reader import ManifestReader
from icesql.storage.new_files import NewFile
from tests.tables import read_table

CATALOGS = (DirectoryCatalog, SqliteCatalog, RestCatalog)
_TABLE = read_table(__file__, "moments.tsv")
# A moment, its weight, and the highest number of its occurrences to draw.
KILLS = tuple((name, int(often), int(most)) for name, _, often, most, _ in _TABLE)
POINTS = KILLS[: sum(whom == "all" for _, whom, *_ in _TABLE)]


class Moments:
    """Calls ``act`` at chosen moments inside of ``inside``, and ``swapped`` after each swap."""

    def __init__(self, act: Callable[[str], None], swapped: Callable[[], None]) -> None:
        self._act, self._swapped = act, swapped
        self._lock = threading.RLock()
        self._wanted: set[tuple[str, int]] = set()
        self._busy = True
        self.counts: Counter[str] = Counter()
        # Outcomes of the next swaps that replace the catalog's: see ``_swap``.
        self.swaps: list[str] = []

    @staticmethod
    def draw(
        chance: random.Random, count: int, points: tuple[tuple[str, int, int], ...] = POINTS
    ) -> list[tuple[str, int]]:
        """Random moments, each with its name and the number of its occurrence."""
        names = [each[0] for each in points]
        most = {each[0]: each[2] for each in points}
        found = chance.choices(names, [each[1] for each in points], k=count)
        return [
            (name, min(chance.randint(1, most[name]), chance.randint(1, most[name])))
            for name in found
        ]

    @contextmanager
    def inside(self, wanted: list[tuple[str, int]]) -> Iterator[None]:
        """A context for a statement, with these moments chosen."""
        self._wanted, self._busy = {*wanted}, False
        self.counts.clear()
        try:
            yield
        finally:
            self._busy = True

    @property
    def left(self) -> int:
        """How many of the chosen moments did not occur."""
        return len(self._wanted)

    def at(self, name: str) -> None:
        """Called when a moment occurs."""
        if self._busy:
            return
        with self._lock:
            if self._busy:
                return
            self.counts[name] += 1
            key = name, self.counts[name]
            if key not in self._wanted:
                return
            self._wanted.discard(key)
            self._busy = True
            try:
                self._act(name)
            finally:
                self._busy = False

    @contextmanager
    def apart(self) -> Iterator[None]:
        """A context for work that is no part of the statement."""
        busy, self._busy = self._busy, True
        try:
            yield
        finally:
            self._busy = busy

    # ------------------------------------------------------------------ installation

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Patch icesql to call ``at``, and remove all waits, also for disk syncs."""
        put: list[tuple[Any, str, Any]] = []

        def replace(owner: Any, name: str, made: Callable[[Any], Any]) -> None:
            old = owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)
            put.append((owner, name, old))
            setattr(owner, name, made(old))

        for kind in CATALOGS:
            for name in ("load", "load_without_waiting"):
                if name in kind.__dict__:
                    replace(kind, name, partial(self._wrapped, after="loaded"))
            replace(kind, "swap", self._swap)
        replace(fixed, "swap_several", self._swap)
        replace(NewFile, "write", self._half)
        for owner, name, before, after in (
            (ManifestReader, "manifests_of", "planning", ""),
            (NewFile, "__init__", "opened", ""),
            (sqlite, "_committed", "inside", "inside"),
            (os, "replace", "replacing", ""),
            (OwnFiles, "keep_only", "cleaning", ""),
            (attempts, "_until_known", "written", ""),
            (os, "link", "linking", "linked"),
            (os, "unlink", "deleting", ""),
        ):
            replace(owner, name, partial(self._wrapped, before=before, after=after))
        replace(os, "fsync", lambda old: lambda place: None)
        replace(time, "sleep", lambda old: lambda seconds: old(min(seconds, 0.0005)))
        try:
            yield
        finally:
            for owner, name, old in reversed(put):
                setattr(owner, name, old)

    def _wrapped(self, old: Any, *, before: str = "", after: str = "") -> Any:
        def wrapper(*args: Any, **options: Any) -> Any:
            if before:
                self.at(before)
            found = old(*args, **options)
            if after:
                self.at(after)
            return found

        return wrapper

    def _half(self, old: Any) -> Any:
        def write(file: Any, data: Any) -> Any:
            if self._busy:
                return old(file, data)
            held = bytes(data)
            half = old(file, held[: len(held) // 2])
            if file._local is not None and file._local._file is not None:
                file._local._file.flush()
            self.at("half")
            return half + old(file, held[len(held) // 2 :])

        return write

    def _swap(self, old: Any) -> Any:
        """A swap that may be interrupted, or whose outcome is not reported, as ``swaps`` says."""
        from icesql.catalog.writes.change import Unknown

        def swap(*given: Any) -> Any:
            if self._busy:
                return old(*given)
            self.at("attempt")
            fault = self.swaps.pop(0) if self.swaps else "none"
            if fault == "not sent":
                return Unknown("the disk failed", None)
            found = old(*given)
            with self.apart():
                self._swapped()
            if fault == "interrupted":
                raise KeyboardInterrupt
            if fault == "not told" and type(found).__name__ == "Done":
                found = Unknown("the disk failed", getattr(found, "location", None))
            self.at("answered")
            return found

        return swap
