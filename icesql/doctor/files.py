"""Findings about the files of a table: small ones, deletes, and files that filters cannot skip."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Final

from icesql.doctor.facts import Ask, Column, Facts, try_to_ask
from icesql.doctor.finding import Finding, literal_text, weight_of
from icesql.doctor.live_files import LiveFiles, place_text
from icesql.scan.report_text import bytes_text

_FEWEST_FILES: Final = 5
_PROBES: Final = 200
_MOST_COLUMNS: Final = 3  # told of by name
_MOST_MENDED: Final = 32  # in one statement
# Columns that get metrics where the table says nothing of them.
_INFERRED_COLUMNS: Final = 100


def small_files(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Files that a compaction would put together, by the plan of the compaction itself."""
    statement = f"CALL system.rewrite_data_files('{literal_text(facts.name)}')"
    plan = _rewrite_plan(ask, statement)
    count = facts.files.count
    if plan is None or plan[0] < _FEWEST_FILES:
        return
    read, made = plan
    after = count - read + made
    if after > count * 0.9:
        return
    size = median(facts.files.bytes)
    yield Finding(
        "small files",
        weight_of(1 - after / count),
        f"{read:,} of {count:,} data files are small or have many deletes "
        f"(half are below {bytes_text(int(size))}); together they make about {made:,}",
        f"a full read opens {count:,} files instead of {after:,}",
        statement,
        "data files",
        count,
        after,
    )


def delete_files(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Deletes that each read has to merge."""
    files = facts.files
    deletes, data, equality = files.deletes, files.count, files.equality
    if not deletes or not data:
        return
    gone, rows = files.deleted_rows, files.rows
    kinds = f", {equality:,} of them by equality" if equality else ""
    yield Finding(
        "deletes",
        "high" if equality else weight_of(min(gone / max(rows, 1), deletes / data) * 2),
        f"{_count(deletes, 'delete file')} beside {_count(data, 'data file')}{kinds}; "
        f"they delete {gone:,} of {rows:,} rows, at the most",
        f"a full read opens {_count(deletes, 'more file')} and looks up {rows:,} rows",
        f"CALL system.rewrite_data_files(table => '{literal_text(facts.name)}', options => map("
        "'delete-file-threshold', '1', 'min-input-files', '1', 'remove-dangling-deletes', 'true'))",
        "delete files",
        deletes,
        0,
    )
    if facts.format_version == 2 and deletes - equality >= _FEWEST_FILES * 20:
        yield Finding(
            "deletion vectors",
            "low",
            f"{deletes - equality:,} position delete files; version 3 has one vector a file",
            "readers that know version 3 merge a vector without sorting or joining",
            f"ALTER TABLE {facts.name} SET TBLPROPERTIES ('format-version' = '3')",
        )


def overlap(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Columns by which a lookup reads most files, and what sorting by one would change."""
    candidates = []
    for column in facts.columns:
        if column.name in facts.files.bounds and column.partitioned != "identity":
            share = share_read(facts.files, column.name)
            if share is not None and share > 0.5:
                candidates.append((share, column))
    if not candidates or facts.files.count < _FEWEST_FILES:
        return
    for share, column in sorted(candidates, key=lambda each: _likely(each[1]))[:3]:
        statement = (
            f"CALL system.rewrite_data_files(table => '{literal_text(facts.name)}', "
            f"strategy => 'sort', sort_order => '{literal_text(_quoted(column.name))}', "
            "options => map('rewrite-all', 'true'))"
        )
        plan = _rewrite_plan(ask, statement)
        if plan is None:
            return
        places = len(facts.files.places)
        after = min(1.0, places / max(plan[1], 1))
        if after > share * 0.8:
            continue
        yield Finding(
            "overlap",
            weight_of(share - after),
            f"the bounds of {column.name} overlap: a lookup by one value reads "
            f"{share:.0%} of the files of a partition; sorted by it, {after:.0%}",
            f"a filter on {column.name} skips {1 - share:.0%} instead of {1 - after:.0%}",
            statement,
            f"share of files read by a lookup of {column.name}",
            share,
            after,
        )


def missing_bounds(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Columns without bounds in their files, by which no filter can skip one."""
    data = facts.files.count
    usual = facts.properties.get("write.metadata.metrics.default", "truncate(16)")
    found: list[tuple[int, Column]] = []
    for index, column in enumerate(facts.columns):
        bounds = facts.files.bounds.get(column.name)
        if bounds is None or not data:
            continue
        mode = facts.properties.get(f"write.metadata.metrics.column.{column.name}", usual)
        # A file without a count has no such column, unless its writer was to leave the counts out.
        left_out = mode.lower() == "none" or index >= _INFERRED_COLUMNS
        without = bounds.missing if left_out else bounds.counted
        if without > data * 0.1:
            found.append((without, column))
    found.sort(key=lambda each: _likely(each[1]))
    # One finding for each column that people may filter by; a wide table has many others.
    for group in [found] if len(found) > _MOST_COLUMNS else [[each] for each in found]:
        yield _without_bounds(facts, group)


def _without_bounds(facts: Facts, found: list[tuple[int, Column]]) -> Finding:
    data, without = facts.files.count, max(count for count, _ in found)
    names = [column.name for _, column in found]
    told = ", ".join(names[:_MOST_COLUMNS])
    if len(names) > _MOST_COLUMNS:
        told += f" and {len(names) - _MOST_COLUMNS} more columns"
    modes = ", ".join(
        f"'write.metadata.metrics.column.{literal_text(each)}' = 'truncate(16)'"
        for each in names[:_MOST_MENDED]
    )
    return Finding(
        "no bounds",
        # Of few files there is little to skip.
        "low" if data < _FEWEST_FILES else weight_of(without / data),
        f"{without:,} of {_count(data, 'file')} have no bounds of {told}",
        "a filter on one of them reads all files"
        if len(names) > 1
        else f"a filter on {told} reads all of them",
        f"ALTER TABLE {facts.name} SET TBLPROPERTIES ({modes}); "
        f"CALL system.rewrite_data_files(table => '{literal_text(facts.name)}', "
        "options => map('rewrite-all', 'true'))",
        f"files without bounds of {told}",
        without,
        0 if len(names) <= _MOST_MENDED else None,
    )


def skew(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """A partition that is far larger than the others."""
    sizes: dict[int, int] = defaultdict(int)
    for index, size in zip(facts.files.partitions, facts.files.bytes, strict=True):
        sizes[index] += size
    if len(sizes) < _FEWEST_FILES:
        return
    number, largest = max(sizes.items(), key=lambda each: each[1])
    usual = median(sizes.values())
    if largest >= 20 * usual and largest >= 64 << 20:
        place = place_text(facts.table, facts.files.places[number])
        yield Finding(
            "skew",
            "low",
            f"the partition {place} has {bytes_text(largest)}, half of the others less than "
            f"{bytes_text(int(usual))}",
            "one task of a distributed query works while the others wait",
        )


# ------------------------------------------------------------------ numbers


def share_read(files: LiveFiles, column: str) -> float | None:
    """The share of a partition's files that a lookup by one value of ``column`` reads.

    The values tried are the middles between the bounds of files, 200 a partition and fewer of
    many. None where fewer than nine of ten files have bounds, or no partition has two files.
    """
    bounds = files.bounds[column]
    places: list[list[tuple[float, float]]] = [[] for _ in files.places]
    known = 0
    for place, low, high in zip(files.partitions, bounds.low, bounds.high, strict=True):
        if low == low and high == high:  # neither is NaN
            known += 1
            places[place].append((low, high))
    if known < files.count * 0.9:
        return None
    shares, weights = 0.0, 0
    most = max(4, min(_PROBES, _PROBES * 10 // max(len(places), 1)))
    for each in places:
        if len(each) < 2:
            continue
        lows, highs = sorted(low for low, _ in each), sorted(high for _, high in each)
        probes = [(low + high) / 2 for low, high in each[:: max(1, len(each) // most)]]
        # Those that begin at or before the probe, without those that end before it.
        hits = sum(bisect_right(lows, probe) - bisect_left(highs, probe) for probe in probes)
        shares += hits / len(probes)
        weights += len(each)
    return shares / weights if weights else None


def _likely(column: Column) -> tuple[int, str]:
    """Columns that people filter by come first: times, then ids."""
    name, kind = column.name.lower(), column.type.lower()
    if kind.startswith(("timestamp", "date")):
        return 0, name
    return (1, name) if name == "id" or name.endswith(("_id", "id")) else (2, name)


def _rewrite_plan(ask: Ask, statement: str) -> tuple[int, int] | None:
    """Files that a compaction reads, and how many it makes of them, as EXPLAIN tells."""
    answer = try_to_ask(ask, f"EXPLAIN {statement}")
    if answer is None:
        return None
    for note in answer.notes:
        if found := re.match(r"([\d,]+) files? .* become about ([\d,]+)", note):
            return int(found[1].replace(",", "")), int(found[2].replace(",", ""))
    return None


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _quoted(name: str) -> str:
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name)
    return name if plain else '"' + name.replace('"', '""') + '"'
