"""Predict the savings of a table's findings, in files and manifests, in their order.

Predictions of statements may overlap, so each is credited only with savings that earlier statements
leave. Nothing is predicted for files of older partition specs: a rewrite moves their rows to
partitions that metadata does not show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from icesql.commit.files import file_key
from icesql.health.compaction import Sizes
from icesql.health.facts import Facts
from icesql.health.finding import Finding, Gain
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.maintain.rewrite.plan import RewritePlan
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.tasks.task import distinct_deletes


def with_gains(findings: Sequence[Finding], facts: Facts) -> tuple[Finding, ...]:
    """The findings with the savings of their statements in files, requests and planning."""
    forecast = _Forecast(facts)
    return tuple(
        replace(each, gain=each.gain + forecast.gain(each)) if each.statement else each
        for each in findings
    )


class _Forecast(Struct):
    """Tracks the files and manifests that are left after the statements so far."""

    facts: Facts
    left: tuple[int, int] | None = None
    live: list[frozenset[Any]] = []

    def gain(self, finding: Finding) -> Gain:
        """The savings of a finding's statement after the earlier ones."""
        files, need = self.facts.files, finding.need
        if need is None:
            return Gain()
        if self.left is None:
            self.live = [*self._listed()]
            self.left = files.count + files.deletes, len(self.live)
        before = self.left
        if need.rewrite is None:
            deletes = need.promise.get("delete_files")
            promised = (
                before[0] if deletes is None else files.count + deletes,
                need.promise.get("manifests", before[1]),
            )
        else:
            promised = self._rewritten(need.rewrite)
        self.left = min(before[0], promised[0]), min(before[1], promised[1])
        fewer, manifests = (old - new for old, new in zip(before, self.left, strict=True))
        seconds = files.seconds * manifests / max(len(self.live), 1)
        return Gain(fewer, 0, fewer + manifests, seconds)

    def _listed(self) -> Iterator[frozenset[Any]]:
        """For each manifest, the paths of its live data files, or the keys of its live deletes."""
        table = self.facts.table
        reader = ManifestReader(table, self.facts.query)
        for manifest, entries in reader.entries_of(self.facts.files.manifests):
            live = entries.live_indexes
            if live and manifest.content is ManifestContent.DATA:
                yield frozenset(entries.path[index] for index in live)
            elif live:
                yield frozenset(file_key(entries.data_file(index)) for index in live)

    def _rewritten(self, plan: RewritePlan) -> tuple[int, int]:
        """The counts of files and manifests after a compaction, without deletes of its files."""
        files, sizes = self.facts.files, Sizes.of(plan)
        if not plan.groups or sizes.older:
            return files.count + files.deletes, len(self.live)
        kept = {each.data_file.path for each in plan.left}
        deletes = {*map(file_key, distinct_deletes(plan.left))}
        # Manifests without entries for other files disappear.
        left = sum(not each.isdisjoint(kept | deletes) for each in self.live)
        return files.count - sizes.read + sizes.made + len(deletes), left + 1
