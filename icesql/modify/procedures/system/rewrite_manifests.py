"""rewrite_manifests: rewrite the manifests of one partition spec, clustered by partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icesql.modify.procedures.procedure import TABLE, Parameter, Plan, Rows, Step, procedure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from icesql.commit.manifests.rewrite import ManifestGroup
    from icesql.modify.procedures.call import Call


# The keys of a summary for the columns of the result.
_COUNTS: Final = ("manifests-replaced", "manifests-created")


@procedure(
    "writes manifests anew, with the files of a partition together",
    TABLE,
    Parameter("use_caching", "boolean", "false"),
    Parameter("spec_id", "int", "the current one"),
    Parameter("sort_by", "array<string>", "all partition fields"),
    rows="rewritten_manifests_count integer, added_manifests_count integer",
)
def rewrite_manifests(call: Call) -> Plan:
    """Rewrite the manifests of one partition spec, clustered by partition."""
    from icesql.commit.manifests.rewrite import manifest_groups
    from icesql.commit.manifests.rewrite import rewrite_manifests as rewrite

    catalog, table = call.target()
    sort_by = call["sort_by"] or ()

    def run() -> Rows:
        done = rewrite(catalog, table, spec_id=call["spec_id"], sort_by=sort_by, query=call.query)
        counts = (int(done.summary.get(each, 0)) for each in _COUNTS)
        return Rows([(*counts,)], snapshot_id=done.snapshot_id)

    if not call.explain:
        return Plan((), run)
    groups, kept = manifest_groups(table, call["spec_id"], sort_by, call.query)
    return Plan(_steps(groups), run, f"{kept} manifests stay as they are")


def _steps(groups: Sequence[ManifestGroup]) -> Iterator[Step]:
    for group in groups:
        kind = "manifest" if group.content == 0 else "delete manifest"
        for each in group.manifests:
            files = each.live_files
            reason = f"one of {len(group.manifests)} of its partition spec; it lists {files} files"
            yield Step("remove", kind, each.manifest_path, reason, each.manifest_length)
        reason = f"{group.files} files in the order of their partitions"
        yield Step("write", kind, f"({group.count} new)", reason)
