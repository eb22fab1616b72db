"""Limits on what a query may read: checked after planning, before any data is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from icesql.config import Settings
from icesql.errors import ScanLimitError
from icesql.scan.plan import ScanPlan


def check_limits(
    plans: Sequence[ScanPlan], settings: Settings, first: Collection[int] = ()
) -> None:
    """Raise ScanLimitError if the scans of a query exceed what ``settings`` allow.

    ``max_scan_files`` counts data and delete files, ``max_scan_bytes`` the stored bytes of the
    projected columns and of delete files, both over all scans of the query: a table that is
    scanned twice counts twice. ``require_partition_filter`` asks each scan of a partitioned table
    for a filter that can skip partitions. Metadata tables read no data and are not limited.

    ``first`` are the scans that are read to narrow the others. With any, the limits hold for these
    alone: what the others read is known only afterwards, and is to be checked again then.
    """
    scanned = [each for each in plans if each.metadata is None]
    if settings.require_partition_filter:
        for plan in scanned:
            _check_partition_filter(plan, settings)
    if first:
        scanned = [plans[each] for each in sorted(set(first)) if plans[each].metadata is None]
    if settings.max_scan_files is not None:
        files = sum(len(each.files) + each.report.distinct_delete_files for each in scanned)
        if files > settings.max_scan_files:
            raise ScanLimitError(
                f"the query would read {files:,} files, which is more than max_scan_files = "
                f"{settings.max_scan_files:,}: {_advice('max_scan_files')}"
            )
    if settings.max_scan_bytes is not None:
        size = sum(
            each.projected_bytes + each.report.total_delete_file_size_in_bytes for each in scanned
        )
        if size > settings.max_scan_bytes:
            raise ScanLimitError(
                f"the query would read {size:,} bytes, which is more than max_scan_bytes = "
                f"{settings.max_scan_bytes:,}: {_advice('max_scan_bytes')}"
            )


def _advice(setting: str) -> str:
    return f"filter further, select fewer columns, or raise {setting} (EXPLAIN shows what is read)"


def _check_partition_filter(plan: ScanPlan, settings: Settings) -> None:
    from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
    from icesql.iceberg.expressions.projection import inclusive
    from icesql.iceberg.transforms import Void, parse_transform

    scan = plan.scan
    spec = scan.table.metadata.spec
    transforms = [each.transform for each in spec.fields]
    fields = [
        f"{name} ({transform})"
        for name, transform in zip(_sources(plan), transforms, strict=True)
        if not isinstance(parse_transform(transform), Void)
    ]
    if not fields or scan.snapshot is None or scan.changes is not None:
        return
    if inclusive(scan.row_filter, spec, scan.schema) is not ALWAYS_TRUE:
        return
    because = " (prune is off, so no filter skips any)" if not settings.prune else ""
    raise ScanLimitError(
        f"the query has no filter on the partition columns of {scan.table.name}{because}, which "
        f"require_partition_filter asks for: filter by {' or '.join(fields)}"
    )


def _sources(plan: ScanPlan) -> list[str]:
    """The columns of each partition field, as the newest schema names them."""
    schema = plan.scan.table.metadata.schema
    return [
        ", ".join(schema.name_by_id.get(each, str(each)) for each in field.source_ids)
        for field in plan.scan.table.metadata.spec.fields
    ]
