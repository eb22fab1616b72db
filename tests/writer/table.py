"""TableWriter: a table folder grown commit by commit, by the specification."""

from __future__ import annotations

import copy
import json
import math
import os
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from tests.writer.manifests import write_manifest, write_manifest_list
from tests.writer.metrics import metrics
from tests.writer.roaring import write_puffin
from tests.writer.types import arrow_schema, arrow_type, avro_record, fixed_of, single_value

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
FILE_PATH, POS = 2147483546, 2147483545
RESULT_TYPES = {"year": "int", "month": "int", "day": "date", "hour": "int"}


@dataclass
class WrittenFile:
    """A file that can be committed; ``record`` is its data_file record."""

    record: dict
    content: int
    spec_id: int
    sequence_number: int | None = None
    snapshot_id: int | None = None
    first_row_id: int | None = None


@dataclass
class TableWriter:
    """Fields are JSON fields (id, name, required, type). Each change writes a new metadata file.

    ``location`` is what the metadata says; the files lie below ``folder``.
    """

    folder: str
    fields: list
    spec: list = field(default_factory=list)
    version: int = 2
    properties: dict = field(default_factory=dict)
    location: str | None = None
    start_ms: int = 1_700_000_000_000

    def __post_init__(self):
        self.folder = str(self.folder)
        self.location = self.location or self.folder
        for name in ("metadata", "data"):
            os.makedirs(f"{self.folder}/{name}", exist_ok=True)
        self.schemas = [{"type": "struct", "schema-id": 0, "fields": self.fields}]
        self.specs = [{"spec-id": 0, "fields": self.spec}]
        self.snapshots, self.log, self.refs = [], [], {}
        self.sequence = self.metadata_version = self.next_row_id = 0
        self.current = None
        self.clock = self.start_ms
        self.live: list[WrittenFile] = []
        self.live_at: dict[int, list[WrittenFile]] = {}
        # Of each snapshot its manifests, as (record, files that live in it).
        self.manifests_at: dict[int, list] = {}
        self.write_metadata()

    # -------------------------------------------------------------- metadata

    @property
    def schema(self):
        return self.schemas[-1]

    def set_fields(self, fields):
        """A new current schema."""
        self.schemas.append(
            {"type": "struct", "schema-id": len(self.schemas), "fields": copy.deepcopy(fields)}
        )
        return self.write_metadata()

    def set_spec(self, fields):
        """A new default partition spec."""
        self.specs.append({"spec-id": len(self.specs), "fields": fields})
        return self.write_metadata()

    def rollback(self, snapshot_id):
        """Make an older snapshot the current one."""
        self.current = snapshot_id
        self.live = list(self.live_at[snapshot_id])
        self.log.append({"timestamp-ms": self.clock + 1000, "snapshot-id": snapshot_id})
        return self.write_metadata()

    def tag(self, name, snapshot_id=None, kind="tag"):
        self.refs[name] = {"snapshot-id": snapshot_id or self.current, "type": kind}
        return self.write_metadata()

    def write_metadata(self):
        """Write the next v<N>.metadata.json; returns its path."""
        self.metadata_version += 1
        self.clock += 1000
        partition_ids = [f["field-id"] for spec in self.specs for f in spec["fields"]]
        ids = [999, *partition_ids]
        metadata = {
            "format-version": self.version,
            "table-uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, self.folder)),
            "location": self.location,
            "last-updated-ms": self.clock,
            "last-column-id": max(_ids(s) for s in self.schemas),
            "schemas": self.schemas,
            "current-schema-id": self.schema["schema-id"],
            "partition-specs": self.specs,
            "default-spec-id": self.specs[-1]["spec-id"],
            "last-partition-id": max(ids),
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": self.properties,
            "current-snapshot-id": -1 if self.current is None else self.current,
            "snapshots": self.snapshots,
            "snapshot-log": self.log,
            "metadata-log": [],
            "refs": dict(self.refs),
        }
        if self.current is not None:
            metadata["refs"]["main"] = {"snapshot-id": self.current, "type": "branch"}
        if self.version == 1:
            metadata["schema"] = self.schema
            metadata["partition-spec"] = self.specs[-1]["fields"]
        else:
            metadata["last-sequence-number"] = self.sequence
        if self.version >= 3:
            metadata["next-row-id"] = self.next_row_id
        path = f"{self.folder}/metadata/v{self.metadata_version}.metadata.json"
        # A reader beside this one sees a file whole or not at all.
        hint = f"{self.folder}/metadata/version-hint.text"
        for place, text in ((path, json.dumps(metadata)), (hint, str(self.metadata_version))):
            with open(f"{place}.aside", "w") as out:
                out.write(text)
            os.replace(f"{place}.aside", place)
        self.metadata_path = path
        return path

    # -------------------------------------------------------------- files

    def _path(self, extension):
        name = f"data/{uuid.uuid4().hex[:12]}.{extension}"
        return f"{self.folder}/{name}", f"{self.location}/{name}"

    def data_file(
        self,
        rows,
        *,
        format="parquet",
        partition=(),
        spec_id=None,
        fields=None,
        ids=True,
        stats=True,
        path=None,
        **options,
    ):
        """Write a data file of rows (dicts, or an Arrow table that is written as it is)."""
        fields = self.schema["fields"] if fields is None else fields
        stored = [f for f in fields if f["type"] != "unknown"]
        if isinstance(rows, pa.Table):
            table = rows
        else:
            table = pa.Table.from_pylist(list(rows), schema=arrow_schema(stored, ids))
        opened, recorded = self._path(format) if path is None else (path, path)
        offsets = write_file(opened, table, stored, format, ids, **options)
        return self.existing_file(
            opened,
            recorded,
            table.num_rows,
            format=format,
            partition=partition,
            spec_id=spec_id,
            counts=metrics(stored, table) if stats else {},
            split_offsets=offsets,
        )

    def existing_file(
        self,
        opened,
        recorded,
        record_count,
        *,
        format="parquet",
        partition=(),
        spec_id=None,
        content=DATA,
        counts=None,
        **more,
    ):
        """Describe a file that is already there."""
        spec_id = self.specs[-1]["spec-id"] if spec_id is None else spec_id
        names = [f["name"] for f in self.specs[spec_id]["fields"]]
        record = {
            "content": content,
            "file_path": recorded,
            "file_format": format.upper(),
            "partition": dict(zip(names, partition, strict=True)),
            "record_count": record_count,
            "file_size_in_bytes": os.path.getsize(opened),
            "block_size_in_bytes": 67108864,
            **(counts or {}),
            **more,
        }
        return WrittenFile(record, content, spec_id)

    def position_deletes(
        self,
        positions,
        *,
        format="parquet",
        scoped=True,
        referenced=False,
        **place,
    ):
        """A position delete file of (data file, row position) pairs.

        ``scoped`` adds the bounds of file_path, by which a file for one data file is recognised;
        ``referenced`` names that one file.
        """
        pairs = sorted((_path_of(each), position) for each, position in positions)
        fields = [
            {"id": FILE_PATH, "name": "file_path", "required": True, "type": "string"},
            {"id": POS, "name": "pos", "required": True, "type": "long"},
        ]
        table = pa.Table.from_pylist(
            [{"file_path": path, "pos": position} for path, position in pairs],
            schema=arrow_schema(fields),
        )
        opened, recorded = self._path(format)
        write_file(opened, table, fields, format, True)
        counts = {}
        if scoped:
            counts = {
                "lower_bounds": {FILE_PATH: pairs[0][0].encode()},
                "upper_bounds": {FILE_PATH: pairs[-1][0].encode()},
            }
        if referenced:
            counts["referenced_data_file"] = pairs[0][0]
        return self.existing_file(
            opened,
            recorded,
            len(pairs),
            format=format,
            content=POSITION_DELETES,
            counts=counts,
            **place,
        )

    def equality_deletes(self, rows, equality_ids, *, fields=None, format="parquet", **place):
        """An equality delete file; rows hold the columns of ``equality_ids``."""
        fields = only_fields(fields or self.schema["fields"], equality_ids)
        if isinstance(rows, pa.Table):
            table = rows
        else:
            table = pa.Table.from_pylist(list(rows), schema=arrow_schema(fields))
        opened, recorded = self._path(format)
        write_file(opened, table, fields, format, True)
        return self.existing_file(
            opened,
            recorded,
            table.num_rows,
            format=format,
            content=EQUALITY_DELETES,
            counts=metrics(fields, table),
            equality_ids=list(equality_ids),
            **place,
        )

    def deletion_vectors(self, vectors):
        """Deletion vectors of (data file, positions) pairs in one Puffin file."""
        opened, recorded = self._path("puffin")
        places = write_puffin(opened, [(_path_of(each), rows) for each, rows in vectors])
        made = []
        for (each, _), (offset, length, count) in zip(vectors, places, strict=True):
            partition = list(each.record["partition"].values())
            made.append(
                self.existing_file(
                    opened,
                    recorded,
                    count,
                    format="puffin",
                    partition=partition,
                    spec_id=each.spec_id,
                    content=POSITION_DELETES,
                    referenced_data_file=_path_of(each),
                    content_offset=offset,
                    content_size_in_bytes=length,
                )
            )
        return made

    # -------------------------------------------------------------- commits

    def commit(self, added=(), removed=(), operation=None, *, branch=None, rewrite=True):
        """A snapshot that adds and removes files; returns its id.

        ``branch`` moves that ref instead of main. Manifests of the parent are merged and written
        again, or kept as they are where nothing in them was removed when ``rewrite`` is False.
        """
        added, removed = list(added), list(removed)
        self.sequence += 0 if self.version == 1 else 1
        snapshot_id = 1000 + len(self.live_at)
        self.clock += 1000
        for each in added:
            each.sequence_number = (
                self.sequence if each.sequence_number is None else each.sequence_number
            )
            each.snapshot_id = snapshot_id
        parent = self.current if branch is None else self.refs[branch]["snapshot-id"]
        before = self.live_at.get(parent, [])
        kept = [each for each in before if not any(each is gone for gone in removed)]
        first_row_id = self.next_row_id
        manifests = self._manifests(snapshot_id, parent, added, kept, removed, rewrite)
        self.manifests_at[snapshot_id] = manifests
        name = f"snap-{snapshot_id}.avro"
        write_manifest_list(
            f"{self.folder}/metadata/{name}",
            self.version,
            [record for record, _ in manifests],
            snapshot_id=snapshot_id,
            sequence_number=self.sequence,
        )
        has_deletes = any(each.content for each in added)
        default = "overwrite" if has_deletes or (removed and added) else "append"
        snapshot = {
            "snapshot-id": snapshot_id,
            "timestamp-ms": self.clock,
            "manifest-list": f"{self.location}/metadata/{name}",
            "summary": {"operation": operation or ("delete" if removed and not added else default)},
            "schema-id": self.schema["schema-id"],
        }
        if parent is not None:
            snapshot["parent-snapshot-id"] = parent
        if self.version > 1:
            snapshot["sequence-number"] = self.sequence
        if self.version >= 3:
            snapshot["first-row-id"] = first_row_id
            snapshot["added-rows"] = self.next_row_id - first_row_id
        self.snapshots.append(snapshot)
        self.live_at[snapshot_id] = kept + added
        if branch is None:
            self.log.append({"timestamp-ms": self.clock, "snapshot-id": snapshot_id})
            self.current = snapshot_id
            self.live = kept + added
        else:
            self.refs[branch] = {"snapshot-id": snapshot_id, "type": "branch"}
        self.write_metadata()
        return snapshot_id

    def append(self, *tables, **options):
        """Commit a data file of each of these rows; the files."""
        files = [self.data_file(each, **options) for each in tables]
        self.commit(files)
        return files

    def delete_keys(self, *keys, **options):
        """Commit equality deletes by the first column; their file."""
        first = self.fields[0]
        rows = [{first["name"]: each} for each in keys]
        file = self.equality_deletes(rows, [first["id"]], **options)
        self.commit([file])
        return file

    def _manifests(self, snapshot_id, parent, added, kept, removed, rewrite):
        """The manifests of a new snapshot: (record, live files) pairs."""
        made, groups = [], {}

        def put(status, each):
            groups.setdefault((each.spec_id, 0 if each.content == DATA else 1), []).append(
                (status, each)
            )

        for each in added:
            put(1, each)
        if rewrite:
            for each in kept:
                put(0, each)
            for each in removed:
                put(2, each)
        else:
            gone = {id(each) for each in removed}
            for record, files in self.manifests_at.get(parent, []):
                if any(id(each) in gone for each in files):
                    for each in files:
                        put(2 if id(each) in gone else 0, each)
                elif files:
                    made.append((self._carried(record, files), files))
        for number, ((spec_id, content), entries) in enumerate(sorted(groups.items())):
            record = self._manifest(snapshot_id, number, spec_id, content, entries)
            made.append((record, [each for status, each in entries if status != 2]))
        return made

    def _carried(self, record, files):
        """A manifest that is listed again; before version 3 its rows had no ids."""
        if self.version < 3 or record["content"] or record["first_row_id"] is not None:
            return record
        first = self.next_row_id
        for each in files:
            if each.first_row_id is None:
                each.first_row_id = self.next_row_id
                self.next_row_id += each.record["record_count"]
        return {**record, "first_row_id": first}

    def _manifest(self, snapshot_id, number, spec_id, content, entries):
        spec = self.specs[spec_id]
        partition_fields = self.partition_fields(spec_id)
        path = f"metadata/m{snapshot_id}-{number}.avro"
        first_row_id = None
        if self.version >= 3 and content == 0:
            first_row_id = self.next_row_id
            for status, each in entries:
                if status != 2 and each.first_row_id is None:
                    each.first_row_id = self.next_row_id
                    self.next_row_id += each.record["record_count"]
        write_manifest(
            f"{self.folder}/{path}",
            self.version,
            [self._entry(status, each, snapshot_id) for status, each in entries],
            schema=self.schema,
            spec=spec,
            partition_fields=partition_fields,
            content=content,
        )
        counts = {status: [e for s, e in entries if s == status] for status in (0, 1, 2)}
        rows = {s: sum(e.record["record_count"] for e in files) for s, files in counts.items()}
        live = [e.sequence_number for s, e in entries if s != 2]
        return {
            "manifest_path": f"{self.location}/{path}",
            "manifest_length": os.path.getsize(f"{self.folder}/{path}"),
            "partition_spec_id": spec_id,
            "content": content,
            "sequence_number": self.sequence,
            "min_sequence_number": min(live, default=self.sequence),
            "added_snapshot_id": snapshot_id,
            "added_files_count": len(counts[1]),
            "existing_files_count": len(counts[0]),
            "deleted_files_count": len(counts[2]),
            "added_rows_count": rows[1],
            "existing_rows_count": rows[0],
            "deleted_rows_count": rows[2],
            "partitions": self._summaries(partition_fields, entries),
            "first_row_id": first_row_id,
        }

    def _entry(self, status, each, snapshot_id):
        inherits = status == 1 and each.sequence_number == self.sequence
        record = dict(each.record)
        for name in (
            "column_sizes",
            "value_counts",
            "null_value_counts",
            "nan_value_counts",
            "lower_bounds",
            "upper_bounds",
        ):
            if record.get(name) is not None:
                record[name] = [{"key": k, "value": v} for k, v in sorted(record[name].items())]
        if status != 1:
            record["first_row_id"] = each.first_row_id
        return {
            "status": status,
            "snapshot_id": snapshot_id
            if status == 2
            else (None if inherits and self.version > 1 else each.snapshot_id),
            "sequence_number": None if inherits else each.sequence_number,
            "file_sequence_number": None if inherits else each.sequence_number,
            "data_file": record,
        }

    def partition_fields(self, spec_id):
        """The partition struct of a spec as JSON fields."""
        types = {f["id"]: f["type"] for schema in self.schemas for f in _leaves(schema["fields"])}
        made = []
        for each in self.specs[spec_id]["fields"]:
            transform = each["transform"].split("[")[0]
            if transform == "bucket":
                result = "int"
            else:
                result = RESULT_TYPES.get(transform, types[each["source-id"]])
            made.append({"id": each["field-id"], "name": each["name"], "type": result})
        return made

    def _summaries(self, partition_fields, entries):
        summaries = []
        for each in partition_fields:
            values = [e.record["partition"][each["name"]] for _, e in entries]
            present = sorted((v for v in values if v is not None and v == v), key=_total_order)
            bounds = {}
            if present:
                bounds = {
                    "lower_bound": single_value(each["type"], present[0]),
                    "upper_bound": single_value(each["type"], present[-1]),
                }
            summaries.append(
                {
                    "contains_null": any(v is None for v in values),
                    "contains_nan": any(v is not None and v != v for v in values),
                    **bounds,
                }
            )
        return summaries


def write_file(path, table, fields, format, ids, **options):
    """Write an Arrow table in a format; returns the split offsets of Parquet."""
    match format:
        case "parquet":
            pq.write_table(table, path, **options)
            footer = pq.read_metadata(path)
            return [
                min(
                    footer.row_group(i).column(0).dictionary_page_offset
                    or footer.row_group(i).column(0).data_page_offset,
                    footer.row_group(i).column(0).data_page_offset,
                )
                for i in range(footer.num_row_groups)
                if footer.row_group(i).num_columns
            ]
        case "orc":
            pa.orc.write_table(_as_orc(table, fields, ids), path, **options)
        case "avro":
            schema = avro_record(fields, "table")
            with open(path, "wb") as out:
                fastavro.writer(out, schema, _avro_rows(table, fields), codec="deflate")
    return None


def _avro_rows(table, fields):
    def value(type_, item):
        if item is None:
            return item
        if isinstance(type_, str):
            return _avro_number(type_, item)
        match type_["type"]:
            case "struct":
                return {f["name"]: value(f["type"], item.get(f["name"])) for f in type_["fields"]}
            case "list":
                return [value(type_["element"], each) for each in item]
            case "map":
                pairs = [(value(type_["key"], k), value(type_["value"], v)) for k, v in item]
                if type_["key"] == "string":
                    return dict(pairs)
                return [{"key": k, "value": v} for k, v in pairs]
        raise AssertionError(type_)

    for row in table.to_pylist():
        yield {f["name"]: value(f["type"], row[f["name"]]) for f in fields}


def _avro_number(type_, item):
    # Integers, since fastavro reads a datetime without zone as local time.
    if type_ in ("timestamp", "timestamptz"):
        return (item.replace(tzinfo=None) - _EPOCH) // _MICROSECOND
    if type_ in ("timestamp_ns", "timestamptz_ns"):
        return item.value
    return item


def _as_orc(table, fields, ids):
    """The table with ORC's attributes instead of Parquet's, in types that ORC can store."""

    def convert(field, arrow):
        kind, attributes = field["type"], {"iceberg.id": str(field["id"])} if ids else {}
        if kind == "time":
            arrow, attributes["iceberg.long-type"] = pa.int64(), "TIME"
        elif kind == "uuid":
            arrow, attributes["iceberg.binary-type"] = pa.binary(), "UUID"
        elif fixed_of(kind):
            arrow, attributes["iceberg.binary-type"] = pa.binary(), "FIXED"
            attributes["iceberg.length"] = str(fixed_of(kind))
        elif isinstance(kind, dict):
            arrow = nested(kind, arrow)
        return pa.field(field["name"], arrow, metadata=attributes)

    def child(name, field_id, kind):
        return convert({"name": name, "id": field_id, "type": kind}, arrow_type(kind, ids=False))

    def nested(kind, arrow):
        match kind["type"]:
            case "struct":
                return pa.struct(
                    [convert(f, arrow.field(i).type) for i, f in enumerate(kind["fields"])]
                )
            case "list":
                return pa.list_(child("element", kind["element-id"], kind["element"]))
            case "map":
                return pa.map_(
                    child("key", kind["key-id"], kind["key"]).with_nullable(False),
                    child("value", kind["value-id"], kind["value"]),
                )
        raise AssertionError(kind)

    known = {f["name"]: f for f in fields}
    wanted = pa.schema([convert(known[column.name], column.type) for column in table.schema])
    arrays = [
        pa.array([_orc_value(known[name]["type"], v) for v in table.column(name).to_pylist()], to)
        for name, to in zip(wanted.names, wanted.types, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=wanted)


def _orc_value(type_, item):
    if item is None:
        return None
    if type_ == "time":
        return ((item.hour * 60 + item.minute) * 60 + item.second) * 1_000_000 + item.microsecond
    if isinstance(type_, str):
        return item
    match type_["type"]:
        case "struct":
            return {f["name"]: _orc_value(f["type"], item.get(f["name"])) for f in type_["fields"]}
        case "list":
            return [_orc_value(type_["element"], each) for each in item]
        case _:
            return [(_orc_value(type_["key"], k), _orc_value(type_["value"], v)) for k, v in item]


_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def _total_order(value):
    """A sort key under which -0.0 is below 0.0."""
    return (value, math.copysign(1, value)) if isinstance(value, float) else value


def only_fields(fields, wanted):
    """The fields with these ids, children inside the structs they are in."""
    kept = []
    for each in fields:
        if each["id"] in wanted:
            kept.append(each)
        elif isinstance(each["type"], dict) and each["type"]["type"] == "struct":
            children = only_fields(each["type"]["fields"], wanted)
            if children:
                kept.append({**each, "type": {**each["type"], "fields": children}})
    return kept


def _path_of(each):
    return each if isinstance(each, str) else each.record["file_path"]


def _leaves(fields):
    for each in fields:
        yield each
        if isinstance(each["type"], dict) and each["type"]["type"] == "struct":
            yield from _leaves(each["type"]["fields"])


def _ids(schema):
    def visit(type_):
        if isinstance(type_, str):
            return 0
        match type_["type"]:
            case "struct":
                return max([0, *(max(f["id"], visit(f["type"])) for f in type_["fields"])])
            case "list":
                return max(type_["element-id"], visit(type_["element"]))
            case _:
                return max(
                    type_["value-id"], type_["key-id"], visit(type_["key"]), visit(type_["value"])
                )

    return visit(schema)
