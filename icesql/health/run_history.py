"""The history of runs: JSON lines in a file of the user, to which several processes append.

    {"run": id, "key": …, "begun": time}
    {"run": id, "table": name, "status": …, "at": time, "report": {…}}
    {"run": id, "ended": time}

A killed run has no last line, nor has one that its budget ended: the next run with the same key
continues it. Incomplete lines are skipped. The history only records which tables are finished;
what a table needs is always derived from the table itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from icesql.errors import OperationalError
from icesql.health.run_report import FINISHED, TableReport
from icesql.storage.file_lock import lock

# Older runs are not continued.
_LONGEST: Final = timedelta(days=7)


class History:
    """The history file of one run; ``close`` lets other processes continue unfinished runs.

    ``finished`` has the tables that the run need not process again. Raises OperationalError for a
    file that cannot be written.
    """

    def __init__(self, path: str, key: str, now: datetime) -> None:
        self._path = path
        self._lock: int | None = None
        try:
            folder = os.path.dirname(os.path.abspath(path))
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self._alone = self._take()
            found = self._unfinished(key, now) if self._alone else None
            self.run, self.finished = found or (os.urandom(8).hex(), frozenset[str]())
            if found is None:
                self._append({"run": self.run, "key": key, "begun": _text(now)})
        except OSError as error:
            self.close()
            raise OperationalError(
                f"cannot keep the history of maintenance in {path}: {error.strerror}; --history "
                "names another file"
            ) from error

    def add(self, report: TableReport, now: datetime) -> None:
        """Record that a table was processed."""
        self._write(
            {
                "run": self.run,
                "table": report.table,
                "status": report.status,
                "at": _text(now),
                "report": report.to_dict(),
            }
        )

    def end(self, now: datetime) -> None:
        """Record that all tables were processed."""
        self._write({"run": self.run, "ended": _text(now)})

    def close(self) -> None:
        """Release the lock. Can be called repeatedly."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # ------------------------------------------------------------------ reading

    def _unfinished(self, key: str, now: datetime) -> tuple[str, frozenset[str]] | None:
        run, finished = "", set[str]()
        for line in self._lines():
            if line.get("key") == key and isinstance(line.get("run"), str):
                begun = _time(line.get("begun"))
                run = line["run"] if begun is not None and now - begun < _LONGEST else ""
                finished.clear()
            elif run and line.get("run") == run:
                if "ended" in line:
                    run = ""
                elif line.get("status") in FINISHED:
                    finished.add(str(line.get("table")))
                else:
                    finished.discard(str(line.get("table")))
        return (run, frozenset(finished)) if run else None

    def _lines(self) -> Iterator[dict[str, Any]]:
        with suppress(FileNotFoundError), open(self._path, "rb") as file:
            for line in file:
                try:
                    value = json.loads(line)
                except ValueError:
                    continue
                if isinstance(value, dict):
                    yield value

    # ------------------------------------------------------------------ writing

    def _take(self) -> bool:
        """Lock the file; False if another process has the lock."""
        self._lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        if lock(self._lock, wait=False):
            return True
        self.close()
        return False

    def _write(self, line: dict[str, Any]) -> None:
        try:
            self._append(line)
        except OSError as error:
            raise OperationalError(
                f"cannot write to the history of maintenance {self._path}: {error.strerror}"
            ) from error

    def _append(self, line: dict[str, Any]) -> None:
        data = json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            lock(handle)
            if os.fstat(handle).st_size:
                os.lseek(handle, -1, os.SEEK_END)
                if os.read(handle, 1) != b"\n":
                    data = b"\n" + data  # the last line is incomplete, after a kill
            while data:
                data = data[os.write(handle, data) :]
            os.fsync(handle)
        finally:
            os.close(handle)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _time(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else None
