"""Runs of maintenance: their reports, table by table, and the file with their history."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from msgspec import field
from msgspec.structs import asdict

from icesql.errors import OperationalError, plural, printable
from icesql.frozen import Frozen
from icesql.storage.file_lock import lock

ActionStatus = Literal["planned", "done", "partly", "nothing", "failed", "refused", "left"]
TableStatus = Literal[
    "planned", "done", "nothing", "partly", "failed", "damaged", "skipped", "gone", "left"
]
# The statuses of a table that is not processed again in the same run.
FINISHED: Final = ("done", "nothing")
OK, FAILED, LEFT = 0, 1, 3


class ActionReport(Frozen):
    """One action: its statement, and its predicted and reached ``Facts.measures`` by name.

    ``note`` is why it was chosen, refused or failed, or the procedure's note.
    ``bytes`` of data files were to be rewritten.
    """

    action: str
    status: ActionStatus
    statement: str = ""
    predicted: Mapping[str, int] = field(default_factory=dict)
    reached: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    note: str = ""
    snapshot_id: int | None = None
    bytes: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        shown = asdict(self) | {"seconds": round(self.seconds, 3)}
        del shown["bytes"]
        return shown


class TableReport(Frozen):
    """One table: its measures before, those predicted before the first action, and those reached.

    ``predicted`` has only what could be predicted; ``reached`` is counted at the end. Both count
    only snapshots from before the run; those that the run created are counted separately.
    """

    table: str
    status: TableStatus
    note: str = ""
    before: Mapping[str, int] = field(default_factory=dict)
    predicted: Mapping[str, int] = field(default_factory=dict)
    reached: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    actions: tuple[ActionReport, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        actions = [each.to_dict() for each in self.actions]
        return asdict(self) | {"seconds": round(self.seconds, 3), "actions": actions}

    @property
    def line(self) -> str:
        """The table in one line."""
        parts = [f"{self.table}: {self.status}"]
        changes = changes_text(self.before, self.reached or self.predicted)
        parts += [each for each in (changes, self.note) if each]
        failed = [each for each in self.actions if each.status in ("failed", "partly", "refused")]
        parts += [f"{each.action} {each.status}: {each.note}" for each in failed]
        return printable("; ".join(parts).replace("\n", " "))


class MaintenanceReport(Frozen):
    """A run over tables. ``earlier`` were finished before the run was continued.

    ``ended_by`` is "budget" if that ended the run, "window" if a table's window closed before
    everything was done for it, else ""; ``left`` has the tables that were not begun.
    ``dry_run``: nothing was changed, and the statements are those that would run.
    """

    run: str
    tables: tuple[TableReport, ...] = ()
    earlier: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    ended_by: str = ""
    warnings: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def exit_code(self) -> int:
        """0 all done or nothing to do, 1 a table failed or is damaged, 3 ended by its time."""
        if any(each.status in ("failed", "damaged", "partly") for each in self.tables):
            return FAILED
        is_left = self.left or any(each.status == "left" for each in self.tables)
        return LEFT if is_left else OK

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "run": self.run,
            "dry_run": self.dry_run,
            "ended_by": self.ended_by,
            "exit_code": self.exit_code,
            "warnings": list(self.warnings),
            "earlier": list(self.earlier),
            "left": list(self.left),
            "tables": [each.to_dict() for each in self.tables],
        }

    def __str__(self) -> str:
        lines: list[str] = []
        for table in self.tables:
            if table.status == "nothing":
                continue
            lines.append(table.line)
            for each in table.actions:
                text = f"  {each.action} {each.status}"
                if promised := changes_text(table.before, each.predicted):
                    text += f"; promised {promised}"
                lines.append(text)
                if each.statement:
                    lines.append(f"    {each.statement};")
        counts = Counter(table.status for table in self.tables)
        said = [f"{count:,} {status}" for status, count in sorted(counts.items())]
        if self.earlier:
            said.append(f"{len(self.earlier):,} finished earlier in this run")
        if self.left:
            said.append(f"{len(self.left):,} not begun: the budget is used up")
        total = len(self.tables) + len(self.earlier) + len(self.left)
        lines.append(f"{plural(total, 'table')}: {', '.join(said) or 'none'}")
        return "\n".join(map(printable, lines))


def changes_text(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Such as ``data files 40 → 1, removed files 12``: differing values, and new ones.

    Snapshots are counted with those that the run created.
    """
    parts = []
    made = after.get("made_snapshots", 0)
    for name, value in after.items():
        was, shown = before.get(name), f"{value:,}"
        if name == "snapshots" and (made or not value):
            shown = f"{value + made:,} ({made:,} made now)" if made else "those made now"
        elif was == value or name == "made_snapshots":
            continue
        change = f"{value:,}" if was is None else f"{was:,} → {shown}"
        parts.append(f"{name.replace('_', ' ')} {change}")
    return ", ".join(parts)


# ------------------------------------------------------------------ the history file
# JSON lines in a file of the user, to which several processes append:
#
#     {"run": id, "key": …, "begun": time}
#     {"run": id, "table": name, "status": …, "at": time, "report": {…}}
#     {"run": id, "ended": time}
#
# A killed run has no last line, nor has one that its budget ended: the next run with the same key
# continues it. Incomplete lines are skipped. The history only records which tables are finished;
# what a table needs is always derived from the table itself.


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
