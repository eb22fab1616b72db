"""Findings about files: small files, deletes, and partitions that are too large."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Final

from msgspec.structs import replace

from icesql.errors import plural
from icesql.health.compaction import Sizes, all_files
from icesql.health.facts import Facts, tried
from icesql.health.finding import Finding, weight_of
from icesql.health.live_files import place_text
from icesql.health.need import Need
from icesql.health.needs import (
    FEWEST_FILES,
    LARGEST_SHARE,
    apply_deletes,
    compact_options,
    need,
    try_need,
)
from icesql.health.statement import Statement, set_properties
from icesql.scan.report_text import bytes_text

_MANY_DELETE_FILES: Final = 100


def small_files(facts: Facts) -> Iterator[Finding]:
    """Small files that a compaction would combine, by the plan of that compaction."""
    compaction, count = need("compact", facts), facts.files.count
    if compaction is None or compaction.rewrite is None:
        return
    plan = Sizes.of(compaction.rewrite)
    after = count - plan.read + plan.made
    if plan.read - plan.older < FEWEST_FILES or after > count * LARGEST_SHARE:
        return
    size = median(facts.files.bytes)
    older = f"; {plan.older:,} of them are of older partition specs" if plan.older else ""
    yield compaction.finding(
        facts,
        "small files",
        weight_of(1 - after / count),
        f"a full read opens {count:,} files instead of {after:,}",
        f"{compaction.reason} (half are below {bytes_text(int(size))}); "
        f"together they make about {plan.made:,}{older}",
        "data_files",
    )


def delete_files(facts: Facts) -> Iterator[Finding]:
    """Deletes that every read has to merge."""
    files = facts.files
    deletes, data, equality = files.deletes, files.count, files.equality
    plan = tried(facts.plan, compact_options(facts)) if deletes else None
    merged = 0 if plan is None else sum(bool(task.deletes) for task in all_files(plan))
    if not merged:
        return
    gone, rows = files.deleted_rows, files.rows
    kinds = f", {equality:,} of them by equality" if equality else ""
    mended = _without_deletes(facts)
    found = mended.finding(
        facts,
        "deletes",
        "high" if equality else weight_of(min(gone / max(rows, 1), deletes / data) * 2),
        f"a full read opens {plural(deletes, 'more file')} and looks up the rows of "
        f"{plural(merged, 'data file')}",
        f"{plural(deletes, 'delete file')} beside {plural(data, 'data file')}{kinds}; "
        f"of {merged:,} of these they delete {gone:,} of {rows:,} rows, at the most",
        next(iter(mended.promise)),
    )
    if mended.name == "convert":  # Spark has no such procedure
        spark = apply_deletes(facts).mend(facts.parts).spark
        found = replace(found, mend=Statement(found.statement, spark))
    yield found
    if facts.metadata.format_version == 2 and deletes - equality >= _MANY_DELETE_FILES:
        yield Finding(
            "deletion vectors",
            "low",
            f"{deletes - equality:,} position delete files; version 3 has one vector a file",
            "readers that know version 3 merge a vector without sorting or joining",
            set_properties(facts.parts, {"format-version": "3"}),
        )


def _without_deletes(facts: Facts) -> Need:
    """The action of maintenance that removes deletes; else a rewrite only the doctor suggests."""
    compaction = try_need("compact", facts)
    groups = compaction.rewrite.groups if compaction and compaction.rewrite else ()
    if not any(task.deletes for group in groups for task in group.files):
        compaction = None
    return (
        try_need("convert", facts)
        or compaction
        or try_need("deletes", facts)
        or apply_deletes(facts)
    )


def skew(facts: Facts) -> Iterator[Finding]:
    """A partition that is much larger than the others."""
    sizes: dict[int, int] = defaultdict(int)
    for index, size in zip(facts.files.partitions, facts.files.bytes, strict=True):
        sizes[index] += size
    if len(sizes) < FEWEST_FILES:
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
