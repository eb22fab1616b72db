"""Findings about bounds: files that no filter can skip, and the effect of sorting."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from icesql.errors import plural
from icesql.health.compaction import Sizes
from icesql.health.facts import Column, Facts, tried
from icesql.health.finding import Finding, weight_of
from icesql.health.live_files import LiveFiles
from icesql.health.needs import ALL_FILES, FEWEST_FILES, rewrite_all
from icesql.health.statement import column, set_properties

_PROBES: Final = 200
_MOST_COLUMNS: Final = 3  # named in a finding
_MOST_MENDED: Final = 32  # in one statement
# The default number of columns that get metrics.
_INFERRED_COLUMNS: Final = 100


def overlap(facts: Facts) -> Iterator[Finding]:
    """Columns for which a lookup reads most files, and the effect of sorting by each."""
    candidates = []
    if facts.files.count < FEWEST_FILES:
        return
    for each in sorted(facts.columns, key=_likely):
        if each.name in facts.files.bounds and not each.is_identity:
            share = share_read(facts.files, each.name)
            if share is not None and share > 0.5:
                candidates.append((share, each.name))
        if len(candidates) == _MOST_COLUMNS:
            break
    planned = tried(facts.plan, ALL_FILES) if candidates else None
    if planned is None or (plan := Sizes.of(planned)).older:
        return
    for share, name in candidates:
        after = min(1.0, len(facts.files.places) / max(plan.made, 1))
        if after > share * 0.8:
            continue
        yield rewrite_all(facts, strategy="sort", sort_order=column(name)).finding(
            facts,
            "overlap",
            weight_of(share - after),
            f"a filter on {name} skips {1 - share:.0%} instead of {1 - after:.0%}",
            f"the bounds of {name} overlap: a lookup by one value reads "
            f"{share:.0%} of the files of a partition; sorted by it, {after:.0%}",
            f"share of files read by a lookup of {name}",
            share,
            after,
        )


def missing_bounds(facts: Facts) -> Iterator[Finding]:
    """Columns without bounds in their files, so that a filter on them skips no file."""
    data = facts.files.count
    usual = facts.properties.get("write.metadata.metrics.default", "truncate(16)")
    found: list[tuple[int, Column]] = []
    for index, each in enumerate(facts.columns):
        bounds = facts.files.bounds.get(each.name)
        if bounds is None or not data:
            continue
        mode = facts.properties.get(f"write.metadata.metrics.column.{each.name}", usual)
        # A file without a value count lacks the column, unless its writer left the counts out.
        left_out = mode.lower() == "none" or index >= _INFERRED_COLUMNS
        without = facts.files.whole(bounds.missing if left_out else bounds.counted)
        if without > data * 0.1:
            found.append((without, each))
    found.sort(key=lambda each: _likely(each[1]))
    # One finding for each column that users may filter by; a wide table has many other columns.
    for group in [found] if len(found) > _MOST_COLUMNS else [[each] for each in found]:
        yield _without_bounds(facts, group)


def _without_bounds(facts: Facts, found: list[tuple[int, Column]]) -> Finding:
    data, without = facts.files.count, max(count for count, _ in found)
    names = [column.name for _, column in found]
    columns = ", ".join(names[:_MOST_COLUMNS])
    if len(names) > _MOST_COLUMNS:
        columns += f" and {len(names) - _MOST_COLUMNS} more columns"
    modes = {
        f"write.metadata.metrics.column.{each}": "truncate(16)" for each in names[:_MOST_MENDED]
    }
    rewritten = rewrite_all(facts).finding(
        facts,
        "no bounds",
        # With few files there is little to skip.
        "low" if data < FEWEST_FILES else weight_of(without / data),
        "a filter on one of them reads all files"
        if len(names) > 1
        else f"a filter on {columns} reads all of them",
        f"{without:,} of {plural(data, 'file')} have no bounds of {columns}",
        f"files without bounds of {columns}",
        without,
        0 if len(names) <= _MOST_MENDED else None,
    )
    return replace(rewritten, mend=set_properties(facts.parts, modes).then(rewritten.mend))


def missing_nan_counts(facts: Facts) -> Iterator[Finding]:
    """Floating-point columns whose files do not record whether they contain NaN."""
    data = facts.files.count
    for each in facts.columns:
        bounds = facts.files.bounds.get(each.name)
        without = facts.files.whole(bounds.nan_unknown) if bounds else 0
        if without > data * 0.1 and data >= FEWEST_FILES:
            yield rewrite_all(facts).finding(
                facts,
                "no NaN counts",
                "low",
                f"NaN is greater than every number, so {each.name} > x skips none of them",
                f"{without:,} of {plural(data, 'file')} do not count NaN in {each.name}",
                f"files without a NaN count of {each.name}",
                without,
                0,
            )


def share_read(files: LiveFiles, column: str) -> float | None:
    """The share of a partition's files that a lookup by one value of ``column`` reads.

    Tried values are midpoints of files' bounds, up to 200 in a partition and fewer if there are
    many partitions. None if less than nine of ten files have bounds, or no partition has two files.
    """
    bounds = files.bounds[column]
    places: list[list[tuple[float, float]]] = [[] for _ in files.places]
    known = 0
    for place, low, high in zip(files.sampled, bounds.low, bounds.high, strict=True):
        if low == low and high == high:  # neither is NaN
            known += 1
            places[place].append((low, high))
    if known < len(files.sampled) * 0.9 or not known:
        return None
    shares, weights = 0.0, 0
    most = max(4, min(_PROBES, _PROBES * 10 // max(len(places), 1)))
    for each in places:
        if len(each) < 2:
            continue
        lows, highs = sorted(low for low, _ in each), sorted(high for _, high in each)
        probes = [(low + high) / 2 for low, high in each[:: max(1, len(each) // most)]]
        # Files that begin at or before the probe, without those that end before it.
        hits = sum(bisect_right(lows, probe) - bisect_left(highs, probe) for probe in probes)
        shares += hits / len(probes)
        weights += len(each)
    return shares / weights if weights else None


def _likely(column: Column) -> tuple[int, str]:
    """A sort key that puts likely filter columns first: times, then ids."""
    name, kind = column.name.lower(), column.type.lower()
    if kind.startswith(("timestamp", "date")):
        return 0, name
    return (1, name) if name == "id" or name.endswith(("_id", "id")) else (2, name)
