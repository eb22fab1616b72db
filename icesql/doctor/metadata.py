"""Findings about the metadata of a table: manifests, snapshots and the log of its files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Final

from icesql.doctor.facts import Ask, Facts, try_to_ask
from icesql.doctor.finding import Finding, literal_text, weight_of
from icesql.scan.report_text import bytes_text

_FEWEST_MANIFESTS: Final = 10
_MANY_SNAPSHOTS: Final = 100
_ORPHANS: Final = re.compile(
    r"(\d+) of (\d+) files in .* are orphans, (.+?)(?:, (\d+) more are too young)?", re.DOTALL
)
_MOST_LISTED: Final = 200_000
_MANIFEST_BYTES: Final = 8 << 20


def manifests(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Many small manifests, which planning opens one by one."""
    data = [size for content, size in facts.manifests if content == 0]
    count = len(data)
    target = facts.properties.get("commit.manifest.target-size-bytes", "")
    after = max(1, ceil(sum(data) / (int(target) if target.isdigit() else _MANIFEST_BYTES)))
    if count < _FEWEST_MANIFESTS or after > count / 2:
        return
    size = sum(data) // count
    yield Finding(
        "manifests",
        weight_of(1 - after / count) if count >= 50 else "medium",
        f"{count:,} manifests of data files, {bytes_text(size)} each on average; "
        f"together they make about {after:,}",
        f"planning a query opens up to {count:,} manifests instead of {after:,}",
        f"CALL system.rewrite_manifests('{literal_text(facts.name)}')",
        "manifests",
        len(facts.manifests),
        len(facts.manifests) - count + after,
    )


def snapshots(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Snapshots that no branch or tag keeps any more, and the files that go with them."""
    statement = f"CALL system.expire_snapshots('{literal_text(facts.name)}')"
    answer = try_to_ask(ask, f"EXPLAIN {statement}")
    if answer is not None:
        for note in answer.notes:
            found = re.match(r"([\d,]+) snapshots and ([\d,]+) files would go", note)
            if found and (gone := int(found[1].replace(",", ""))) >= 5:
                yield Finding(
                    "old snapshots",
                    weight_of(gone / facts.snapshots / 2),
                    f"{gone:,} of {facts.snapshots:,} snapshots are older than the table keeps",
                    f"they hold {found[2]} files, and each commit writes all snapshots again",
                    statement,
                    "snapshots",
                    facts.snapshots,
                    facts.snapshots - gone,
                )
                return
    if facts.snapshots >= _MANY_SNAPSHOTS:
        yield Finding(
            "many snapshots",
            "low",
            f"{facts.snapshots:,} snapshots, all of them young enough to be kept",
            "each commit writes all of them again, and each first query reads them",
            f"CALL system.expire_snapshots(table => '{literal_text(facts.name)}', older_than => "
            # Spark's procedures take constants alone.
            f"TIMESTAMP '{datetime.now(UTC) - timedelta(days=1):%Y-%m-%d %H:%M:%S}+00:00', "
            "retain_last => 10)",
        )


def metadata_log(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Old metadata files that nobody deletes."""
    clears = facts.properties.get("write.metadata.delete-after-commit.enabled", "false")
    if clears.lower() != "true" and facts.log_entries >= 50:
        yield Finding(
            "metadata files",
            "low",
            f"{facts.log_entries:,} old metadata files are in the log, and none is ever deleted",
            "they take room in the store, and an expiry does not remove them",
            f"ALTER TABLE {facts.name} SET TBLPROPERTIES "
            "('write.metadata.delete-after-commit.enabled' = 'true', "
            "'write.metadata.previous-versions-max' = '20')",
        )


def orphans(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Files in the table's folder that no snapshot needs, which a listing of it tells."""
    if facts.files.count + facts.files.deletes > _MOST_LISTED:
        return  # a listing would take minutes; CALL system.remove_orphan_files makes it
    statement = f"CALL system.remove_orphan_files('{literal_text(facts.name)}')"
    answer = try_to_ask(ask, f"EXPLAIN {statement}")
    for note in answer.notes if answer is not None else ():
        found = _ORPHANS.fullmatch(note)
        if found is None or not (gone := int(found[1])):
            continue
        young = f"; {found[4]} more are younger, maybe of writes that failed" if found[4] else ""
        yield Finding(
            "orphans",
            weight_of(gone / int(found[2]) / 2),
            f"{gone:,} of {int(found[2]):,} files in the table's folder are older than three days "
            f"and needed by no snapshot{young}",
            f"they take {found[3]}, and nothing reads them",
            statement,
            "orphan files",
            gone,
            0,
        )
