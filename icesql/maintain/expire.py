"""Expire snapshots: remove them from metadata, then delete files that no snapshot needs any more.

Source: Java ``ReachableFileCleanup``, which compares whole sets of paths; Java's incremental
cleanup deletes files that are still needed. ``RemoveSnapshots`` decides which snapshots and refs
expire.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import is_same, now_ms, refreshed
from icesql.commit.deletion import OwnPlaces, metadata_files, refuse_kept, refuse_twins
from icesql.commit.file_changes import change_table
from icesql.context import QueryContext
from icesql.errors import Error, ProgrammingError, SnapshotNotFoundError, StorageError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import FileContent
from icesql.iceberg.manifest.manifest import ManifestFile
from icesql.iceberg.metadata.changes.updates import (
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    Update,
)
from icesql.iceberg.metadata.json_fields import number_property
from icesql.iceberg.metadata.snapshot import SnapshotRef
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.scan.manifest_reader import ManifestReader
from icesql.storage.many_files import remove_files

# ------------------------------------------------------------------ snapshots and refs that expire

MAX_AGE: Final = "history.expire.max-snapshot-age-ms"
MIN_KEPT: Final = "history.expire.min-snapshots-to-keep"
_REF_AGE: Final = "history.expire.max-ref-age-ms"
_FIVE_DAYS: Final = 432_000_000


class Expiry(Frozen):
    """The refs and snapshots to remove, in the order of the table's metadata."""

    refs: tuple[str, ...]
    snapshot_ids: tuple[int, ...]


def plan_expiry(
    metadata: TableMetadata,
    *,
    now_ms: int,
    older_than_ms: int | None = None,
    retain_last: int | None = None,
    snapshot_ids: Collection[int] = (),
) -> Expiry:
    """Plan an expiry at ``now_ms`` (since 1970): by age, or only of the named snapshots.

    Without ``older_than_ms`` and ``retain_last`` the table's properties decide, by default five
    days and one snapshot are kept. The head of each ref is kept, unless the ref is older than its
    maximum age; a branch may have its own minimum number and maximum age of snapshots.

    Raises ProgrammingError for a named snapshot that is the head of a ref, SnapshotNotFoundError.
    """
    if retain_last is not None and retain_last < 1:
        raise ProgrammingError(f"retain_last is {retain_last}; at least one snapshot is kept")
    # The head of a ref is kept even for 0.
    least = (
        number_property(metadata.properties, MIN_KEPT, 1) if retain_last is None else retain_last
    )
    kept = {name: ref for name, ref in metadata.refs.items() if _lives(metadata, name, ref, now_ms)}
    gone = tuple(name for name in metadata.refs if name not in kept)
    heads = {ref.snapshot_id: name for name, ref in kept.items()}
    if snapshot_ids:
        for each in snapshot_ids:
            if metadata.snapshot(each) is None:
                raise SnapshotNotFoundError(f"snapshot {each}", table=metadata.location)
            if each in heads:
                raise ProgrammingError(f"snapshot {each} is the head of {heads[each]!r} and stays")
        return Expiry((), tuple(each for each in metadata.snapshots if each in {*snapshot_ids}))
    if older_than_ms is None:
        older_than_ms = now_ms - number_property(metadata.properties, MAX_AGE, _FIVE_DAYS)
    retained = {*heads}
    # The whole histories of branches.
    reachable = {ref.snapshot_id for ref in kept.values() if ref.kind == "tag"}
    for ref in kept.values():
        if ref.kind != "branch":
            continue
        count, age = ref.min_snapshots_to_keep or least, ref.max_snapshot_age_ms
        oldest = older_than_ms if age is None else now_ms - age
        keeps = True
        for number, snapshot in enumerate(metadata.ancestry(metadata.snapshot(ref.snapshot_id))):
            reachable.add(snapshot.snapshot_id)
            keeps = keeps and (number < count or snapshot.timestamp_ms >= oldest)
            if keeps:
                retained.add(snapshot.snapshot_id)
    for snapshot in metadata.snapshots.values():
        if snapshot.snapshot_id not in reachable and snapshot.timestamp_ms >= older_than_ms:
            retained.add(snapshot.snapshot_id)
    return Expiry(gone, tuple(each for each in metadata.snapshots if each not in retained))


def _lives(metadata: TableMetadata, name: str, ref: SnapshotRef, now_ms: int) -> bool:
    most = ref.max_ref_age_ms
    if most is None:
        most = number_property(metadata.properties, _REF_AGE, -1)
    if name == MAIN or most < 0:
        return True
    snapshot = metadata.snapshot(ref.snapshot_id)
    return snapshot is not None and now_ms - snapshot.timestamp_ms <= most


def check_ages(properties: Mapping[str, str]) -> None:
    """Raise ProgrammingError for a property of expiry that is not an integer from 0 on."""
    for name in (MAX_AGE, MIN_KEPT, _REF_AGE):
        number_property(properties, name, 0)


# ------------------------------------------------------------------ removal


# How often to compare the files to delete with a table that other writers change.
_LOOKS: Final = 5


# The kinds of a snapshot's files, by their content in manifests.
_CONTENTS: Final = ("data file", "position delete file", "equality delete file")


class Unneeded(Frozen):
    """Files that only expired snapshots need, by kind, in the order in which they are deleted.

    Data files come before manifests that list them: an interruption leaves only orphans.
    ``bytes`` has the sizes that metadata records.
    """

    files: Mapping[str, tuple[str, ...]] = {}
    bytes: Mapping[str, int] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of all kinds."""
        return tuple(chain.from_iterable(self.files.values()))

    def where(self, wanted: Callable[[str], bool]) -> Unneeded:
        """Only the files whose paths satisfy ``wanted``."""
        kept = {kind: tuple(filter(wanted, paths)) for kind, paths in self.files.items()}
        return Unneeded(kept, self.bytes)


class Expired(Frozen):
    """The expired snapshots, and the files deleted with them; ``left`` could not be deleted.

    ``kept`` are unneeded files outside of the table's ``places``, which are not deleted.
    """

    table: Table
    expiry: Expiry
    files: Unneeded
    places: OwnPlaces
    kept: Unneeded = Unneeded()
    left: frozenset[str] = frozenset()

    def count(self, kind: str) -> int:
        """How many files of a kind were deleted."""
        return sum(each not in self.left for each in self.files.files.get(kind, ()))


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
    """Expire snapshots and delete their files; ``plan_expiry`` decides which snapshots are kept.

    A file is deleted only if no kept snapshot references it: all manifests of kept snapshots are
    read, and if one cannot be read, no data file is deleted. ``clean_metadata`` also removes unused
    schemas and partition specs. ``dry_run`` changes nothing. ``at_once`` is how many files of a
    store are deleted at a time. Files outside of the table's location stay, unless they are in a
    folder of ``delete_below``, or with ``delete_outside``. Raises NotSupportedError for a table
    with gc.enabled false, whose files other tables may need.
    """
    refuse_kept(table, "expiring snapshots")
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
        found = unneeded(table, *planned[-1], context)
        files, kept = found.where(places.hold), found.where(places.lack)
        return Expired(table, planned[-1][1], files, places, kept)
    after = change_table(catalog, table, updates, query=context).table
    base, expiry = planned[-1]
    found = Unneeded()
    for _ in range(_LOOKS):
        # Commits since then may need files of the expired snapshots.
        left = tuple(each for each in expiry.snapshot_ids if after.metadata.snapshot(each) is None)
        found, problem = Unneeded(), None
        try:
            found = unneeded(after, base, Expiry(expiry.refs, left), context)
        except StorageError as error:
            problem = error  # another process may have expired a snapshot that was to be kept
        try:
            latest = refreshed(catalog, after)
        except Error:
            break  # the table was dropped, so that no commit adds files to it any more
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
    """The removal of schemas and partition specs that no kept snapshot needs.

    Source: Java ``RemoveSnapshots.cleanExpiredMetadata``, which also removes schemas that specs and
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
    # Old partitions and equality deletes still need a dropped column: the latest schema with it
    # is kept.
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
        for file in reader.deletes(manifests, FileContent.EQUALITY_DELETES)
        for each in file.equality_ids or ()
    }


def _paths_of_gone(
    reader: ManifestReader, manifests: Sequence[ManifestFile]
) -> dict[str, tuple[int, int]]:
    """The content types and sizes of live files in manifests of expired snapshots, by path.

    Other processes may have deleted manifests already.
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
    """The files that only expired snapshots of ``base`` need; ``table`` has the kept snapshots.

    Raises what reading a manifest of a kept snapshot raises.
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
            continue  # deleted already: the removal of orphans finds the files that it listed
        if snapshot.manifest_list is not None:
            lists.append(snapshot.manifest_list)
        candidates |= {
            each.manifest_path: each for each in listed if each.manifest_path not in kept_manifests
        }
    # Read with ``base``: partition specs of these manifests may have been removed since.
    before = ManifestReader(replace(table, metadata=base), query)
    found = _paths_of_gone(before, [*candidates.values()])
    own = [each for each in base.statistics_files if each.snapshot_id in gone]
    statistics = [each.statistics_path for each in own]
    needed: Iterable[str] = ()
    if found or statistics:
        live = reader.live(kept_manifests.values())
        needed = [entries.path[index] for entries, index in live]
    # In any role in which kept snapshots reference a file, and in any spelling of its path.
    same = table.storage.same_file_key
    kept = {same(each) for each in (*needed, *kept_manifests, *metadata_files(table, gone))}

    def unkept(paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(each for each in dict.fromkeys(paths) if same(each) not in kept)

    files = {
        kind: unkept(path for path, (content, _) in found.items() if content == number)
        for number, kind in enumerate(_CONTENTS)
    }
    files |= {
        "statistics file": unkept(statistics),
        "manifest": unkept(candidates),
        "manifest list": unkept(lists),
    }
    return Unneeded(
        files,
        {path: size for path, (_, size) in found.items()}
        | {path: each.manifest_length or 0 for path, each in candidates.items()}
        | {each.statistics_path: each.file_size_in_bytes or 0 for each in own},
    )
