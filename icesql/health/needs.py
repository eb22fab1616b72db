"""Which actions a table needs, by its facts and its policy. Only metadata is read.

Each need is told by the planner of the procedure that it calls, so that what was done is no need
any more: a second look at a table that nobody writes to finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from icesql.commit.files import file_key
from icesql.context import QueryContext
from icesql.errors import NotSupportedError, ProgrammingError
from icesql.health.actions import Action, Instant, Refused
from icesql.health.facts import Answer, Facts
from icesql.health.measures import measures
from icesql.health.metadata import manifests as examine_manifests
from icesql.health.policy import TablePolicy
from icesql.iceberg.metadata.property_numbers import number_property
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.maintain.convert.plan import plan_conversion
from icesql.maintain.delete_files import DeleteOptions, delete_granularity, plan_delete_files
from icesql.maintain.expiry_plan import plan_expiry
from icesql.maintain.rewrite.grouping import known_deleted
from icesql.maintain.rewrite.options import RewriteOptions, rewrite_options
from icesql.maintain.rewrite.plan import RewritePlan, RewriteRequest, plan_rewrite
from icesql.maintain.rewrite.run import vectors_of
from icesql.scan.planner import plan
from icesql.scan.table_scan import TableScan
from icesql.scan.tasks.task import FileScanTask, distinct_deletes

# What a snapshot made by an action says in its summary, beside the run.
RUN: Final = "icesql.maintain.run"
ACTION: Final = "icesql.maintain.action"
TARGET: Final = "icesql.maintain.target-file-size-bytes"

# A rewrite of fewer files, or one that leaves nearly as many, is not worth its bytes.
_FEWEST_FILES: Final = 5
_LARGEST_SHARE: Final = 0.9
_LARGEST_SHARE_OF_DELETES: Final = 0.75
_MOST_LOOKED_AT: Final = 200
_AGE: Final = "history.expire.max-snapshot-age-ms"
_LEAST: Final = "history.expire.min-snapshots-to-keep"
_FIVE_DAYS: Final = 432_000.0


class Question(Struct, frozen=True):
    """A table to look at. ``explain`` answers EXPLAIN of an action; ``now_ms`` is since 1970.

    ``commits``: snapshots will be made before the action, so that the head of now is none then.
    """

    facts: Facts
    policy: TablePolicy
    query: QueryContext
    now_ms: int
    explain: Callable[[Action], Answer]
    commits: bool = False

    @property
    def metadata(self) -> TableMetadata:
        """That of the table."""
        return self.facts.table.metadata


Need = Action | Refused | None


def need(name: str, question: Question) -> Need:
    """The action of a name that the table needs now; None where it needs none.

    What the table or a property of it does not allow is refused, and stops no other action.
    """
    try:
        return _NEEDS[name](question)
    except (NotSupportedError, ProgrammingError) as error:
        return Refused(name, str(error))


# ------------------------------------------------------------------ deletes by equality


def _convert(question: Question) -> Need:
    if not question.facts.files.equality:
        return None
    if question.facts.compaction.refusal:
        return Refused("convert", question.facts.compaction.refusal)
    table, query = question.facts.table, question.query
    planned = plan_conversion(table, query)
    if not planned.deletes:
        return None
    if "compact" in question.policy.actions:
        rewrite = _rewrite_plan(question)
        rewritten = {each.data_file.path for group in rewrite.groups for each in group.files}
        everything = all(each.data_file.path in rewritten for each in planned.tasks)
        if everything and _is_worth_it(rewrite, question):
            return None  # they go with the files that they are about
    count = len(planned.deletes)
    return Action(
        "convert",
        "convert_equality_deletes",
        f"{count:,} delete files by equality are looked up by each read of "
        f"{len(planned.tasks):,} data files",
        promise={"equality_delete_files": question.facts.files.equality - count},
        bytes=sum(each.data_file.file_size_in_bytes for each in planned.tasks),
    )


# ------------------------------------------------------------------ data files


def _compact(question: Question) -> Need:
    if question.facts.compaction.refusal:
        small = question.facts.compaction.by_size
        if small is None or small.read < _FEWEST_FILES:
            return None
        return Refused("compact", question.facts.compaction.refusal)
    rewrite = _rewrite_plan(question)
    if not _is_worth_it(rewrite, question):
        return None
    now = measures(question.facts)
    read = sum(len(each.files) for each in rewrite.groups)
    made = sum(each.output_files for each in rewrite.groups)
    promise = {"delete_files": _deletes_after(rewrite, question)} if now.delete_files else {}
    if all(each.partition is not None for each in rewrite.groups):
        # Rows of older partition specs go to partitions that no metadata tells.
        promise["data_files"] = now.data_files - read + made
    return Action(
        "compact",
        "rewrite_data_files",
        f"{read:,} of {now.data_files:,} data files are small or have many deletes",
        {"options": options} if (options := _compact_options(question)) else {},
        promise,
        sum(each.bytes for each in rewrite.groups),
    )


def _compact_options(question: Question) -> dict[str, str]:
    options = dict(question.policy.compact_options)
    if question.policy.target_file_size is not None:
        options.setdefault("target-file-size-bytes", str(question.policy.target_file_size))
    if question.facts.files.deletes:
        options.setdefault("remove-dangling-deletes", "true")
        if not _gets_equality_deletes(question.metadata):
            # Position deletes of the last commit would concern files that get its number. Where
            # deletes by equality arrive, a rewrite needs that number to keep what they take.
            options.setdefault("use-starting-sequence-number", "false")
    return options


def _rewrite_plan(question: Question) -> RewritePlan:
    options = rewrite_options(_compact_options(question), question.metadata)
    return plan_rewrite(question.facts.table, RewriteRequest(options), question.query)


def _is_worth_it(rewrite: RewritePlan, question: Question) -> bool:
    """Whether fewer files come of it, or deleted rows go."""
    options = rewrite.request.options
    own = _own_rewrites(question.metadata, options.target_file_size_bytes)
    read = made = 0
    for group in rewrite.groups:
        if any(_has_many_deletes(each, options) for each in group.files):
            return True
        if own and all(each.data_file.file_sequence_number in own for each in group.files):
            continue  # what an earlier run has made of it gets no better
        read += len(group.files)
        made += group.output_files
    return read >= _FEWEST_FILES and made <= _LARGEST_SHARE * read


def _own_rewrites(metadata: TableMetadata, target: int) -> frozenset[int]:
    """The sequence numbers of snapshots in which an earlier run compacted to the same size."""
    return frozenset(
        each.sequence_number
        for each in metadata.snapshots.values()
        if each.sequence_number
        and each.summary.get(ACTION) == "compact"
        and each.summary.get(TARGET) == str(target)
    )


def _has_many_deletes(task: FileScanTask, options: RewriteOptions) -> bool:
    if task.deletes and len(task.deletes) >= options.delete_file_threshold:
        return True
    rows = task.data_file.record_count
    return rows > 0 and known_deleted(task) / rows >= options.delete_ratio_threshold


def _deletes_after(rewrite: RewritePlan, question: Question) -> int:
    if rewrite.request.options.remove_dangling_deletes:
        left = [each.file for each in rewrite.left]
        return len({file_key(each) for each in distinct_deletes(left)})
    return question.facts.files.deletes - len(vectors_of(rewrite.groups))


def _gets_equality_deletes(metadata: TableMetadata) -> bool:
    """Whether a writer of deletes by equality was at work, as far as snapshots are kept."""
    numbers = sorted(metadata.snapshots.values(), key=lambda each: -each.timestamp_ms)
    return any(
        each.summary.get(key, "0") != "0"
        for each in numbers[:_MOST_LOOKED_AT]
        for key in ("total-equality-deletes", "added-equality-deletes")
    )


# ------------------------------------------------------------------ deletes by position


def _deletes(question: Question) -> Need:
    table, metadata, query = question.facts.table, question.metadata, question.query
    if question.facts.files.deletes < 2 or question.facts.compaction.refusal:
        return None
    groups = plan_delete_files(table, DeleteOptions.of({}, metadata.properties), query)
    if not groups:
        return None
    chosen = {each.path: number for number, group in enumerate(groups) for each in group.files}
    snapshot = metadata.current_snapshot
    scan = TableScan(replace(table, planning=None), snapshot, metadata.schema, metadata.schema)
    pairs: set[tuple[str, int]] = set()
    vectors = 0
    for task in plan(scan, query).files:
        numbers = {chosen[each.path] for each in task.deletes if each.path in chosen}
        pairs |= {(task.data_file.path, each) for each in numbers}
        vectors += bool(numbers) and any(each.is_deletion_vector for each in task.deletes)
    if metadata.format_version > 2:
        made = len({path for path, _ in pairs}) - vectors
    elif delete_granularity(metadata.properties) == "partition":
        made = len({number for _, number in pairs})
    else:
        made = len(pairs)
    read = len(chosen)
    if metadata.format_version < 3 and made > _LARGEST_SHARE_OF_DELETES * read:
        return None
    return Action(
        "deletes",
        "rewrite_position_delete_files",
        f"{read:,} small delete files by position make about {made:,}",
        promise={"delete_files": question.facts.files.deletes - read + made},
        bytes=sum(each.bytes for each in groups),
    )


# ------------------------------------------------------------------ metadata


def _manifests(question: Question) -> Need:
    def ask(sql: str) -> Answer:
        return Answer(())

    for finding in examine_manifests(question.facts, ask):
        promise = {}
        if finding.measure == "manifests" and finding.after is not None:
            promise["manifests"] = int(finding.after)
        return Action("manifests", "rewrite_manifests", finding.told, promise=promise)
    return None


def _statistics(question: Question) -> Need:
    """Those of an older snapshot do while only rewrites followed: its rows are those of now."""
    known = {each.snapshot_id for each in question.metadata.statistics}
    same = _snapshots_of_same_rows(question.metadata)
    if not same or known & same:
        return None
    return Action("statistics", "compute_table_stats", "no statistics of the rows of now")


def _partition_statistics(question: Question) -> Need:
    metadata = question.metadata
    head = metadata.current_snapshot
    if head is None or not metadata.spec.fields:
        return None
    if head.snapshot_id in {each.snapshot_id for each in metadata.partition_statistics}:
        return None
    return Action(
        "partition_statistics", "compute_partition_stats", "no statistics of the partitions of now"
    )


def _snapshots_of_same_rows(metadata: TableMetadata) -> set[int]:
    found: set[int] = set()
    current: Snapshot | None = metadata.current_snapshot
    while current is not None and current.snapshot_id not in found:
        found.add(current.snapshot_id)
        parent = current.parent_snapshot_id
        if current.operation != "replace" or parent is None:
            break
        current = metadata.snapshot(parent)
    return found


# ------------------------------------------------------------------ what deletes files


def _expire(question: Question) -> Need:
    metadata, policy = question.metadata, question.policy
    properties = metadata.properties
    if not policy.asks_expiry and not ({_AGE, _LEAST} & properties.keys()):
        return None  # nobody has said that its past may go
    if (refused := _kept_by_property("expire", properties)) is not None:
        return refused
    age, least = _kept(policy, properties)
    older_than = None if age is None else question.now_ms - int(age * 1000)
    planned = plan_expiry(
        _with_newer_head(question) if question.commits else metadata,
        now_ms=question.now_ms,
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
    return Action(
        "expire",
        "expire_snapshots",
        f"{gone:,} of {len(metadata.snapshots):,} snapshots are older than is kept",
        arguments,
        {"snapshots": len(metadata.snapshots) - gone},
    )


def _with_newer_head(question: Question) -> TableMetadata:
    """The metadata as it will be when main has another snapshot."""
    metadata, head = question.metadata, question.metadata.current_snapshot
    main = metadata.refs.get(MAIN)
    if head is None or main is None:
        return metadata
    newer = replace(
        head, snapshot_id=-1, parent_snapshot_id=head.snapshot_id, timestamp_ms=question.now_ms
    )
    return replace(
        metadata,
        current_snapshot_id=-1,
        snapshots={**metadata.snapshots, -1: newer},
        refs={**metadata.refs, MAIN: replace(main, snapshot_id=-1)},
    )


def _kept(policy: TablePolicy, properties: Mapping[str, str]) -> tuple[float | None, int | None]:
    """The longer of what the policy and the table say; None leaves it to the procedure."""
    age, least = policy.retention, policy.min_snapshots
    if age is not None:
        age = max(age, number_property(properties, _AGE, 0) / 1000)
    if least is not None:
        least = max(least, number_property(properties, _LEAST, 0))
    return age, least


def _orphans(question: Question) -> Need:
    properties = question.metadata.properties
    if (refused := _kept_by_property("orphans", properties)) is not None:
        return refused
    older_than = question.now_ms - int(question.policy.orphan_age * 1000)
    arguments = {"older_than": Instant(older_than)}
    action = Action("orphans", "remove_orphan_files", "", arguments)
    removed = len(question.explain(action).rows)
    if not removed:
        return None
    said = f"{removed:,} files that nothing of the table names"
    promise = {"removed_orphans": removed}
    return Action(action.name, action.procedure, said, arguments, promise)


def _kept_by_property(name: str, properties: Mapping[str, str]) -> Refused | None:
    if properties.get("gc.enabled", "true").lower() == "false":
        return Refused(name, "its property gc.enabled is false: other tables may need its files")
    return None


_NEEDS: Final[Mapping[str, Callable[[Question], Need]]] = {
    "convert": _convert,
    "compact": _compact,
    "deletes": _deletes,
    "manifests": _manifests,
    "statistics": _statistics,
    "partition_statistics": _partition_statistics,
    "expire": _expire,
    "orphans": _orphans,
}
