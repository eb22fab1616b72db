"""Documents of table metadata that updates make, and what scenes say of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.apply import apply_updates, is_changed
from icesql.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from icesql.iceberg.metadata.table_metadata import UNSORTED, SortField, SortOrder
from icesql.iceberg.metadata.writing import metadata_bytes
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from tests.columns import columns
from tests.scenes import Stage

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
ONE = Schema(columns("id long!, name string"))
TWO = Schema(columns("id long!, name string, day date"))
BY_ID = PartitionSpec(0, (PartitionField((1,), 1000, "bucket[4]", "id_bucket"),))
ORDER = SortOrder(1, (SortField((1,), "identity", "asc", "nulls-first"),))
SPECS = {"by_id": BY_ID, "none": PartitionSpec()}
ORDERS = {"by_id": ORDER, "none": UNSORTED}


def created(version=2, spec=BY_ID, order=UNSORTED, schema=ONE, properties=None, now=1000):
    updates = [
        u.AssignUuid(UUID), u.UpgradeFormatVersion(version), u.AddSchema(schema),
        u.SetCurrentSchema(), u.AddPartitionSpec(spec), u.SetDefaultSpec(), u.AddSortOrder(order),
        u.SetDefaultSortOrder(), u.SetLocation("file:/w/t/"), u.SetProperties(properties or {}),
    ]  # fmt: skip
    return apply_updates(None, updates, now_ms=now)


def snapshot(number, parent=None, base=None, **others):
    version = 2 if base is None else base["format-version"]
    if version >= 3:
        others = {"first_row_id": base["next-row-id"], "added_rows": 10} | others
    return Snapshot(
        number, parent, sequence_number=0 if version == 1 else number,
        timestamp_ms=1000 + number, manifest_list=f"file:/w/t/metadata/snap-{number}.avro",
        operation="append", summary={"added-records": "10"}, schema_id=0, **others,
    )  # fmt: skip


def appended(base, number, parent=None, ref="main", now=None):
    return apply_updates(
        base,
        [u.AddSnapshot(snapshot(number, parent, base)), u.SetSnapshotRef(ref, SnapshotRef(number))],
        now_ms=now or 1000 + number,
        base_location=f"file:/w/t/metadata/{number - 1:05}-x.metadata.json",
    )


# The updates of a word, by the words that follow it.
UPDATES: dict[str, Callable[..., list[Any]]] = {
    "uuid": lambda uuid: [u.AssignUuid(uuid)],
    "format": lambda version: [u.UpgradeFormatVersion(int(version))],
    "schema": lambda *words: [u.AddSchema(Schema(columns(" ".join(words)))), u.SetCurrentSchema()],
    "spec": lambda name: [u.AddPartitionSpec(SPECS[name]), u.SetDefaultSpec()],
    "order": lambda name: [u.AddSortOrder(ORDERS[name]), u.SetDefaultSortOrder()],
    "set": lambda name, value: [u.SetProperties({name: value})],
    "unset": lambda *names: [u.RemoveProperties(names)],
    "ref": lambda name, number, *kind: [u.SetSnapshotRef(name, SnapshotRef(int(number), *kind))],
    "kept_ref": lambda name, number, age, least: [
        u.SetSnapshotRef(
            name,
            SnapshotRef(int(number), max_ref_age_ms=int(age), min_snapshots_to_keep=int(least)),
        )
    ],
    "drop_ref": lambda name: [u.RemoveSnapshotRef(name)],
    "remove": lambda *numbers: [u.RemoveSnapshots(tuple(map(int, numbers)))],
    "remove_schemas": lambda *ids: [u.RemoveSchemas(tuple(map(int, ids)))],
    "remove_specs": lambda *ids: [u.RemovePartitionSpecs(tuple(map(int, ids)))],
    "statistics": lambda path: [
        u.SetStatistics({"snapshot-id": 1, "statistics-path": path}),
        u.SetPartitionStatistics({"snapshot-id": 1, "statistics-path": path}),
    ],
    "remove_statistics": lambda number: [
        u.RemoveStatistics(int(number)),
        u.RemovePartitionStatistics(int(number)),
    ],
}


class Document(Stage):
    """A document that grows; parts of it are found by paths such as ``snapshots/-1/summary``."""

    now = 9000

    def create(self, *words: str) -> None:
        """A new table: ``version=3``, ``spec=none``, ``order=by_id``, ``now=5``, else properties."""
        given = dict(each.split("=") for each in words)
        self.document = created(
            int(given.pop("version", 2)),
            SPECS[given.pop("spec", "by_id")],
            ORDERS[given.pop("order", "none")],
            now=int(given.pop("now", 1000)),
            properties=given,
        )

    def create_of(self, version: str, described: str) -> None:
        """A new table of these columns, without partitions."""
        schema = Schema(columns(described))
        self.document = created(int(version), PartitionSpec(), schema=schema)

    def given(self, text: str) -> None:
        self.document = json.loads(text)

    def append(self, number: str, *words: str) -> None:
        """A snapshot that becomes the head of main: ``parent=1``, ``ref=audit``, ``now=4``."""
        given = {name: value for name, _, value in (each.partition("=") for each in words)}
        ref, numbers = given.pop("ref", "main"), {name: int(each) for name, each in given.items()}
        before = copy.deepcopy(self.document)
        made = appended(self.document, int(number), ref=ref, **numbers)
        assert self.document == before, "the base is not changed"
        self.document = made

    def appends(self, count: str) -> None:
        """So many snapshots, each the parent of the next."""
        for number in range(1, int(count) + 1):
            self.document = appended(self.document, number, number - 1 or None)

    def do(self, text: str) -> None:
        """The updates of one change, cut at semicolons."""
        updates = []
        for each in text.split("; "):
            word, *rest = each.split()
            if word == "add":
                numbers = dict(option.split("=") for option in rest[1:])
                own = {name: int(value) for name, value in numbers.items()}
                updates.append(u.AddSnapshot(snapshot(int(rest[0]), base=self.document, **own)))
            else:
                updates += UPDATES[word](*rest)
        self.base = copy.deepcopy(self.document)
        made = apply_updates(
            self.document, updates, now_ms=self.now, base_location="file:/w/t/metadata/base"
        )
        assert self.document == self.base, "the base is not changed"
        self.document = made

    def put(self, path: str, text: str) -> None:
        """Values of another writer."""
        above, _, name = path.rpartition("/")
        self.part(above)[name] = json.loads(text)

    # ------------------------------------------------------------------ what it holds

    def part(self, path: str) -> Any:
        node = self.document
        for each in filter(None, path.split("/")):
            node = node[int(each) if isinstance(node, list) else each]
        return node

    def has(self, path: str, text: str) -> None:
        """A part as JSON, as it is written."""
        assert json.dumps(self.part(path)) == json.dumps(json.loads(text))
        written, self.document = self.document, json.loads(metadata_bytes(self.document))
        assert self.part(path) == json.loads(text)
        self.document = written

    def lacks(self, *paths: str) -> None:
        for path in paths:
            above, _, name = path.rpartition("/")
            assert name not in self.part(above)

    def same(self, path: str, other: str) -> None:
        assert self.part(path) == self.part(other)

    def count(self, path: str, count: str) -> None:
        assert len(self.part(path)) == int(count)

    def each(self, path: str, name: str, *wanted: str) -> None:
        """What the items of a list have under a name."""
        assert [str(item[name]) for item in self.part(path)] == [*wanted]

    def keys(self, *names: str) -> None:
        assert self.document.keys() == {*names}

    def begins(self, *names: str) -> None:
        """The keys that come first."""
        assert [*self.document][: len(names)] == [*names]

    def changed(self, answer: str) -> None:
        assert is_changed(self.base, self.document) == (answer == "yes")

    def pyiceberg(self) -> None:
        """PyIceberg reads the same schema, partitions and current snapshot."""
        from pyiceberg.table.metadata import TableMetadataUtil

        theirs = TableMetadataUtil.parse_raw(metadata_bytes(self.document).decode())
        schema = self.part("schemas")[theirs.current_schema_id]
        assert [each.name for each in theirs.schema().fields] == [
            each["name"] for each in schema["fields"]
        ]
        spec = self.part("partition-specs")[theirs.default_spec_id]
        assert [str(each.transform) for each in theirs.spec().fields] == [
            each["transform"] for each in spec["fields"]
        ]
        found, current = theirs.current_snapshot(), self.document["current-snapshot-id"]
        assert (found.snapshot_id if found else None) == (None if current == -1 else current)
