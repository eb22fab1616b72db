"""Derive the needs of a table from its facts and its policy. Reads only metadata.

The planner of the procedure decides whether the procedure is needed, so that a completed action is
not needed again: a second look at an unchanged table finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from icesql.commit.deletion import keeps_files
from icesql.commit.file_changes import file_key
from icesql.commit.manifests.rewrite import plan_manifests
from icesql.errors import NotSupportedError, ProgrammingError
from icesql.health.facts import Facts, Sizes, tried
from icesql.health.finding import Finding, weight_of
from icesql.health.need import Instant, Need
from icesql.health.policy import DAY, LEAST_ORPHAN_AGE
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.json_fields import number_property, whole_number
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.maintain.deletes.plan import plan_conversion, plan_delete_files, plan_deletes
from icesql.maintain.expire import MAX_AGE, MIN_KEPT, plan_expiry
from icesql.maintain.rewrite.plan import RewritePlan, deletes_reason, rewrite_options
from icesql.maintain.rewrite.run import vectors_of
from icesql.scan.report import bytes_text
from icesql.scan.tasks import distinct_deletes

# ------------------------------------------------------------------ findings about manifests


_FEWEST_MANIFESTS: Final = 10
_MANIFEST_BYTES: Final = 8 << 20


def manifests(facts: Facts) -> Iterator[Finding]:
    """Many small manifests, or manifests with files of too many partitions each."""
    given = facts.files.manifests
    target = whole_number(facts.properties.get("commit.manifest.target-size-bytes"))
    size = _MANIFEST_BYTES if target is None else target
    groups = plan_manifests(given, facts.metadata.default_spec_id, size)
    data = [each for each in groups if each.content is ManifestContent.DATA]
    count = sum(len(each.manifests) for each in data)
    after = sum(each.count for each in data)
    if count < _FEWEST_MANIFESTS:
        return
    if after > count / 2:
        yield from _clustering(facts, after)
        return
    size = sum(each.manifest_length or 0 for group in data for each in group.manifests) // count
    left = len(given) - sum(len(each.manifests) - each.count for each in groups)
    yield _need(
        f"{count:,} manifests of data files, {bytes_text(size)} each on average; "
        f"together they make about {after:,}",
        left,
    ).finding(
        facts,
        "manifests",
        weight_of(1 - after / count) if count >= 50 else "medium",
        f"planning a query opens up to {count:,} manifests instead of {after:,}",
        measure="manifests",
    )


def _need(reason: str, left: int | None = None) -> Need:
    promise = {} if left is None else {"manifests": left}
    return Need("manifests", "rewrite_manifests", reason, promise=promise)


def _clustering(facts: Facts, after: int) -> Iterator[Finding]:
    """Manifests of the right size, with the files of each partition spread over many."""
    places = sum(1 for spec, _ in facts.files.places if spec == facts.metadata.default_spec_id)
    # The average number of manifests with files of a partition. Afterwards these are neighbours,
    # some of them across a manifest's end.
    spread, best = (
        count / max(places, 1) for count in (sum(facts.files.spread), places + after - 1)
    )
    if places < 2 or spread < 3 or best > spread / 2:
        return
    yield _need(
        f"the files of one partition are in {spread:,.1f} of {len(facts.files.spread):,} manifests "
        "on average"
    ).finding(
        facts,
        "manifest clustering",
        weight_of(1 - best / spread),
        f"planning a query of one partition opens {spread:,.1f} manifests instead of {best:,.1f}",
        measure="manifests of a partition",
        now=round(spread, 2),
        after=round(best, 2),
    )


# ------------------------------------------------------------------ needs


# Keys in the summaries of snapshots that actions create, besides the run.
RUN: Final = "icesql.maintain.run"
ACTION: Final = "icesql.maintain.action"
TARGET: Final = "icesql.maintain.target-file-size-bytes"

# A rewrite of fewer files, or one that leaves nearly as many, is not worth its cost.
FEWEST_FILES: Final = 5
LARGEST_SHARE: Final = 0.9
_LARGEST_SHARE_OF_DELETES: Final = 0.75
ALL_FILES: Final = {"rewrite-all": "true"}
_ALL_DELETES: Final = {"delete-file-threshold": "1", "min-input-files": "1"}
_MOST_LOOKED_AT: Final = 200
# The parts of the procedure's note; the folder between them may be any text.
_OF_FILES: Final = re.compile(r"\d+ of (\d+) files in ")
_TOO_YOUNG: Final = re.compile(r", (\d+) more are too young\Z")


def try_need(name: str, facts: Facts) -> Need | None:
    """As ``need``, but None if the table or catalog refuses the action."""
    found = tried(need, name, facts)
    return None if found is None or found.refusal else found


def need(name: str, facts: Facts) -> Need | None:
    """The action with this name if the table needs it now; else None.

    An action that the table or its properties do not allow is refused, without affecting others.
    """
    try:
        return _NEEDS[name](facts)
    except (NotSupportedError, ProgrammingError) as error:
        return Need(name, refusal=str(error))


# ------------------------------------------------------------------ equality deletes


def _convert(facts: Facts) -> Need | None:
    if not facts.files.equality:
        return None
    if facts.compaction.refusal:
        return Need("convert", refusal=facts.compaction.refusal)
    planned = plan_conversion(facts.table, facts.query)
    if not planned.deletes:
        return None
    if "compact" in facts.policy.actions:
        rewrite = facts.plan(compact_options(facts))
        rewritten = {each.data_file.path for group in rewrite.groups for each in group.files}
        everything = all(each.data_file.path in rewritten for each in planned.tasks)
        if everything and _is_worth_it(rewrite, facts.metadata):
            return None  # these deletes go with the data files, which are rewritten
    count = len(planned.deletes)
    return Need(
        "convert",
        "convert_equality_deletes",
        f"{count:,} delete files by equality are looked up by each read of "
        f"{len(planned.tasks):,} data files",
        promise={"equality_delete_files": facts.files.equality - count},
        bytes=sum(each.data_file.file_size_in_bytes for each in planned.tasks),
    )


# ------------------------------------------------------------------ data files


def _compact(facts: Facts) -> Need | None:
    options = compact_options(facts)
    try:
        rewrite = facts.plan(options)
    except ProgrammingError:
        if facts.compaction.refusal:
            return None
        raise
    if not _is_worth_it(rewrite, facts.metadata):
        return None
    return _rewriting("compact", facts, options, rewrite)


def _rewriting(name: str, facts: Facts, options: Mapping[str, str], rewrite: RewritePlan) -> Need:
    count, sizes = facts.files.count, Sizes.of(rewrite)
    promise = {}
    if facts.files.deletes:
        after = facts.files.deletes - len(vectors_of(rewrite.groups))
        if rewrite.request.options.remove_dangling_deletes:
            after = len({*map(file_key, distinct_deletes(rewrite.left))})
        promise["delete_files"] = after
    if not sizes.older:
        promise["data_files"] = count - sizes.read + sizes.made
    return Need(
        name,
        "rewrite_data_files",
        f"{sizes.read:,} of {count:,} data files are small or have many deletes",
        {"options": options} if options else {},
        promise,
        sum(each.bytes for each in rewrite.groups),
        facts.compaction.refusal,
        rewrite=rewrite,
    )


def apply_deletes(facts: Facts) -> Need:
    """A rewrite after which no data file has deletes. Raises what planning raises."""
    options = _ALL_DELETES | delete_options(facts)
    return _rewriting("apply deletes", facts, options, facts.plan(options))


def rewrite_all(facts: Facts, **arguments: Any) -> Need:
    """A rewrite of all data files, such as one that sorts them."""
    given = {**arguments, "options": ALL_FILES}
    refusal = facts.compaction.refusal
    return Need("rewrite all", "rewrite_data_files", arguments=given, refusal=refusal)


def compact_options(facts: Facts) -> dict[str, str]:
    """The options of a compaction by the table's policy."""
    options = dict(facts.policy.compact_options)
    if facts.policy.target_file_size is not None:
        options.setdefault("target-file-size-bytes", str(facts.policy.target_file_size))
    for key, each in delete_options(facts).items():
        options.setdefault(key, each)
    return options


def delete_options(facts: Facts) -> dict[str, str]:
    """Options that also remove the deletes of rewritten files; none if there are no deletes."""
    if not facts.files.deletes:
        return {}
    options = {"remove-dangling-deletes": "true"}
    if not _gets_equality_deletes(facts):
        # With it, position deletes of the last commit would apply to the rewritten files. If
        # writers add equality deletes, a rewrite needs the old sequence number, so that these
        # still apply.
        options["use-starting-sequence-number"] = "false"
    return options


def _is_worth_it(rewrite: RewritePlan, metadata: TableMetadata) -> bool:
    """True if the rewrite makes considerably fewer files, or removes many deleted rows."""
    options = rewrite.request.options
    # The sequence numbers of snapshots that an earlier run compacted to the same target size.
    ours = {ACTION: "compact", TARGET: str(options.target_file_size_bytes)}.items()
    own = {
        each.sequence_number for each in metadata.snapshots.values() if ours <= each.summary.items()
    } - {0}
    read = made = 0
    for group in rewrite.groups:
        if any(each.deletes and deletes_reason(each, options) for each in group.files):
            return True
        if own and all(each.data_file.file_sequence_number in own for each in group.files):
            continue  # files that an earlier run compacted get no better
        read += len(group.files)
        made += group.output_files
    return read >= FEWEST_FILES and made <= LARGEST_SHARE * read


def _gets_equality_deletes(facts: Facts) -> bool:
    """True if a writer added equality deletes, as far as the kept snapshots show."""
    numbers = sorted(facts.metadata.snapshots.values(), key=lambda each: -each.timestamp_ms)
    return bool(facts.files.equality) or any(
        each.summary.get(key, "0") != "0"
        for each in numbers[:_MOST_LOOKED_AT]
        for key in ("total-equality-deletes", "added-equality-deletes")
    )


# ------------------------------------------------------------------ position deletes


def _deletes(facts: Facts) -> Need | None:
    table, metadata, query = facts.table, facts.metadata, facts.query
    if facts.files.deletes < 2 or facts.compaction.refusal:
        return None
    groups = plan_delete_files(table, rewrite_options({}, metadata, "deletes"), query)
    if not groups:
        return None
    planned = plan_deletes(table, groups, query)
    vectors = sum(any(file.is_deletion_vector for file in task.deletes) for task in planned.tasks)
    made = len({*planned.groups} if planned.one_file else planned.tasks) - vectors
    read = len(planned.which)
    if metadata.format_version < 3 and made > _LARGEST_SHARE_OF_DELETES * read:
        return None
    return Need(
        "deletes",
        "rewrite_position_delete_files",
        f"{read:,} small delete files by position make about {made:,}",
        promise={"delete_files": facts.files.deletes - read + made},
        bytes=sum(each.bytes for each in groups),
    )


# ------------------------------------------------------------------ metadata


def _manifests(facts: Facts) -> Need | None:
    return next((each.need for each in manifests(facts)), None)


def _statistics(facts: Facts) -> Need | None:
    """Needed unless the head, or an earlier snapshot with the same rows, has statistics."""
    metadata, head = facts.metadata, facts.metadata.current_snapshot
    known = {each.snapshot_id for each in metadata.statistics}
    for each in metadata.ancestry(head):
        if each.snapshot_id in known:
            return None
        if each.operation != "replace":
            break
    if head is None:
        return None
    return Need("statistics", "compute_table_stats", "no statistics of the rows of now")


def _partition_statistics(facts: Facts) -> Need | None:
    metadata = facts.metadata
    head = metadata.current_snapshot
    if head is None or not metadata.spec.fields:
        return None
    if head.snapshot_id in {each.snapshot_id for each in metadata.partition_statistics}:
        return None
    return Need(
        "partition_statistics", "compute_partition_stats", "no statistics of the partitions of now"
    )


# ------------------------------------------------------------------ actions that delete files


def _expire(facts: Facts) -> Need | None:
    metadata, policy = facts.metadata, facts.policy
    properties = metadata.properties
    if not policy.wants_expiry and not ({MAX_AGE, MIN_KEPT} & properties.keys()):
        return None  # neither the policy nor the table allows its history to expire
    _check_may_delete(properties)
    age, least = _kept(facts)
    older_than = None if age is None else facts.now_ms - int(age * 1000)
    planned = plan_expiry(
        _with_newer_head(facts) if facts.commits else metadata,
        now_ms=facts.now_ms,
        older_than_ms=older_than,
        retain_last=least,
    )
    gone = len(planned.snapshot_ids)
    if not gone and not planned.refs:
        return None
    arguments: dict[str, Any] = {}
    if older_than is not None:
        arguments["older_than"] = Instant(older_than)
    if least is not None:
        arguments["retain_last"] = least
    count = len(metadata.snapshots)
    return replace(
        expire(**arguments),
        reason=f"{gone:,} of {count:,} snapshots are older than is kept",
        promise={"snapshots": count - gone},
    )


def expire(**arguments: Any) -> Need:
    """An expiry, whether or not the table needs it."""
    return Need("expire", "expire_snapshots", arguments=arguments)


def _with_newer_head(facts: Facts) -> TableMetadata:
    """The metadata as it will be after another commit to main."""
    metadata, head = facts.metadata, facts.metadata.current_snapshot
    main = metadata.refs.get(MAIN)
    if head is None or main is None:
        return metadata
    newer = replace(
        head, snapshot_id=-1, parent_snapshot_id=head.snapshot_id, timestamp_ms=facts.now_ms
    )
    return replace(
        metadata,
        current_snapshot_id=-1,
        snapshots={**metadata.snapshots, -1: newer},
        refs={**metadata.refs, MAIN: replace(main, snapshot_id=-1)},
    )


def _kept(facts: Facts) -> tuple[float | None, int | None]:
    """The larger values of policy and table; None leaves the default to the procedure."""
    policy, properties = facts.policy, facts.properties
    age, least = policy.retention, policy.min_snapshots
    if age is not None:
        age = max(age, number_property(properties, MAX_AGE, 0) / 1000)
    if least is not None:
        least = max(least, number_property(properties, MIN_KEPT, 0))
    return age, least


def _orphans(facts: Facts) -> Need | None:
    _check_may_delete(facts.properties)
    age = facts.policy.orphan_age
    arguments = {"older_than": Instant(facts.now_ms - int(age * 1000))}
    action = Need(
        "orphans", "remove_orphan_files", arguments=arguments if age > LEAST_ORPHAN_AGE else {}
    )
    answer = facts.explain(action)
    note = next((each for each in answer.notes if _OF_FILES.match(each)), "")
    found, too_young = _OF_FILES.match(note), _TOO_YOUNG.search(note)
    gone = len(answer.rows)
    if found is None or not gone:
        return None
    young = f"; {too_young[1]} more are younger, maybe of writes that failed" if too_young else ""
    return replace(
        action,
        reason=f"{gone:,} of {int(found[1]):,} files in the table's folder are older than "
        f"{age / DAY:,.3g} days and needed by no snapshot{young}",
        promise={"removed_orphans": gone},
        weight=weight_of(gone / int(found[1]) / 2),
        freed=sum(row["bytes"] or 0 for row in answer.rows),
    )


def _check_may_delete(properties: Mapping[str, str]) -> None:
    if keeps_files(properties):
        raise NotSupportedError("its property gc.enabled is false: other tables may need its files")


_NEEDS: Final[Mapping[str, Callable[[Facts], Need | None]]] = {
    "convert": _convert,
    "compact": _compact,
    "deletes": _deletes,
    "manifests": _manifests,
    "statistics": _statistics,
    "partition_statistics": _partition_statistics,
    "expire": _expire,
    "orphans": _orphans,
}
