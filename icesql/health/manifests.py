"""Findings about manifests: many small ones, or files of many partitions in each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from icesql.commit.manifests.rewrite import plan_manifests
from icesql.health.facts import Facts
from icesql.health.finding import Finding, weight_of
from icesql.health.need import Need
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.property_numbers import whole_number
from icesql.scan.report_text import bytes_text

_FEWEST_MANIFESTS: Final = 10
_MANIFEST_BYTES: Final = 8 << 20


def manifests(facts: Facts) -> Iterator[Finding]:
    """Many small manifests, or manifests with files of too many partitions each."""
    given = facts.files.manifests
    target = whole_number(facts.properties.get("commit.manifest.target-size-bytes"))
    size = _MANIFEST_BYTES if target is None else target
    groups = plan_manifests(given, facts.metadata.default_spec_id, size)
    data = [each for each in groups if each.content is ManifestContent.DATA]
    count = sum(len(each.manifests) for each in data)
    after = sum(each.count for each in data)
    if count < _FEWEST_MANIFESTS:
        return
    if after > count / 2:
        yield from _clustering(facts, after)
        return
    size = sum(each.manifest_length or 0 for group in data for each in group.manifests) // count
    left = len(given) - sum(len(each.manifests) - each.count for each in groups)
    yield _need(
        f"{count:,} manifests of data files, {bytes_text(size)} each on average; "
        f"together they make about {after:,}",
        left,
    ).finding(
        facts,
        "manifests",
        weight_of(1 - after / count) if count >= 50 else "medium",
        f"planning a query opens up to {count:,} manifests instead of {after:,}",
        measure="manifests",
    )


def _need(reason: str, left: int | None = None) -> Need:
    promise = {} if left is None else {"manifests": left}
    return Need("manifests", "rewrite_manifests", reason, promise=promise)


def _clustering(facts: Facts, after: int) -> Iterator[Finding]:
    """Manifests of the right size, with the files of each partition spread over many."""
    places = sum(1 for spec, _ in facts.files.places if spec == facts.metadata.default_spec_id)
    # The average number of manifests with files of a partition. Afterwards these are neighbours,
    # some of them across a manifest's end.
    spread, best = (
        count / max(places, 1) for count in (sum(facts.files.spread), places + after - 1)
    )
    if places < 2 or spread < 3 or best > spread / 2:
        return
    yield _need(
        f"the files of one partition are in {spread:,.1f} of {len(facts.files.spread):,} manifests "
        "on average"
    ).finding(
        facts,
        "manifest clustering",
        weight_of(1 - best / spread),
        f"planning a query of one partition opens {spread:,.1f} manifests instead of {best:,.1f}",
        measure="manifests of a partition",
        now=round(spread, 2),
        after=round(best, 2),
    )
