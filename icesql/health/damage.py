"""Find damage in snapshots: changes that should not have happened. Reads mainly manifests.

A rewrite that lost or brought back rows, dropped deletes, files or row ids that occur twice, and
missing files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain as chained
from itertools import pairwise
from typing import Final, Literal

from icesql.errors import CorruptFileError
from icesql.frozen import Frozen
from icesql.health.history import History
from icesql.health.live_files import LiveRows
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.manifest import ManifestFile
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN
from icesql.iceberg.schema import DELETE_FILE_PATH
from icesql.maintain.deletes.run import CONVERTED
from icesql.maintain.others import APPLIED_EQUALITY_DELETES
from icesql.scan.deletes.delete_index import DeleteIndex

Kind = Literal["rows changed", "deletes dropped", "file twice", "row ids twice", "missing files"]

_SHOWN: Final = 3


class Damage(Frozen):
    """Damage of a branch since a snapshot; ``certain`` is False if files could not be read."""

    kind: Kind
    branch: str
    snapshot: Snapshot
    told: str
    certain: bool = True


def damages(history: History) -> list[Damage]:
    """All damage found; the oldest first for each branch.

    Suspicions from manifests are decided by reading deletes, and key columns if there are
    equality deletes.
    """
    found = []
    rows = LiveRows(history.table, history.query)
    for branch, chain in history.chains.items():
        keys: list[tuple[Snapshot, list[DataFile]]] = []
        for after, before in pairwise(chain):
            if history.is_readable(before) and history.is_readable(after):
                for kind, told, certain in _changed(history, rows, before, after, keys):
                    found.append(Damage(kind, branch, after, told, certain))
        for after, told, certain in _undeleted_keys(history, rows, chain, keys):
            found.append(Damage("deletes dropped", branch, after, told, certain))
        found += _twice(history, branch, chain)
        found += _row_ids(history, branch, chain)
        found += _gone(history, branch, chain)
    order = {
        each.snapshot_id: -place
        for chain in history.chains.values()
        for place, each in enumerate(chain)
    }
    return sorted(found, key=lambda each: order[each.snapshot.snapshot_id])


# ------------------------------------------------------------------ from one snapshot to the next

_Found = tuple[Kind, str, bool]
# The manifest and the row count of each live data file.
_Files = Mapping[str, tuple[ManifestFile, int]]


def _changed(
    history: History,
    rows: LiveRows,
    before: Snapshot,
    after: Snapshot,
    keys: list[tuple[Snapshot, list[DataFile]]],
) -> Iterator[_Found]:
    """Damage by ``after``; adds the equality deletes that it dropped to ``keys``."""
    old, new = history.set_of(before), history.set_of(after)
    gone, came = old - new, new - old
    if not gone:
        return  # nothing was removed
    was, has = _data(history, gone), _data(history, came)
    removed = {path: at for path, at in was.items() if path not in has}
    added = {path: at for path, at in has.items() if path not in was}
    if after.operation == "replace" and (removed or added):
        yield from _rewritten(history, rows, before, after, removed, added)
    kept = {_key(each) for manifest in came for each in history.listed(manifest).deletes}
    dropped = [
        each
        for manifest in gone
        for each in history.listed(manifest).deletes
        if _key(each) not in kept
    ]
    if dropped:
        yield from _undeleted(history, rows, before, after, dropped)
    by_key = [each for each in dropped if each.content is FileContent.EQUALITY_DELETES]
    # icesql's own conversions have looked up the rows of these deletes.
    is_own = CONVERTED in after.summary and after.operation == "replace"
    if by_key and (not is_own or removed or added):
        keys.append((after, by_key))


def _rewritten(
    history: History,
    rows: LiveRows,
    before: Snapshot,
    after: Snapshot,
    removed: _Files,
    added: _Files,
) -> Iterator[_Found]:
    """Damage if the new files of a rewrite have another number of rows than the replaced ones."""
    first, second = history.index_of(before), history.index_of(after)
    if first is None or second is None:
        return
    try:
        was, has = _Rows(history, first, removed), _Rows(history, second, added)
    except CorruptFileError:
        return
    if was.unknown or has.unknown:
        return
    is_other = was.most < has.least or was.least > has.most
    # As many rows as if no equality delete had matched any.
    may_be_back = was.by_keys and not has.by_keys and has.least >= was.most
    may_be_back &= APPLIED_EQUALITY_DELETES not in after.summary
    if not (is_other or may_be_back):
        return
    were = "file was" if len(removed) == 1 else "files were"
    files = f"{len(removed):,} {were} replaced by {len(added):,}"
    certain = not (was.is_estimate or has.is_estimate)
    if not certain:
        lived, live = rows.count(was.files), rows.count(has.files)
        if lived is not None and live is not None:
            if lived == live:
                return
            certain = True
            was.least = was.most = lived
            has.least = has.most = live
    if certain or not may_be_back:
        how = "came back" if was.most < has.least else "were lost"
        told = f"{files}: of {was.text} live rows they made {has.text}, so that rows {how}"
    else:
        told = (
            f"{files} with as many rows ({has.text}), though deletes by equality applied to them "
            "whose keys are among theirs, and do not any more: deleted rows may be back"
        )
    yield "rows changed", told, certain


class _Rows:
    """The least and greatest possible number of live rows in files, by their deletes.

    ``is_estimate``: there are deletes, which may name a row twice, or no row.
    """

    def __init__(self, history: History, index: DeleteIndex, files: _Files) -> None:
        self.least = self.most = 0
        self.by_keys = self.unknown = self.is_estimate = False
        self.files: list[tuple[DataFile, tuple[DataFile, ...]]] = []
        by_manifest: dict[ManifestFile, list[str]] = {}
        for path, (manifest, rows) in files.items():
            by_manifest.setdefault(manifest, []).append(path)
            self.unknown = self.unknown or rows < 0
        for manifest, paths in by_manifest.items():
            for file in history.data_files(manifest, paths):
                deletes = index.deletes_of(file)
                least, most, by_keys = _deleted(file, deletes)
                self.least += file.record_count - most
                self.most += file.record_count - least
                self.by_keys = self.by_keys or by_keys
                self.is_estimate = self.is_estimate or bool(deletes)
                self.files.append((file, deletes))

    @property
    def text(self) -> str:
        """Such as ``10`` or ``8 to 10``."""
        if self.least == self.most:
            return f"{self.most:,}"
        return f"{self.least:,} to {self.most:,}"


def _deleted(file: DataFile, deletes: Sequence[DataFile]) -> tuple[int, int, bool]:
    """The least and greatest number of deleted rows; whether there are equality deletes."""
    rows, least, most = file.record_count, 0, 0
    by_keys = any(each.content is FileContent.EQUALITY_DELETES for each in deletes)
    for each in deletes:
        if each.content is FileContent.EQUALITY_DELETES:
            continue
        most += max(each.record_count, 0)
        if each.is_deletion_vector or each.referenced_data_file is not None:
            # Several files may delete the same row.
            least = max(least, each.record_count)
    return min(least, rows), rows if by_keys else min(most, rows), by_keys


def _undeleted(
    history: History, rows: LiveRows, before: Snapshot, after: Snapshot, dropped: Sequence[DataFile]
) -> Iterator[_Found]:
    """Damage if position deletes were dropped without replacement, but their data files stayed."""
    earlier, index = history.index_of(before), history.index_of(after)
    if index is None or earlier is None:
        return
    newest: dict[str, int] = {}
    for each in dropped:
        for path in _targets(each):
            newest[path] = max(newest.get(path, 0), each.sequence_number)
    suspects = [
        file
        for path, number in sorted(newest.items())
        if history.times_listed(path, before)
        for manifest in history.manifests_with(path, after)
        for file in history.data_files(manifest, [path])
        if number >= file.sequence_number and _is_undeleted(file, earlier, index)
    ]
    if not suspects and after.operation == "replace" and _fewer_positions(history, after, dropped):
        gone = {_key(each) for each in _by_position(dropped)}
        suspects = [
            file
            for manifest in history.manifests_of(after) or ()
            for file in history.data_files(manifest, history.listed(manifest).paths)
            if history.times_listed(file.path, before)
            and any(_key(each) in gone for each in _applied(earlier, file))
        ]
    found = {
        each.path: rows.back([(each, _applied(earlier, each), _applied(index, each))])
        for each in suspects
    }
    back = {path: count for path, count in found.items() if count and count > 0}
    if bare := [*back] or [path for path, count in found.items() if count is None]:
        told = f"the deletes of {_files(bare)} are gone or have fewer rows, and the files are still"
        yield "deletes dropped", f"{told} there: {_rows_back(sum(back.values()))}", bool(back)


def _rows_back(count: int) -> str:
    if not count:
        return "deleted rows may be back"
    return f"{count:,} deleted row{'s are' if count != 1 else ' is'} back"


def _is_undeleted(file: DataFile, earlier: DeleteIndex, index: DeleteIndex) -> bool:
    """True if a file has no position deletes left, or its vector has fewer rows than before.

    Counts of delete files do not show this: several may delete the same row.
    """
    try:
        was, has = earlier.deletes_of(file), index.deletes_of(file)
    except CorruptFileError:
        return False
    if not _by_position(has):
        return True
    vectors = [each.record_count for each in has if each.is_deletion_vector]
    return bool(vectors) and any(
        each.is_deletion_vector and each.record_count > max(vectors) for each in was
    )


def _fewer_positions(history: History, after: Snapshot, dropped: Sequence[DataFile]) -> bool:
    """True if a snapshot's delete files have fewer rows than those it dropped."""
    old = [each for each in _by_position(dropped) if not each.is_deletion_vector]
    new = [
        each for each in _by_position(history.deletes_of(after))
        if each.snapshot_id == after.snapshot_id
    ]  # fmt: skip
    return sum(each.record_count for each in old) > sum(each.record_count for each in new)


def _undeleted_keys(
    history: History,
    rows: LiveRows,
    chain: Sequence[Snapshot],
    keys: Sequence[tuple[Snapshot, Sequence[DataFile]]],
) -> Iterator[tuple[Snapshot, str, bool]]:
    """The snapshots of a chain that dropped equality deletes whose rows are live since.

    Each file is read once for all snapshots: with the deletes that it has in the last snapshot with
    it, and with those that were dropped while it existed.
    """
    if not keys:
        return
    went: dict[tuple[str, int | None], list[Snapshot]] = {}
    for after, deletes in keys:
        for each in deletes:
            went.setdefault(_key(each), []).append(after)
    dropped = {_key(each): each for _, deletes in keys for each in deletes}.values()
    try:
        gone = DeleteIndex.of(history.table, dropped)
    except CorruptFileError:
        return
    newest = max(each.sequence_number for each in dropped)
    seen: set[str] = set()
    # Files with their deletes, and the deletes that each snapshot dropped from them.
    files: list[tuple[DataFile, tuple[DataFile, ...], dict[int, list[DataFile]]]] = []
    for snapshot in chain[: 1 + max(chain.index(after) for after, _ in keys)]:
        for manifest in history.manifests_of(snapshot) or ():
            new = [each for each in history.listed(manifest).paths if each not in seen]
            seen.update(new)
            # The deletes do not apply to newer files.
            if not new or manifest.min_sequence_number >= newest:
                continue
            for file in history.data_files(manifest, new):
                lost: dict[int, list[DataFile]] = {}
                for each in _applied(gone, file):
                    for one in went[_key(each)]:
                        if history.times_listed(file.path, one):
                            lost.setdefault(one.snapshot_id, []).append(each)
                index = history.index_of(snapshot) if lost else None
                if index is not None:
                    files.append((file, _applied(index, file), lost))
    all_lost = [(file, (*chained(*lost.values()), *now), now) for file, now, lost in files]
    total = rows.back(all_lost)
    for after, _ in keys if total != 0 else ():
        own = [
            (file, (*lost[after.snapshot_id], *now), now)
            for file, now, lost in files
            if after.snapshot_id in lost
        ]
        bare = [each for each in own if total is None or rows.back([each])]
        if bare:
            told = f"the deletes by equality of {_files([each[0].path for each in bare])} are gone"
            back = 0 if total is None else rows.back(bare) or 0
            yield after, f"{told}: {_rows_back(back)}", back > 0


def _applied(index: DeleteIndex, file: DataFile) -> tuple[DataFile, ...]:
    """The deletes of a file; none if vectors are damaged, which reading the file reports."""
    try:
        return index.deletes_of(file)
    except CorruptFileError:
        return ()


def _by_position(deletes: Iterable[DataFile]) -> list[DataFile]:
    return [each for each in deletes if each.content is FileContent.POSITION_DELETES]


def _targets(delete: DataFile) -> Iterator[str]:
    """Data files that a delete file certainly names: the bounds of its paths are real paths."""
    if delete.content is not FileContent.POSITION_DELETES:
        return
    if delete.referenced_data_file is not None:
        yield delete.referenced_data_file
        return
    for bounds in (delete.lower_bounds, delete.upper_bounds):
        path = (bounds or {}).get(DELETE_FILE_PATH.field_id)
        if path is not None:
            yield path.decode("utf-8", "replace")


def _data(history: History, manifests: Iterable[ManifestFile]) -> _Files:
    return {
        path: (manifest, rows)
        for manifest in manifests
        for listed in (history.listed(manifest),)
        for path, rows in zip(listed.paths, listed.rows, strict=True)
    }


def _key(file: DataFile) -> tuple[str, int | None]:
    return file.path, file.content_offset


# ------------------------------------------------------------------ damage in the heads


def _twice(history: History, branch: str, chain: Sequence[Snapshot]) -> Iterator[Damage]:
    if not chain:
        return
    count: Counter[str] = Counter()
    for manifest in history.manifests_of(chain[0]) or ():
        count.update(history.listed(manifest).paths)
    found: dict[int, list[str]] = {}
    for path, times in count.items():
        if times > 1:
            first = _first(history, chain, [path], 2)
            found.setdefault(first.snapshot_id, []).append(path)
    for snapshot in chain:
        if snapshot.snapshot_id in found:
            paths = found[snapshot.snapshot_id]
            description = f"{_files(paths)} {_are(paths)} listed twice, and so is each row"
            yield Damage("file twice", branch, snapshot, description)


def _row_ids(history: History, branch: str, chain: Sequence[Snapshot]) -> Iterator[Damage]:
    """Files whose row ids overlap those of other files, including files of main."""
    if not chain:
        return
    main = history.chains.get(MAIN, ())
    ranges = {*_ranges(history, chain[0]), *(_ranges(history, main[0]) if main else ())}
    found: dict[int, list[str]] = {}
    end, last = -1, ""
    for start, stop, path in sorted(ranges):
        own = [each for each in (path, last) if each and history.times_listed(each, chain[0])]
        if start < end and path != last and own:
            first = _first(history, chain, own, 1)
            found.setdefault(first.snapshot_id, []).extend((last, path))
        if stop > end:
            end, last = stop, path
    for snapshot in chain:
        if snapshot.snapshot_id in found:
            paths = [*dict.fromkeys(found[snapshot.snapshot_id])]
            description = f"rows of {_files(paths)} have the same row ids"
            yield Damage("row ids twice", branch, snapshot, description)


def _ranges(history: History, head: Snapshot) -> Iterator[tuple[int, int, str]]:
    """The range of row ids of each file: first, end (excluded), path."""
    for manifest in history.manifests_of(head) or ():
        listed = history.listed(manifest)
        for path, rows, index in zip(listed.paths, listed.rows, listed.indexes, strict=True):
            start = listed.first_row_ids.get(index)
            if start is not None and rows > 0:
                yield start, start + rows, path


def _gone(history: History, branch: str, chain: Sequence[Snapshot]) -> Iterator[Damage]:
    """Damage of the first snapshot that needs a missing file which the head needs."""
    if not chain or not (needed := {*history.names_missing(chain[0])}):
        return
    for snapshot in reversed(chain):
        here = [each for each in history.names_missing(snapshot) if each in needed]
        if here:
            description = f"{_files(here)} {_are(here)} missing: the table cannot be read"
            yield Damage("missing files", branch, snapshot, description)
            return


def _first(history: History, chain: Sequence[Snapshot], paths: list[str], times: int) -> Snapshot:
    """The oldest snapshot from which on, up to the head, all list the files ``times`` times."""
    found = chain[0]
    for each in chain:
        if any(history.times_listed(path, each) < times for path in paths):
            break
        found = each
    return found


def _files(paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return f"the file {paths[0]}"
    more = f" and {len(paths) - _SHOWN:,} more" if len(paths) > _SHOWN else ""
    return f"{len(paths):,} files ({', '.join(paths[:_SHOWN])}{more})"


def _are(paths: Sequence[str]) -> str:
    return "is" if len(paths) == 1 else "are"
