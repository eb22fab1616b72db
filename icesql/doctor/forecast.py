"""What following the findings of a table saves: its files and manifests after each statement.

The statements are taken in the order of ``_STEPS``, each after those before it, so that what a
later one saves is what is left to save. Nothing is promised of files of older partition specs: a
rewrite gives their rows to partitions that no metadata tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from icesql.commit.files import file_key
from icesql.commit.manifests.rewrite import plan_manifests
from icesql.context import QueryContext
from icesql.doctor.facts import Facts
from icesql.doctor.files import options_of_deletes
from icesql.doctor.finding import Finding, Gain
from icesql.doctor.metadata import manifest_bytes
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.maintain.rewrite.grouping import FileGroup
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.spec_scan import typed_specs


class _Listing(Struct, frozen=True):
    """A manifest with live files; None is one that a rewrite will write.

    ``files`` are the paths of data files, or the keys of deletes. ``fresh`` counts the files that
    do not exist yet.
    """

    manifest: ManifestFile | None
    files: frozenset[Any] = frozenset()
    fresh: int = 0

    @property
    def is_data(self) -> bool:
        return self.manifest is None or self.manifest.content is ManifestContent.DATA


_State = tuple[_Listing, ...]


def with_gains(
    findings: Sequence[Finding], facts: Facts, query: QueryContext
) -> tuple[Finding, ...]:
    """The findings with what their statements save of files, requests and planning."""
    wanted = {each.name for each in findings if each.statement}
    steps = [(name, step) for name, step in _STEPS.items() if name in wanted]
    if not steps:
        return (*findings,)
    state = (*_listings(facts, query),)
    count = max(len(state), 1)
    gains: dict[str, Gain] = {}
    for name, step in steps:
        after = step(facts, state)
        fewer = len(state) - len(after)
        files = _files(state) - _files(after)
        seconds = facts.files.seconds * fewer / count
        gains[name] = Gain(files, 0, files + fewer, max(seconds, 0.0))
        state = after
    return tuple(
        replace(each, gain=each.gain + gains[each.name])
        if each.statement and each.name in gains
        else each
        for each in findings
    )


def _files(state: _State) -> int:
    return sum(len(each.files) + each.fresh for each in state)


def _listings(facts: Facts, query: QueryContext) -> Iterator[_Listing]:
    table = facts.table
    specs = typed_specs(table.metadata)
    reader = ManifestReader(table.storage, query, table.name)
    found = reader.entries_of(facts.files.manifests, lambda each: specs[each.partition_spec_id])
    for manifest, entries in found:
        live = [index for index, alive in enumerate(entries.live) if alive]
        if manifest.content is ManifestContent.DATA:
            keys: frozenset[Any] = frozenset(entries.path[index] for index in live)
        else:
            keys = frozenset(file_key(entries.data_file(index)) for index in live)
        if keys:
            yield _Listing(manifest, keys)


def _compacted(facts: Facts, state: _State) -> _State:
    """After the plain compaction, with which the deletes of nothing but its files go."""
    groups = facts.compaction.small_groups
    if not groups or _has_older(groups):
        return state
    needed = frozenset(map(file_key, facts.compaction.deletes_left))
    return _rewritten(state, groups, needed)


def _without_deletes(facts: Facts, state: _State) -> _State:
    """After the one of all files that have deletes, and of what is small beside them."""
    groups = facts.compaction.groups_by(options_of_deletes(facts))
    if _has_older(groups):
        return state
    small = facts.compaction.small_groups if any(each.fresh for each in state) else ()
    done = _paths(small)
    # Partitions in which the compaction before has left nothing to do.
    left = [each for each in groups if not _paths([each]) <= done]
    if not left:
        return state
    again = _paths(left)
    stays = sum(each.output_files for each in small if not _paths([each]) & again)
    kept = tuple(each for each in state if not each.fresh)
    after = _rewritten(kept, left, frozenset())
    return (*after, _Listing(None, fresh=stays)) if stays else after


def _rewritten(state: _State, groups: Sequence[FileGroup], needed: frozenset[Any]) -> _State:
    """``needed`` are the keys of the deletes that stay."""
    read = _paths(groups)
    left = [
        replace(each, files=each.files - read if each.is_data else each.files & needed)
        for each in state
    ]
    made = _Listing(None, fresh=sum(each.output_files for each in groups))
    return made, *(each for each in left if each.files)


def _paths(groups: Iterable[FileGroup]) -> frozenset[str]:
    return frozenset(task.data_file.path for each in groups for task in each.files)


def _has_older(groups: Sequence[FileGroup]) -> bool:
    return any(each.partition is None for each in groups)


def _with_fewer_manifests(facts: Facts, state: _State) -> _State:
    """After the rewrite of manifests."""
    spec_id = facts.table.metadata.default_spec_id
    known = [each.manifest for each in state if each.manifest is not None]
    counts = {
        each.content is ManifestContent.DATA: each.count
        for each in plan_manifests(known, spec_id, manifest_bytes(facts))
    }
    found: list[_Listing] = []
    for is_data in (True, False):
        own = [each for each in state if each.is_data is is_data and _is_of(each, spec_id)]
        count = min(len(own), max(counts.get(is_data, 1), 1))
        # All of their files, in fewer manifests: how they are spread makes no difference here.
        for number, each in enumerate(own[:count]):
            rest = own[count:] if number == 0 else []
            files = each.files.union(*(one.files for one in rest))
            fresh = each.fresh + sum(one.fresh for one in rest)
            found.append(replace(each, files=files, fresh=fresh))
    return *found, *(each for each in state if not _is_of(each, spec_id))


def _is_of(listing: _Listing, spec_id: int) -> bool:
    return listing.manifest is None or listing.manifest.partition_spec_id == spec_id


_STEPS: Final[Mapping[str, Callable[[Facts, _State], _State]]] = {
    "small files": _compacted,
    "deletes": _without_deletes,
    "manifests": _with_fewer_manifests,
}
