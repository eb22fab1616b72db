"""Expire snapshots: forget them, then delete the files that no snapshot needs any more.

Source: Java ``ReachableFileCleanup``, the way of comparing whole sets of paths; the other,
incremental one deletes files that are still needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import is_same, now_ms, refreshed
from icesql.commit.change import change_table
from icesql.commit.own_places import OwnPlaces, refuse_twins
from icesql.context import QueryContext
from icesql.errors import Error, NotSupportedError, StorageError
from icesql.iceberg.manifest.data_file import FileContent
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.metadata.changes.updates import (
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    Update,
)
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.maintain.expiry_plan import Expiry, plan_expiry
from icesql.scan.manifest_reader import ManifestReader
from icesql.storage.removal import remove_files

# How often the files to delete are compared with a table that changes meanwhile.
_LOOKS: Final = 5


class Unneeded(Struct, frozen=True):
    """Files that only expired snapshots need, in the order in which they are deleted.

    ``bytes`` has the sizes of those whose size metadata tells.
    """

    data_files: tuple[str, ...] = ()
    position_delete_files: tuple[str, ...] = ()
    equality_delete_files: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    manifest_lists: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()
    bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[str, ...]:
        """Data before what lists it: a deletion that is cut short leaves orphans at most."""
        return (
            *self.data_files, *self.position_delete_files, *self.equality_delete_files,
            *self.statistics, *self.manifests, *self.manifest_lists,
        )  # fmt: skip

    def where(self, wanted: Callable[[str], bool]) -> Unneeded:
        """Only the files of paths that are wanted."""
        paths = {
            name: tuple(filter(wanted, getattr(self, name)))
            for name in self.__struct_fields__
            if name != "bytes"
        }
        return Unneeded(**paths, bytes=self.bytes)


class Expired(Struct, frozen=True):
    """The expired snapshots, and the files deleted with them; ``left`` could not be deleted.

    ``kept`` are files that nothing needs any more and that lie outside of the table's ``places``.
    """

    table: Table
    expiry: Expiry
    files: Unneeded
    places: OwnPlaces
    kept: Unneeded = Unneeded()
    left: frozenset[str] = frozenset()

    @property
    def deleted(self) -> int:
        """How many files were deleted."""
        return len(self.files.paths) - len(self.left)

    def count(self, paths: Sequence[str]) -> int:
        """How many of these were deleted."""
        return sum(each not in self.left for each in paths)


def expire_snapshots(
    catalog: Catalog,
    table: Table,
    *,
    older_than_ms: int | None = None,
    retain_last: int | None = None,
    snapshot_ids: Collection[int] = (),
    clean_metadata: bool = False,
    dry_run: bool = False,
    at_once: int | None = None,
    delete_below: Sequence[str] = (),
    delete_outside: bool = False,
    query: QueryContext | None = None,
) -> Expired:
    """Forget snapshots and delete their files; what is retained is as ``plan_expiry`` says.

    A file goes only if no snapshot that stays names it: all of their manifests are read, and where
    one cannot be, no data file is deleted. With ``clean_metadata`` schemas and partition specs go
    that nothing uses any more. With ``dry_run`` nothing is changed. ``at_once`` is how many files
    of a store are deleted at a time. Files outside of the table's location stay, unless they lie in
    a folder of ``delete_below``, or with ``delete_outside``. Raises NotSupportedError for a table
    with gc.enabled false, whose files may be another's.
    """
    if table.metadata.properties.get("gc.enabled", "true").lower() == "false":
        raise NotSupportedError(
            f"not supported: expiring snapshots of {table.name}, whose property gc.enabled is "
            "false: other tables may need its files"
        )
    places = OwnPlaces.of(catalog, table, delete_below, everything=delete_outside)
    context, moment = query or QueryContext(), now_ms()
    refuse_twins(catalog, table, context)
    planned: list[tuple[TableMetadata, Expiry]] = []

    def updates(base: TableMetadata) -> Sequence[Update]:
        found = plan_expiry(
            base,
            now_ms=moment,
            older_than_ms=older_than_ms,
            retain_last=retain_last,
            snapshot_ids=snapshot_ids,
        )
        planned.append((base, found))
        made: list[Update] = [RemoveSnapshotRef(name) for name in found.refs]
        if found.snapshot_ids:
            made.append(RemoveSnapshots(found.snapshot_ids))
        if clean_metadata:
            made += unused(table, base, found, context)
        return made

    if dry_run:
        updates(table.metadata)
        base, expiry = planned[-1]
        found = unneeded(table, base, expiry, context)
        files, kept = found.where(places.hold), found.where(places.lack)
        return Expired(table, expiry, files, places, kept)
    after = change_table(catalog, table, updates, query=context).table
    base, expiry = planned[-1]
    found = Unneeded()
    for _ in range(_LOOKS):
        # What was committed since may need files of the snapshots that are gone.
        left = tuple(each for each in expiry.snapshot_ids if after.metadata.snapshot(each) is None)
        found, problem = Unneeded(), None
        try:
            found = unneeded(after, base, Expiry(expiry.refs, left), context)
        except StorageError as error:
            problem = error  # another one may have expired a snapshot that was to stay
        try:
            latest = refreshed(catalog, after)
        except Error:
            break  # the table is gone, and nobody adds files to it any more
        if is_same(latest, after):
            if problem is not None:
                raise problem
            break
        after = latest
    files, kept = found.where(places.hold), found.where(places.lack)
    left_over = remove_files(
        after.storage, files.paths, context, allowed=places.hold, at_once=at_once
    )
    return Expired(after, expiry, files, places, kept, frozenset(left_over))


def unused(
    table: Table, base: TableMetadata, expiry: Expiry, query: QueryContext
) -> Sequence[Update]:
    """The removal of schemas and partition specs that no snapshot needs which stays.

    Source: Java ``RemoveSnapshots.cleanExpiredMetadata``, which forgets schemas that specs and
    equality deletes need.
    """
    gone = {*expiry.snapshot_ids}
    stay = [each for each in base.snapshots.values() if each.snapshot_id not in gone]
    reader = ManifestReader(replace(table, metadata=base), query)
    manifests = reader.all_manifests_of(stay)
    specs = {base.default_spec_id, *(each.partition_spec_id for each in manifests.values())}
    fields = {
        source
        for spec_id in specs
        if spec_id in base.specs
        for field in base.specs[spec_id].fields
        for source in field.source_ids
    }
    fields |= _equality_ids(reader, manifests.values())
    named = {base.current_schema_id, *(each.schema_id for each in stay)}
    schemas = {each for each in base.schemas if each in named}
    # A column that was dropped is still read by old partitions and deletes: the latest schema
    # that knows it stays.
    for number in sorted(base.schemas, reverse=True):
        known = {each for one in schemas for each in _ids(base, one)}
        if (fields - known) & _ids(base, number):
            schemas.add(number)
    old_specs = [each for each in base.specs if each not in specs]
    old_schemas = [each for each in base.schemas if each not in schemas]
    made: list[Update] = []
    if old_specs:
        made.append(RemovePartitionSpecs(tuple(old_specs)))
    if old_schemas:
        made.append(RemoveSchemas(tuple(old_schemas)))
    return made


def _ids(base: TableMetadata, schema_id: int) -> set[int]:
    return {*base.schemas[schema_id].field_by_id}


def _equality_ids(reader: ManifestReader, manifests: Iterable[ManifestFile]) -> set[int]:
    """The ids of the columns by which live equality deletes compare."""
    return {
        each
        for entries, index in reader.live(manifests, ManifestContent.DELETES)
        if entries.content[index] == FileContent.EQUALITY_DELETES
        for each in entries.data_file(index).equality_ids or ()
    }


def _paths_of_gone(
    reader: ManifestReader, manifests: Sequence[ManifestFile]
) -> dict[str, tuple[int, int]]:
    """The contents and sizes of the live files of manifests that no snapshot has any more.

    Others may delete manifests, too.
    """
    try:
        return {
            entries.path[index]: (entries.content[index], entries.file_size_in_bytes[index])
            for entries, index in reader.live(manifests)
        }
    except StorageError:
        if len(manifests) == 1:
            return {}  # left to the removal of orphans
    found: dict[str, tuple[int, int]] = {}
    for each in manifests:
        found |= _paths_of_gone(reader, [each])
    return found


def unneeded(table: Table, base: TableMetadata, expiry: Expiry, query: QueryContext) -> Unneeded:
    """The files that only expired snapshots of ``base`` need; ``table`` has those that stay.

    Raises what reading a manifest of a snapshot that stays does.
    """
    gone = {*expiry.snapshot_ids}
    if not gone:
        return Unneeded()
    reader = ManifestReader(table, query)
    stay = [s for s in table.metadata.snapshots.values() if s.snapshot_id not in gone]
    kept_manifests = reader.all_manifests_of(stay)
    candidates: dict[str, ManifestFile] = {}
    lists: list[str] = []
    for snapshot_id in expiry.snapshot_ids:
        snapshot = base.snapshots[snapshot_id]
        try:
            listed = reader.manifests_of(snapshot)
        except Error:
            continue  # gone already: what it listed is left to the removal of orphans
        if snapshot.manifest_list is not None:
            lists.append(snapshot.manifest_list)
        candidates |= {
            each.manifest_path: each for each in listed if each.manifest_path not in kept_manifests
        }
    # Of before: specs that only these manifests were of may be gone with them.
    before = ManifestReader(replace(table, metadata=base), query)
    found = _paths_of_gone(before, [*candidates.values()])
    own = [each for each in base.statistics_files if each.snapshot_id in gone]
    statistics = [each.statistics_path for each in own]
    needed: Iterable[str] = ()
    if found or statistics:
        live = reader.live(kept_manifests.values())
        needed = [entries.path[index] for entries, index in live]
    # Whatever a file is to those that stay, and however they spell it.
    same = table.storage.same_file_key
    kept = {same(each) for each in (*needed, *kept_manifests, *_own_files(table, stay))}

    def unkept(paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(each for each in dict.fromkeys(paths) if same(each) not in kept)

    def files(wanted: FileContent) -> tuple[str, ...]:
        return unkept(path for path, (content, _) in found.items() if content == wanted)

    return Unneeded(
        files(FileContent.DATA),
        files(FileContent.POSITION_DELETES),
        files(FileContent.EQUALITY_DELETES),
        unkept(candidates),
        unkept(lists),
        unkept(statistics),
        {path: size for path, (_, size) in found.items()}
        | {path: each.manifest_length or 0 for path, each in candidates.items()}
        | {each.statistics_path: each.file_size_in_bytes or 0 for each in own},
    )


def _own_files(table: Table, stay: Sequence[Snapshot]) -> Iterator[str]:
    """The files that the metadata of a table names for the snapshots that stay, and itself."""
    kept_ids = {each.snapshot_id for each in stay}
    yield table.metadata_location
    yield from (each.metadata_file for each in table.metadata.metadata_log)
    yield from (each.manifest_list for each in stay if each.manifest_list is not None)
    statistics = table.metadata.statistics_files
    yield from (each.statistics_path for each in statistics if each.snapshot_id in kept_ids)
