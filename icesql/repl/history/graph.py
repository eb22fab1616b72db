"""The history of a table as a graph in text: one column a branch, the newest snapshot on top.

A pure function of snapshots and refs; ids are never cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from icesql.frozen import Frozen
from icesql.iceberg.metadata.property_numbers import whole_number

_CURRENT, _LIVE, _GONE = "●", "○", "✗"
_HERE = "*"  # where the mark of a snapshot comes
_ROWS: Final = (("added-records", "+"), ("deleted-records", "-"))
_AGES: Final = ((86400 * 365, "y"), (86400 * 30, "mo"), (86400, "d"), (3600, "h"), (60, "min"))


class Commit(Frozen):
    """A snapshot; ``committed_at`` has a zone, ``summary`` holds counts as texts."""

    snapshot_id: int
    parent_id: int | None
    committed_at: datetime
    operation: str | None
    summary: Mapping[str, str]


class Ref(Frozen):
    """A branch or tag."""

    name: str
    snapshot_id: int
    is_tag: bool


def history_graph(
    commits: Sequence[Commit],
    refs: Sequence[Ref],
    *,
    now: datetime,
    width: int = 110,
) -> Iterator[str]:
    """Lines of the graph, newest first.

    ``●`` is a head of a branch, ``○`` another snapshot that a branch or tag still reaches, ``✗``
    one that no ref reaches: it was rolled back, staged, or its branch dropped. Refs follow their
    snapshot, on a separate line if ``width`` cells are too few.
    """
    by_id = {each.snapshot_id: each for each in commits}
    reached = _reached(by_id, refs)
    heads = {each.snapshot_id for each in refs if not each.is_tag}
    # Clocks of writers differ: a child comes before its parent whatever their times.
    ordered = _children_first(by_id)
    texts = {each.snapshot_id: _words(each, now) for each in ordered}
    pad = [max((len(row[i]) for row in texts.values()), default=0) for i in range(5)]
    drawn = [
        (commit, *lanes)
        for commit, lanes in zip(ordered, _lanes(ordered, by_id, refs), strict=True)
    ]
    named: dict[int, list[str]] = {}
    for ref in refs:
        label = f"{'tag' if ref.is_tag else 'branch'} {ref.name}"
        named.setdefault(ref.snapshot_id, []).append(label)
    room = max((len(cells) for _, cells, _ in drawn), default=0)
    for commit, cells, rail in drawn:
        number = commit.snapshot_id
        mark = _CURRENT if number in heads else _LIVE if number in reached else _GONE
        words = "  ".join(
            text.rjust(size) if i in (0, 1, 4) else text.ljust(size)
            for i, (text, size) in enumerate(zip(texts[number], pad, strict=True))
        ).rstrip()
        notes = list(named.get(number, ()))
        if number not in reached:
            notes.append("rolled back or staged")
        line = f"{cells.replace(_HERE, mark).ljust(room)}  {words}"
        yield from _with_notes(line, rail.ljust(room), notes, width)


def _lanes(
    ordered: Sequence[Commit], by_id: Mapping[int, Commit], refs: Sequence[Ref]
) -> Iterator[tuple[str, str]]:
    """The columns beside each snapshot, and those between it and the next one.

    main is in the first one. A column holds the snapshot that its line leads to.
    """
    main = next((each.snapshot_id for each in refs if each.name == "main"), None)
    lanes: list[int | None] = [main if main in by_id else None]
    begun = False  # the line of main
    for commit in ordered:
        number = commit.snapshot_id
        column = lanes.index(number) if number in lanes else _free(lanes, 0 if begun else 1)
        begun = begun or column == 0
        joined = [i for i, each in enumerate(lanes) if each == number and i != column]
        last = max(joined, default=column)
        cells = ""
        for i, lane in enumerate(lanes):
            inside = column < i <= last
            if i == column:
                cell = _HERE
            elif i in joined:
                cell = "┘" if i == last else "┴"
            elif lane is not None and (i or begun):
                cell = "┼" if inside else "│"
            else:
                cell = "─" if inside else " "
            cells += cell + ("─" if column <= i < last else " ")
        lanes[column] = commit.parent_id if commit.parent_id in by_id else None
        for each in joined:
            lanes[each] = None
        while len(lanes) > 1 and lanes[-1] is None:
            lanes.pop()
        rail = " ".join(
            "│" if lane is not None and (i or begun) else " " for i, lane in enumerate(lanes)
        )
        yield cells.rstrip(), rail.rstrip()


def _with_notes(line: str, rail: str, notes: Sequence[str], width: int) -> Iterator[str]:
    if not notes:
        yield line
        return
    labels = ", ".join(notes)
    if len(line) + 4 + len(labels) <= width:
        yield f"{line}  ← {labels}"
        return
    yield line
    indent = len(rail) + 2
    lines: list[str] = []
    for note in notes:
        if lines and indent + 2 + len(lines[-1]) + 2 + len(note) <= width:
            lines[-1] += f", {note}"
        else:
            lines.append(note)
    for text in lines:
        yield f"{rail.ljust(indent)}↑ {text}"


def _words(commit: Commit, now: datetime) -> tuple[str, str, str, str, str]:
    """Id, age, time, operation and rows."""
    moment = commit.committed_at.astimezone(now.tzinfo or UTC)
    return (
        str(commit.snapshot_id),
        age(now - commit.committed_at),
        f"{moment:%Y-%m-%d %H:%M:%S}",
        commit.operation or "",
        rows_text(commit),
    )


def rows_text(commit: Commit) -> str:
    """The rows that a commit added and deleted, as far as its summary says."""
    return " ".join(
        f"{sign}{count:,}"
        for name, sign in _ROWS
        if (count := whole_number(commit.summary.get(name)))
    )


def age(since: timedelta) -> str:
    """An age in its largest unit: ``3 d``, ``5 min``; a time in the future has a minus."""
    seconds = int(since.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    for size, unit in _AGES:
        if seconds >= size:
            return f"{sign}{seconds // size} {unit}"
    return f"{sign}{seconds} s"


def _reached(by_id: Mapping[int, Commit], refs: Sequence[Ref]) -> frozenset[int]:
    found: set[int] = set()
    for ref in refs:
        _new_ancestors(ref.snapshot_id, by_id, found)
    return frozenset(found)


def _new_ancestors(number: int | None, by_id: Mapping[int, Commit], seen: set[int]) -> list[Commit]:
    """A snapshot and those before it, up to one that was seen; all are seen afterwards."""
    line = []
    while number is not None and number in by_id and number not in seen:
        seen.add(number)
        line.append(by_id[number])
        number = by_id[number].parent_id
    return line


def _children_first(by_id: Mapping[int, Commit]) -> list[Commit]:
    """Newest first, no snapshot before its child."""
    oldest_first: list[Commit] = []
    seen: set[int] = set()
    for each in sorted(by_id.values(), key=lambda each: (each.committed_at, -each.snapshot_id)):
        oldest_first += reversed(_new_ancestors(each.snapshot_id, by_id, seen))
    return oldest_first[::-1]


def _free(lanes: list[int | None], first: int) -> int:
    """The first column, from ``first`` on, that no line is in."""
    for index in range(first, len(lanes)):
        if lanes[index] is None:
            return index
    lanes.append(None)
    return len(lanes) - 1
