"""rewrite_data_files: compaction by size, by a sort order or along a z-curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from icesql.errors import Error, ProgrammingError, UnsupportedTableError, plural
from icesql.modify.procedures.procedure import (
    BRANCH,
    OPTIONS,
    TABLE,
    WHERE,
    Parameter,
    Plan,
    Rows,
    Step,
    procedure,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from icesql.catalog.table import Table
    from icesql.iceberg.manifest.data_file import DataFile
    from icesql.iceberg.metadata.table_metadata import TableMetadata
    from icesql.maintain.rewrite.plan import FileGroup, RewritePlan, RewriteRequest, Strategy
    from icesql.maintain.rewrite.row_order import RowOrder
    from icesql.maintain.rewrite.run import Rewritten
    from icesql.modify.procedures.call import Call
    from icesql.sql.writes.definitions import SortText


@procedure(
    "makes few files of the target size of small ones and of those with many deletes",
    TABLE,
    Parameter("strategy", "string", "binpack"),
    Parameter("sort_order", "string"),
    OPTIONS,
    WHERE,
    BRANCH,
    rows="rewritten_data_files_count integer, added_data_files_count integer, "
    "rewritten_bytes_count bigint, failed_data_files_count integer, "
    "removed_delete_files_count integer",
)
def rewrite_data_files(call: Call) -> Plan:
    """Plan groups of files to rewrite, and rewrite them."""
    from icesql.maintain.rewrite.plan import plan_rewrite
    from icesql.maintain.rewrite.run import rewrite

    catalog, table, branch = call.named_branch()
    planned = plan_rewrite(table, _request(call, table, branch), call.query)

    def run() -> Rows:
        runner = call.runner(planned.bytes)
        done = rewrite(catalog, planned, call.query, run=runner)
        last = done.snapshot_ids[-1] if done.snapshot_ids else None
        row = (
            done.rewritten_data_files_count,
            done.added_data_files_count,
            done.rewritten_bytes_count,
            done.failed_data_files_count,
            done.removed_delete_files_count,
        )
        return Rows([row], _note(done), last)

    return Plan(_steps(planned), run, _summary(planned) + call.engine_note(planned.bytes))


# ------------------------------------------------------------------ the request


def _request(call: Call, table: Table, branch: str) -> RewriteRequest:
    from msgspec.structs import replace

    from icesql.maintain.rewrite.plan import RewriteRequest, rewrite_options
    from icesql.modify.procedures.call import files_condition
    from icesql.sql.writes.definitions import read_sort_text

    text, given = call["sort_order"], call["strategy"]
    strategy = (given or ("binpack" if text is None else "sort")).lower()
    if strategy not in ("binpack", "sort"):
        raise call.wrong("strategy", f"is {given!r}; it can be 'binpack' or 'sort'")
    if strategy == "binpack" and text is not None:
        raise call.wrong("sort_order", "goes with strategy 'sort': bin-packing keeps the order")
    read = None
    if text is not None:
        try:
            read = read_sort_text(text)
        except Error as error:
            raise call.wrong("sort_order", f"is {text!r}: {error}") from error
        strategy = "zorder" if read.z_columns else "sort"
    kind = cast("Strategy", strategy)
    try:
        options = rewrite_options(call["options"] or {}, table.metadata, kind)
    except ProgrammingError as error:
        raise call.wrong("options", f"cannot be: {error}") from error
    order = None
    if strategy != "binpack":
        order = replace(
            _order(call, table.metadata, read),
            text_bytes=options.var_length_contribution,
            most_bytes=options.max_output_size,
        )
    return RewriteRequest(options, order, files_condition(call), branch)


def _order(call: Call, metadata: TableMetadata, read: SortText | None) -> RowOrder:
    from icesql.iceberg.evolution.spec_changes import new_sort_order
    from icesql.maintain.rewrite.row_order import RowOrder, check_z_columns
    from icesql.modify.alter_table import sort_request
    from icesql.write.ordering import sort_keys

    schema = metadata.schema
    if read is not None and read.z_columns:
        return RowOrder(z_columns=check_z_columns(read.z_columns, schema))
    if read is None:
        wanted = metadata.sort_orders.get(metadata.default_sort_order_id)
        if wanted is None or not wanted.fields:
            raise call.wrong(
                "sort_order", "is needed: the table has no order of its own (WRITE ORDERED BY)"
            )
    else:
        wanted = new_sort_order(schema, [sort_request(each, schema) for each in read.terms])
    keys = sort_keys(wanted, schema)
    if keys is None:
        raise UnsupportedTableError("sorting by the sort order of the table")
    orders = metadata.sort_orders.items()
    same = (n for n, each in orders if n and each.fields == wanted.fields)
    return RowOrder(keys, order_id=next(same, 0))


# ------------------------------------------------------------------ rows, notes and steps


def _note(done: Rewritten) -> str:
    if not done.snapshot_ids and not done.failures:
        return "nothing is to be rewritten"
    parts = [
        f"{done.rewritten_data_files_count:,} files ({done.rewritten_bytes_count:,} bytes) became "
        f"{done.added_data_files_count:,} ({done.added_bytes:,} bytes)"
    ]
    if done.carried_rows:
        parts.append(
            f"{done.carried_rows:,} rows that others deleted meanwhile are deleted in the new files"
        )
    if done.failures:
        parts.append(
            f"{done.failed_data_files_count:,} files were not rewritten: {done.failures[0]}"
        )
    return "; ".join(parts)


def _summary(planned: RewritePlan) -> str:
    files = sum(len(each.files) for each in planned.groups)
    new = sum(each.output_files for each in planned.groups)
    if not files:
        return f"nothing is to be rewritten; {plural(len(planned.left), 'file')} stay as they are"
    return (
        f"{plural(files, 'file')} ({planned.bytes:,} bytes) in {len(planned.groups):,} "
        f"group{'s' if len(planned.groups) > 1 else ''} become about {new:,}; "
        f"{plural(len(planned.left), 'file')} stay as they are"
    )


def _steps(planned: RewritePlan) -> Iterator[Step]:
    """The reads and writes of each group."""
    from icesql.maintain.rewrite.plan import known_deleted
    from icesql.maintain.rewrite.run import vectors_of
    from icesql.scan.tasks import content_bytes

    removed: dict[int, DataFile] = {}
    for group in planned.groups:
        label = f"group {group.number + 1}{_place(planned, group)}"
        for task, reason in zip(group.files, group.reasons, strict=True):
            yield Step.of_file("read", "data file", task.data_file, f"{label}: {reason}")
        deletes = {id(each): each for task in group.files for each in task.deletes}
        for each in deletes.values():
            yield Step(
                "read", _kind(each), each.path, f"{label}: its deletes are applied",
                content_bytes([each]), each.record_count,
            )  # fmt: skip
        rows = sum(each.data_file.record_count - known_deleted(each) for each in group.files)
        new = f"({plural(group.output_files, 'file')})"
        how = _how(planned)
        yield Step("write", "data file", new, f"{label}: {how}", group.bytes, rows)
        for task in group.files:
            yield Step(
                "remove", "data file", task.data_file.path, f"{label}: its rows are rewritten"
            )
        for each in vectors_of([group]):
            if id(each) not in removed:
                removed[id(each)] = each
                yield Step("remove", _kind(each), each.path, f"{label}: it is of a file that goes")


def _place(planned: RewritePlan, group: FileGroup) -> str:
    if group.partition is None:
        return " of older partition specs"
    spec = planned.table.metadata.spec
    if not spec.fields:
        return ""
    values = (f"{f.name}={v!r}" for f, v in zip(spec.fields, group.partition, strict=True))
    return f" ({', '.join(values)})"


def _how(planned: RewritePlan) -> str:
    order, schema = planned.request.order, planned.schema
    if order is None:
        return "in the order of the files"
    if order.z_columns:
        names = ", ".join(schema.name_by_id[each] for each in order.z_columns)
        return f"along a z-curve through {names}"
    names = ", ".join(schema.name_by_id[each.source_id] for each in order.keys)
    return f"ordered by {names}"


def _kind(delete: DataFile) -> str:
    if delete.is_deletion_vector:
        return "deletion vector"
    return "equality delete file" if delete.equality_ids else "position delete file"
