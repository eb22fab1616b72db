"""Rewrites of tables that other systems wrote: the rows of the new files are those of the old ones.

    python tests/campaigns/compaction_rows.py FOLDER…

Finds every table below the folders (its newest metadata file) and rewrites all of its files, once in
their order and once sorted, into a temporary folder; nothing is committed and no table is touched.
Both sides are read by ``read/``, with row lineage in version 3. Prints what differs, and how many
tables could not be written and why.
"""

from __future__ import annotations

import collections
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from msgspec.structs import replace

import icesql.write.write_task as writing
from icesql.catalog.open import open_table
from icesql.context import QueryContext
from icesql.errors import Error, UnsupportedTableError
from icesql.iceberg import types as t
from icesql.maintain.rewrite.options import rewrite_options
from icesql.maintain.rewrite.plan import RewriteRequest, plan_rewrite
from icesql.maintain.rewrite.row_order import RowOrder
from icesql.maintain.rewrite.run import check_rows
from icesql.maintain.rewrite.task import run_rewrite_task, tasks_of
from icesql.read.task import read_file
from icesql.scan.tasks.task import FileScanTask
from icesql.storage.open import Storage
from icesql.write.locations import DataLocations
from icesql.write.partition.sorting import SortKey

# Tables are copies; nothing is written where they lie.
writing.check_writable = lambda storage: None


def newest(folder: Path) -> list[Path]:
    """The last metadata file of each folder of them."""
    found: dict[Path, Path] = {}
    for each in sorted(folder.rglob("*.metadata.json"), key=lambda p: (p.stat().st_size, p.name)):
        found[each.parent] = each
    return sorted(found.values())


def rows_of(tasks: list[Any], context: Any, query: QueryContext) -> list[str]:
    return sorted(
        repr(list(row.values()))
        for task in tasks
        for batch in read_file(task, context, query)
        for row in batch.to_pylist()
    )


def rewritten(table: Any, order: RowOrder | None, scratch: str) -> tuple[list[str], list[str]]:
    query = QueryContext()
    options = rewrite_options(
        {"rewrite-all": "true"}, table.metadata, "sort" if order else "binpack"
    )
    plan = plan_rewrite(
        table, RewriteRequest(options, "sort" if order else "binpack", order), query
    )
    before: list[str] = []
    after: list[str] = []
    number = 0
    for group in plan.groups:
        tasks = tasks_of(plan, group, number)
        number += len(tasks)
        before += rows_of([*group.files], plan.context, query)
        files, count = [], 0
        for task in tasks:
            write = replace(task.write, storage=Storage(None), locations=DataLocations(scratch))
            done = run_rewrite_task(replace(task, write=write), query)
            files += done.files
            count += done.rows
        check_rows(group, count, plan.table)
        # Where the ids of rows were not known, none are stored; a new file would give them.
        known = any(each.data_file.first_row_id is not None for each in group.files)
        first = 1 << 40 if known else None
        new = [
            FileScanTask(replace(each, first_row_id=first), 0, each.file_size_in_bytes)
            for each in files
        ]
        after += rows_of(new, replace(plan.context, storage=Storage(None)), query)
    return sorted(before), sorted(after)


def order_of(table: Any) -> RowOrder | None:
    keys = [
        SortKey(each.field_id, "identity", False, True)
        for each in table.metadata.schema.fields
        if isinstance(each.type, t.PrimitiveType)
        and not isinstance(
            each.type, t.VariantType | t.GeometryType | t.GeographyType | t.UnknownType
        )
    ]
    return RowOrder(tuple(keys[:3])) if keys else None


def main() -> int:
    counts: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    for folder in sys.argv[1:]:
        for metadata in newest(Path(folder)):
            try:
                table = open_table(metadata)
                orders = (None, order_of(table))
            except Error as error:
                reasons[f"not opened: {type(error).__name__}"] += 1
                continue
            for order in orders[: 2 if orders[1] else 1]:
                with tempfile.TemporaryDirectory() as scratch:
                    try:
                        before, after = rewritten(table, order, scratch)
                    except UnsupportedTableError as error:
                        reasons[f"{str(error)[:80]}"] += 1
                        continue
                    except Error as error:
                        reasons[f"{type(error).__name__}: {str(error)[:100]}"] += 1
                        print(f"{metadata}: {type(error).__name__}: {str(error)[:300]}", flush=True)
                        continue
                same = before == after
                counts["same" if same else "DIFFERENT"] += 1
                counts["rows"] += len(before)
                if not same:
                    odd = next(
                        (p for p in zip(before, after, strict=False) if p[0] != p[1]), "lengths"
                    )
                    print(f"{metadata}: {len(before)} and {len(after)} rows: {odd}", flush=True)
    print(dict(counts), dict(reasons))
    return 1 if counts["DIFFERENT"] else 0


if __name__ == "__main__":
    sys.exit(main())
