"""What following the findings of a table saves: each promises files and manifests, in their order.

What one statement leaves, the next may have promised to take: what it saves is what is left to
save. Nothing is promised of files of older partition specs: a rewrite gives their rows to
partitions that no metadata tells.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from msgspec.structs import replace

from icesql.commit.files import file_key
from icesql.context import QueryContext
from icesql.health.facts import Facts
from icesql.health.files import options_of_deletes
from icesql.health.finding import Finding, Gain
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.maintain.rewrite.grouping import FileGroup
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.spec_scan import typed_specs


def with_gains(
    findings: Sequence[Finding], facts: Facts, query: QueryContext
) -> tuple[Finding, ...]:
    """The findings with what their statements save of files, requests and planning."""
    forecast = _Forecast(facts, query)
    return tuple(
        replace(each, gain=each.gain + forecast.gain(each)) if each.statement else each
        for each in findings
    )


class _Forecast:
    """The files and manifests that are left after the statements so far."""

    def __init__(self, facts: Facts, query: QueryContext) -> None:
        self._facts, self._query = facts, query
        self._left: tuple[int, int] | None = None
        self._live: list[frozenset[Any]] = []

    def gain(self, finding: Finding) -> Gain:
        """What the statement of a finding saves after those before it."""
        facts, files = self._facts, self._facts.files
        if finding.name not in ("small files", "deletes", "manifests"):
            return Gain()
        if self._left is None:
            self._live = [*self._listed()]
            self._left = files.count + files.deletes, len(self._live)
        before = self._left
        match finding.name:
            case "small files":
                groups, kept = facts.compaction.small_groups, facts.compaction.deletes_left
                promised = self._rewritten(groups, frozenset(map(file_key, kept)))
            case "deletes":
                groups = facts.compaction.groups_by(options_of_deletes(facts))
                promised = self._rewritten(groups, ())
            case _:
                manifests = int(finding.now or 0) - int(finding.after or 0)
                promised = before[0], len(self._live) - manifests
        self._left = min(before[0], promised[0]), min(before[1], promised[1])
        fewer, manifests = (old - new for old, new in zip(before, self._left, strict=True))
        seconds = files.seconds * manifests / max(len(self._live), 1)
        return Gain(fewer, 0, fewer + manifests, seconds)

    def _listed(self) -> Any:
        """The paths of data files, or the keys of deletes, that each manifest lists alive."""
        table = self._facts.table
        specs = typed_specs(table.metadata)
        reader = ManifestReader(table.storage, self._query, table.name)
        found = reader.entries_of(
            self._facts.files.manifests, lambda each: specs[each.partition_spec_id]
        )
        for manifest, entries in found:
            live = [index for index, alive in enumerate(entries.live) if alive]
            if live and manifest.content is ManifestContent.DATA:
                yield frozenset(entries.path[index] for index in live)
            elif live:
                yield frozenset(file_key(entries.data_file(index)) for index in live)

    def _rewritten(self, groups: Sequence[FileGroup], deletes: Collection[Any]) -> tuple[int, int]:
        """The files and manifests after a rewrite of groups, with which all but some deletes go."""
        files = self._facts.files
        if not groups or any(each.partition is None for each in groups):
            return files.count + files.deletes, len(self._live)
        read = {task.data_file.path for each in groups for task in each.files}
        made = sum(each.output_files for each in groups)
        # A path of a data file is a text, the key of deletes is none.
        left = sum(
            any(one not in read if isinstance(one, str) else one in deletes for one in each)
            for each in self._live
        )
        return files.count - len(read) + made + len(deletes), left + 1
