"""Refuse a column name that files without field ids use for another column.

Such files are read by the table's name mapping, in which a name belongs to one column. If another
column takes the name, the values that files have under it would become values of that column: old
values would reappear, or have the wrong type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress

from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import CorruptFileError, ProgrammingError
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.name_mapping import PROPERTY, MappedField, parse_name_mapping
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.scan.planner import plan_snapshot


def check_mapped_names(
    table: Table, base: TableMetadata, updates: Sequence[u.Update], query: QueryContext
) -> None:
    """Refuse updates of ``base`` that give a column the name of another column in live files.

    Raises ProgrammingError, and what planning and opening files raise. Opens files only if a name
    moves; then those of all branches.
    """
    known = text = base.properties.get(PROPERTY)
    for each in updates:
        text = each.properties.get(PROPERTY, text) if isinstance(each, u.SetProperties) else text
    if text is None or known is None or text == known:
        return
    moved: set[tuple[int | None, str]] = set()
    with suppress(CorruptFileError):  # no file can be read by such a mapping
        moved = {*_moved(parse_name_mapping(known).fields, parse_name_mapping(text).fields)}
    if not moved:
        return
    from icesql.read.formats.file_fields import walk
    from icesql.read.formats.open import open_reader

    now = replace(table, metadata=base, planning=None)
    seen: set[str] = set()
    for branch, ref in sorted(base.refs.items()):
        snapshot = base.snapshots.get(ref.snapshot_id) if ref.kind == "branch" else None
        planned = plan_snapshot(now, snapshot, query)
        for file in (task.data_file for task in planned.files):
            query.check()
            if file.path in seen:
                continue
            seen.add(file.path)
            with closing(open_reader(file, planned.context)) as opened:
                # Missing columns of files that are read by the mapping are NULL.
                fields = [*walk(opened.fields)] if opened.missing_is_null else []
            for name in (each.name for each in fields if (each.field_id, each.name) in moved):
                where = "" if branch == MAIN else f", branch => '{branch}'"
                raise ProgrammingError(
                    f'a column of {table.name} cannot get the name "{name}": files without field '
                    f"ids, such as {file.path}, have values of another column under this name, "
                    "which would become its values. Rewrite these files first: CALL system."
                    f"rewrite_data_files('{table.name}', options => map('rewrite-all', 'true')"
                    f"{where})"
                )


def _moved(
    before: Iterable[MappedField], after: Iterable[MappedField]
) -> Iterator[tuple[int | None, str]]:
    """Names that the new mapping gives to other fields, with their current field ids."""
    new = {name: each for each in after for name in each.names}
    for each in before:
        for name in each.names:
            other = new.get(name)
            if other is not None and other.field_id != each.field_id:
                yield each.field_id, name
            elif other is not None:
                yield from _moved(each.fields, other.fields)
