"""Findings about the files of a table: small ones, deletes, and files that filters cannot skip."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from statistics import median
from typing import Any, Final
from uuid import UUID

from icesql.doctor.facts import Ask, Column, DataFile, Facts, try_to_ask
from icesql.doctor.finding import Finding, literal_text, weight_of
from icesql.scan.report_text import bytes_text

_FEWEST_FILES: Final = 5
_PROBES: Final = 200
# Columns that get metrics where the table says nothing of them.
_INFERRED_COLUMNS: Final = 100
# Types whose order is that of their bounds, and by which people look rows up.
_ORDERED: Final = re.compile(
    r"int|long|bigint|float|double|decimal.*|date|timestamp.*|string|varchar|uuid|time"
)


def small_files(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Files that a compaction would put together, by the plan of the compaction itself."""
    statement = f"CALL system.rewrite_data_files('{literal_text(facts.name)}')"
    plan = _rewrite_plan(ask, statement)
    count = len(facts.data)
    if plan is None or plan[0] < _FEWEST_FILES:
        return
    read, made = plan
    after = count - read + made
    if after > count * 0.9:
        return
    size = median(each.bytes for each in facts.data)
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
    deletes, data = facts.deletes, facts.data
    if not deletes or not data:
        return
    gone, rows = sum(each.rows for each in deletes), sum(each.rows for each in data)
    equality = sum(each.content == 2 for each in deletes)
    kinds = f", {equality:,} of them by equality" if equality else ""
    yield Finding(
        "deletes",
        "high" if equality else weight_of(min(gone / max(rows, 1), len(deletes) / len(data)) * 2),
        f"{len(deletes):,} delete files beside {len(data):,} data files{kinds}; "
        f"they delete {gone:,} of {rows:,} rows, at the most",
        f"a full read opens {len(deletes):,} more files and looks up {rows:,} rows",
        f"CALL system.rewrite_data_files(table => '{literal_text(facts.name)}', options => map("
        "'delete-file-threshold', '1', 'min-input-files', '1', 'remove-dangling-deletes', 'true'))",
        "delete files",
        len(deletes),
        0,
    )
    if facts.format_version == 2 and len(deletes) - equality >= _FEWEST_FILES * 20:
        yield Finding(
            "deletion vectors",
            "low",
            f"{len(deletes) - equality:,} position delete files; version 3 has one vector a file",
            "readers that know version 3 merge a vector without sorting or joining",
            f"ALTER TABLE {facts.name} SET TBLPROPERTIES ('format-version' = '3')",
        )


def overlap(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Columns by which a lookup reads most files, and what sorting by one would change."""
    candidates = []
    for column in facts.columns:
        if _ORDERED.fullmatch(column.type.lower()) and column.partitioned != "identity":
            share = share_read(facts.data, column.name)
            if share is not None and share > 0.5:
                candidates.append((share, column))
    if not candidates or len(facts.data) < _FEWEST_FILES:
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
        places = len({each.partition for each in facts.data})
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
    data = facts.data
    usual = facts.properties.get("write.metadata.metrics.default", "truncate(16)")
    for index, column in enumerate(facts.columns):
        if not _ORDERED.fullmatch(column.type.lower()) or not data:
            continue
        mode = facts.properties.get(f"write.metadata.metrics.column.{column.name}", usual)
        # A file without a count has no such column, unless its writer was to leave the counts out.
        left_out = mode.lower() == "none" or index >= _INFERRED_COLUMNS
        without = [
            each
            for each in data
            if (metrics := each.metrics.get(column.name) or {}).get("lower_bound") is None
            and (left_out or metrics.get("value_count") is not None)
            and metrics.get("null_value_count") != each.rows
        ]
        if len(without) <= len(data) * 0.1:
            continue
        yield Finding(
            "no bounds",
            weight_of(len(without) / len(data)),
            f"{len(without):,} of {len(data):,} files have no bounds of {column.name}",
            f"a filter on {column.name} reads all of them",
            f"ALTER TABLE {facts.name} SET TBLPROPERTIES "
            f"('write.metadata.metrics.column.{literal_text(column.name)}' = 'truncate(16)'); "
            f"CALL system.rewrite_data_files(table => '{literal_text(facts.name)}', "
            "options => map('rewrite-all', 'true'))",
            f"files without bounds of {column.name}",
            len(without),
            0,
        )


def skew(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """A partition that is far larger than the others."""
    sizes: dict[str, int] = defaultdict(int)
    for each in facts.data:
        sizes[each.partition] += each.bytes
    if len(sizes) < _FEWEST_FILES:
        return
    place, largest = max(sizes.items(), key=lambda each: each[1])
    usual = median(sizes.values())
    if largest >= 20 * usual and largest >= 64 << 20:
        yield Finding(
            "skew",
            "low",
            f"the partition {place} has {bytes_text(largest)}, half of the others less than "
            f"{bytes_text(int(usual))}",
            "one task of a distributed query works while the others wait",
        )


# ------------------------------------------------------------------ numbers


def share_read(files: Sequence[DataFile], column: str) -> float | None:
    """The share of a partition's files that a lookup by one value of ``column`` reads.

    The values tried are the middles between the bounds of each file, up to 200 a partition. None
    where fewer than nine of ten files have bounds, or no partition has two files.
    """
    places: dict[str, list[tuple[float, float]]] = defaultdict(list)
    known = 0
    for each in files:
        metrics = each.metrics.get(column) or {}
        low, high = metrics.get("lower_bound"), metrics.get("upper_bound")
        if low is not None and high is not None:
            known += 1
            places[each.partition].append((_place(low), _place(high)))
    if known < len(files) * 0.9:
        return None
    shares, weights = 0.0, 0
    for bounds in places.values():
        if len(bounds) < 2:
            continue
        lows, highs = sorted(low for low, _ in bounds), sorted(high for _, high in bounds)
        probes = [(low + high) / 2 for low, high in bounds[:: max(1, len(bounds) // _PROBES)]]
        # Those that begin at or before the probe, without those that end before it.
        hits = sum(bisect_right(lows, probe) - bisect_left(highs, probe) for probe in probes)
        shares += hits / len(probes)
        weights += len(bounds)
    return shares / weights if weights else None


def _place(value: Any) -> float:
    """Where a bound lies on a line; of a text its first bytes count."""
    match value:
        case int() | float() | Decimal():
            return float(value)
        case datetime():
            return value.replace(tzinfo=UTC).timestamp()
        case date():
            return float(value.toordinal())
        case time():
            return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
        case UUID():
            return float(value.int)
        case _:
            return float(int.from_bytes(str(value).encode()[:8].ljust(8, b"\0"), "big"))


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


def _quoted(name: str) -> str:
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name)
    return name if plain else '"' + name.replace('"', '""') + '"'
