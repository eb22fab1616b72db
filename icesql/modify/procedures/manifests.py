"""rewrite_manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from icesql.commit.manifests.rewrite import (
    ManifestGroup,
    manifest_groups,
)
from icesql.commit.manifests.rewrite import (
    rewrite_manifests as rewrite,
)
from icesql.maintain.procedures.plan import Plan, Rows, Step
from icesql.modify.procedures.call import Call


def rewrite_manifests(call: Call) -> Plan:
    """The manifests of one partition spec, clustered by partition."""
    catalog, table = call.target()
    sort_by = call["sort_by"] or ()

    def run() -> Rows:
        done = rewrite(
            catalog, table, spec_id=call["spec_id"], sort_by=sort_by, query=call.services.query
        )
        return Rows([(done.rewritten, done.added)], snapshot_id=done.snapshot_id)

    if not call.explain:
        return Plan((), run)
    groups, kept = manifest_groups(table, call["spec_id"], sort_by, call.services.query)
    return Plan(_steps(groups), run, f"{kept} manifests stay as they are")


def _steps(groups: Sequence[ManifestGroup]) -> Iterator[Step]:
    for group in groups:
        kind = "manifest" if group.content == 0 else "delete manifest"
        for each in group.manifests:
            files = (each.added_files_count or 0) + (each.existing_files_count or 0)
            reason = f"one of {len(group.manifests)} of its partition spec; it lists {files} files"
            yield Step("remove", kind, each.manifest_path, reason, each.manifest_length)
        reason = f"{group.files} files in the order of their partitions"
        yield Step("write", kind, f"({group.count} new)", reason)


PLANNERS: Final[Mapping[str, Callable[[Call], Plan]]] = {"rewrite_manifests": rewrite_manifests}
