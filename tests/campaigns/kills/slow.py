"""Storage that takes its time, and says where a statement is.

``install`` wraps, in a process that is to be killed, what a statement does to storage and catalog.
Each such step waits before or after, or half-way: half of the bytes of a write are in the file when
it waits. How long depends on the phase: ``delays`` gives each phase the same share of the whole, as
if the store answered late. Without delays the steps are counted, and nothing waits.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping
from typing import Any

PHASES = (
    "starting", "reading", "data", "deletes", "manifests", "reading again", "swap",
    "after the swap", "clean-up", "done",
)  # fmt: skip
_AT = {name: number for number, name in enumerate(PHASES)}
STARTED, PHASE, COUNTS = 0, 1, 8
LENGTH = COUNTS + 4 * len(PHASES)


class Marks:
    """The phase, and the steps of each, in memory that outlives the process."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def clear(self) -> None:
        self._memory[:LENGTH] = bytes(LENGTH)

    def start(self) -> None:
        self._memory[STARTED] = 1

    @property
    def started(self) -> bool:
        return self._memory[STARTED] == 1

    def enter(self, phase: str) -> None:
        self._memory[PHASE] = _AT[phase]

    @property
    def phase(self) -> str:
        return PHASES[self._memory[PHASE]]

    def count(self, phase: str) -> None:
        at = COUNTS + 4 * _AT[phase]
        (known,) = struct.unpack_from("<I", self._memory, at)
        struct.pack_into("<I", self._memory, at, known + 1)

    @property
    def counts(self) -> dict[str, int]:
        found = struct.unpack_from(f"<{len(PHASES)}I", self._memory, COUNTS)
        return {name: count for name, count in zip(PHASES, found, strict=True) if count}


class Steps:
    """Waits at each step of a phase."""

    def __init__(self, marks: Marks, delays: Mapping[str, float]) -> None:
        self.marks, self._delays = marks, delays
        self.swapping = self._wrote = False

    def at(self, phase: str) -> None:
        if self.swapping:
            phase = "swap"
        elif phase == "reading" and self._wrote:
            phase = "reading again"  # what the commit is made of, and what is removed
        self._wrote = self._wrote or phase not in ("starting", "reading")
        self.marks.enter(phase)
        self.marks.count(phase)
        wait = self._delays.get(phase, 0.0)
        if wait:
            time.sleep(wait)

    def of_file(self, path: str) -> None:
        if path.endswith(".avro"):
            self.at("manifests")
        elif path.endswith((".metadata.json", ".gz")):
            self.at("swap")
        else:
            self.at("deletes" if "deletes" in path or path.endswith(".puffin") else "data")


def delays_for(counts: Mapping[str, int], seconds: float) -> dict[str, float]:
    """Seconds that each step of a phase waits, so that every phase takes as long as the others."""
    return {phase: seconds / len(counts) / count for phase, count in counts.items()}


def install(steps: Steps) -> None:
    """Wrap storage and catalogs of this process, for good."""
    _files(steps)
    _system(steps)
    _catalogs(steps)


def _files(steps: Steps) -> None:
    from icesql.storage.new_file import NewFile
    from icesql.storage.open import Storage

    write, finish, read = NewFile.write, NewFile.finish, Storage.read

    def slow_write(file: NewFile, data: Any) -> int:
        held = bytes(data)
        half = len(held) // 2
        write(file, held[:half])
        if file._local is not None and file._local._file is not None:
            file._local._file.flush()
        steps.of_file(file.path)
        return half + write(file, held[half:])

    def slow_finish(file: NewFile) -> int:
        steps.of_file(file.path)
        done = finish(file)
        steps.of_file(file.path)
        return done

    def slow_read(storage: Any, *arguments: Any, **given: Any) -> bytes:
        steps.at("reading")
        return read(storage, *arguments, **given)

    NewFile.write, NewFile.finish, Storage.read = slow_write, slow_finish, slow_read  # type: ignore


def _system(steps: Steps) -> None:
    link, unlink, replace = os.link, os.unlink, os.replace

    def slow_link(source: Any, target: Any, **given: Any) -> None:
        steps.of_file(str(target))
        link(source, target, **given)
        steps.of_file(str(target))  # it is there by both names

    def slow_unlink(path: Any, **given: Any) -> None:
        if not str(path).endswith((".part", ".new", ".temp")) and "/ns/" in str(path):
            steps.at("clean-up")
        unlink(path, **given)

    def slow_replace(source: Any, target: Any, **given: Any) -> None:
        if str(target).endswith("version-hint.text"):
            steps.at("swap")
        replace(source, target, **given)

    os.link, os.unlink, os.replace = slow_link, slow_unlink, slow_replace  # type: ignore


def _catalogs(steps: Steps) -> None:
    from icesql.catalog.directory import DirectoryCatalog
    from icesql.catalog.rest.catalog import RestCatalog
    from icesql.catalog.sqlite import SqliteCatalog
    from icesql.catalog.writes import sqlite

    def wrapped(swap: Any) -> Any:
        def slow_swap(*arguments: Any, **given: Any) -> Any:
            steps.swapping = True
            try:
                steps.at("swap")
                found = swap(*arguments, **given)
            finally:
                steps.swapping = False
            steps.at("after the swap")
            return found

        return slow_swap

    for each in (DirectoryCatalog, RestCatalog, SqliteCatalog):
        each.swap = wrapped(each.swap)  # type: ignore[method-assign]
    committed = sqlite._committed

    def slow_committed(database: Any, location: str) -> Any:
        steps.at("swap")  # inside of the transaction
        found = committed(database, location)
        steps.at("swap")
        return found

    sqlite._committed = slow_committed
