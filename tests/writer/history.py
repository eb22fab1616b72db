"""Random table histories from a seed: the table on disk and the model of its rows, side by side."""

from __future__ import annotations

import copy
import random

from tests.writer.columns import Columns, primitive_paths
from tests.writer.model import DataFile, DeleteFile, Model, partition_key, path_to
from tests.writer.partition_values import apply
from tests.writer.table import TableWriter, only_fields
from tests.writer.values import random_value

FORMATS = ("parquet", "parquet", "parquet", "avro", "orc")


class History:
    """A table of about ``steps`` changes below ``folder``; one seed gives one table.

    ``snapshots`` names the rows' columns and value trees of each snapshot id.
    """

    def __init__(self, seed, folder, steps=10):
        self.chance = random.Random(seed)
        self.version = self.chance.choice((1, 2, 2, 3, 3, 3))
        self.columns = Columns(self.chance, self.version)
        fields = [self.columns.field(f"c{n}", first=True) for n in range(self.chance.randint(2, 5))]
        self.writer = TableWriter(folder, copy.deepcopy(fields), version=self.version)
        self._next_partition_id = 1000
        if self.chance.random() < 0.6:
            self.writer.specs[0]["fields"] = self._spec_fields([])
        self.model = Model(self.writer.schemas, self.writer.specs, self.columns.defaults)
        self.files = {}
        self._branch = None
        self.log = []
        self._append()
        for _ in range(steps):
            self._step()
        self.metadata_path = self.writer.write_metadata()

    # ------------------------------------------------------------------ what is right

    def fields_of(self, snapshot_id):
        """The JSON fields of a snapshot's own schema."""
        found = next(s for s in self.writer.snapshots if s["snapshot-id"] == snapshot_id)
        return self.writer.schemas[found["schema-id"]]["fields"]

    def rows(self, snapshot_id, fields):
        """The rows of a snapshot as value trees of JSON fields."""
        return self.model.rows(self.files_at(snapshot_id), fields)

    def files_at(self, snapshot_id):
        live = self.writer.live_at.get(snapshot_id, [])
        return [self.files[id(each)] for each in live]

    # ------------------------------------------------------------------ steps

    def _step(self):
        steps = {
            self._append: 5,
            self._position_deletes: 3,
            self._equality_deletes: 4,
            self._evolve_schema: 5,
            self._evolve_spec: 2,
            self._compact: 1,
            self._drop_files: 1,
            self._upgrade: 1,
            self._add_ref: 1,
            self._rollback: 0.2,
        }
        branches = [name for name, ref in self.writer.refs.items() if ref["type"] == "branch"]
        self._branch = (
            self.chance.choice(branches) if branches and self.chance.random() < 0.2 else None
        )
        step = self.chance.choices(list(steps), list(steps.values()))[0]
        self.log.append((step.__name__, self._branch))
        step()

    @property
    def _fields(self):
        return self.writer.schema["fields"]

    @property
    def _head(self):
        if self._branch is not None:
            return self.writer.refs[self._branch]["snapshot-id"]
        return self.writer.current

    def _commit(self, added=(), removed=()):
        for each in added:
            self.files[id(each.written)] = each
        self.writer.commit(
            [each.written for each in added],
            [each.written for each in removed],
            branch=self._branch,
            rewrite=self.chance.random() < 0.3,
        )

    def _append(self):
        rows = [
            {each["id"]: random_value(self.chance, each) for each in self._fields}
            for _ in range(self.chance.randint(1, 6))
        ]
        spec_id = len(self.writer.specs) - 1
        if self.chance.random() < 0.1:
            spec_id = self._usable_spec(self.chance.randrange(len(self.writer.specs)))
        self._commit(self._data_files(rows, spec_id))

    def _usable_spec(self, spec_id):
        """``spec_id`` if its sources are still columns, else the newest spec's."""
        sources = [
            each["source-id"]
            for each in self.writer.specs[spec_id]["fields"]
            if each["transform"] != "void"
        ]
        if all(path_to(self._fields, each) for each in sources):
            return spec_id
        return len(self.writer.specs) - 1

    def _data_files(self, rows, spec_id):
        """Files of the rows, one or two for each partition."""
        groups = {}
        for row in rows:
            values = self._partition(spec_id, row)
            key = repr(values), self.chance.randrange(3) == 0
            groups.setdefault(key, (values, []))[1].append(row)
        return [self._data_file(group, spec_id, values) for values, group in groups.values()]

    def _partition(self, spec_id, row):
        found = []
        for each in self.writer.specs[spec_id]["fields"]:
            path = path_to(self._fields, each["source-id"])
            value = row if path else None
            for step in path or ():
                value = None if value is None else value[step["id"]]
            found.append(apply(each["transform"], path[-1]["type"] if path else None, value))
        return tuple(found)

    def _data_file(self, rows, spec_id, values):
        chance, fields, constants = self.chance, copy.deepcopy(self._fields), {}
        for each in self.writer.specs[spec_id]["fields"]:
            source = each["source-id"]
            column = next((f for f in fields if f["id"] == source), None)
            identity = each["transform"] == "identity" and column and len(fields) > 1
            if identity and chance.random() < 0.1:
                # A file without its partition column, as Hive lays it out.
                fields.remove(column)
                constants[source] = column["type"], rows[0][source]
        if not [each for each in fields if each["type"] != "unknown"]:
            fields, constants = copy.deepcopy(self._fields), {}
        if chance.random() < 0.2:
            chance.shuffle(fields)
        stored = [each for each in fields if each["type"] != "unknown"]
        format = self._format(stored, rows)
        options = {}
        if format == "parquet":
            options = {
                "row_group_size": chance.choice((2, 100)),
                "use_dictionary": chance.random() < 0.7,
                "compression": chance.choice(("snappy", "zstd", "none", "gzip")),
                "data_page_version": chance.choice(("1.0", "2.0")),
                "store_decimal_as_integer": chance.random() < 0.3,
            }
        if not stored:
            # Nothing to store but the number of rows, which Parquet alone keeps.
            format, options = "parquet", {}
        written = self.writer.data_file(
            [_named(stored, row) for row in rows],
            format=format,
            partition=values,
            spec_id=spec_id,
            fields=stored,
            stats=chance.random() < 0.9,
            **options,
        )
        return DataFile(written, stored, rows, constants)

    def _format(self, fields, rows):
        """A file format; not ORC for what Arrow writes wrongly or cannot hold there.

        That is a NULL struct inside a struct, and timestamps of other ages.
        """
        format = self.chance.choice(FORMATS)
        far = "datetime.datetime(1, " in repr(rows) or "datetime.datetime(9999, " in repr(rows)
        deep = any(path[1:] for path in _struct_paths(fields))
        return "parquet" if format == "orc" and (far or deep) else format

    # ------------------------------------------------------------------ deletes

    def _live(self):
        return list(self.model.live(self.files_at(self._head)))

    def _position_deletes(self):
        rows = self._live()
        if self.version == 1 or not rows:
            return self._append()
        chosen = self.chance.sample(rows, min(len(rows), self.chance.randint(1, 4)))
        by_file = {}
        for data, position, _ in chosen:
            by_file.setdefault(data, set()).add(position)
        if self.version >= 3:
            self._vectors(by_file)
        else:
            self._commit(self._position_delete_files(by_file))
        return None

    def _position_delete_files(self, by_file):
        groups = {}
        scoped = self.chance.random() < 0.5
        for data, positions in by_file.items():
            key = data.written.spec_id, partition_key(data.written), data if scoped else None
            groups.setdefault(key, []).append((data, positions))
        made = []
        for (spec_id, _, _), group in groups.items():
            pairs = {(data.path, each) for data, positions in group for each in positions}
            paths = {path for path, _ in pairs}
            written = self.writer.position_deletes(
                pairs,
                format=self.chance.choice(FORMATS),
                partition=tuple(group[0][0].written.record["partition"].values()),
                spec_id=spec_id,
                scoped=self.chance.random() < 0.7,
                referenced=len(paths) == 1 and self.chance.random() < 0.5,
            )
            made.append(DeleteFile(written, "position", pairs))
        return made

    def _vectors(self, by_file):
        """Deletion vectors that take in what they replace."""
        files = self.files_at(self._head)
        deletes = [each for each in files if isinstance(each, DeleteFile)]
        merges, removed, wanted = self.chance.random() < 0.9, [], []
        for data, positions in by_file.items():
            number = data.written.sequence_number
            positions = set(positions)
            for each in deletes:
                if each.kind == "vector" and each.path == data.path:
                    positions |= {position for _, position in each.positions}
                    removed.append(each)
                elif each.kind == "position" and merges:
                    if each.written.sequence_number >= number:
                        positions |= {p for path, p in each.positions if path == data.path}
                    if {path for path, _ in each.positions} == {data.path}:
                        removed.append(each)
            wanted.append((data, positions))
        made = []
        for written, (data, positions) in zip(
            self.writer.deletion_vectors([(data.written, rows) for data, rows in wanted]),
            wanted,
            strict=True,
        ):
            pairs = {(data.path, each) for each in positions}
            made.append(DeleteFile(written, "vector", pairs, data.path))
        self._commit(made, removed)

    def _equality_deletes(self):
        columns = [
            path[-1] for path in primitive_paths(self._fields) if path[-1]["type"] != "unknown"
        ]
        if self.version == 1 or not columns:
            return self._append()
        made = []
        for _ in range(self.chance.choice((1, 1, 2))):
            chosen = self.chance.sample(
                columns, min(len(columns), self.chance.choice((1, 1, 2, 3)))
            )
            made += self._equality_delete_file(chosen)
        if self.chance.random() < 0.3:
            # A row of the same commit stays, even one with a deleted key.
            rows = [
                {each["id"]: random_value(self.chance, each) for each in self._fields}
                for _ in range(2)
            ]
            made += self._data_files(rows, len(self.writer.specs) - 1)
        self._commit(made)
        return None

    def _equality_delete_file(self, columns):
        ids = tuple(each["id"] for each in columns)
        live = self._live()
        spec_id, values = len(self.writer.specs) - 1, None
        keys = []
        if live and self.chance.random() < 0.9:
            for data, _, row in self.chance.sample(live, min(len(live), 3)):
                if values is None and self.chance.random() < 0.8:
                    spec_id = data.written.spec_id
                    values = tuple(data.written.record["partition"].values())
                keys.append(tuple(self.model.value(each, data, row) for each in ids))
        keys.append(tuple(random_value(self.chance, each) for each in columns))
        if values is None:
            spec_id = self._global_spec(spec_id)
            values = (None,) * len(self.writer.specs[spec_id]["fields"])
        rows = [
            _named(
                only_fields(self._fields, ids),
                _nested(self._fields, dict(zip(ids, key, strict=True))),
            )
            for key in keys
        ]
        written = self.writer.equality_deletes(
            rows,
            list(ids),
            format=self._format(only_fields(self._fields, ids), keys),
            partition=values,
            spec_id=spec_id,
        )
        types = tuple(each["type"] for each in columns)
        # A key under a NULL struct and one under a struct of NULLs are written alike.
        return [DeleteFile(written, "equality", ids=ids, types=types, keys=keys)]

    def _global_spec(self, otherwise):
        for each in self.writer.specs:
            if all(field["transform"] == "void" for field in each["fields"]):
                return each["spec-id"]
        return otherwise

    # ------------------------------------------------------------------ rewriting and refs

    def _compact(self):
        files = [f for f in self.files_at(self._head) if isinstance(f, DataFile)]
        if len(files) < 2:
            return self._append()
        chosen = self.chance.sample(files, self.chance.randint(2, min(4, len(files))))
        rows = [
            {
                each["id"]: self.model.project(each, data.fields, row, data.constants)
                for each in self._fields
            }
            for data, _, row in self._live()
            if data in chosen
        ]
        rows = [_with_required(self.chance, self._fields, row) for row in rows]
        made = self._data_files(rows, len(self.writer.specs) - 1)
        if self.version > 1 and self.chance.random() < 0.5:
            for each in made:
                each.written.sequence_number = self.writer.sequence
        self._commit(made, chosen)
        return None

    def _drop_files(self):
        files = self.files_at(self._head)
        if not files:
            return self._append()
        return self._commit(
            (), self.chance.sample(files, self.chance.randint(1, 2) % (len(files) + 1))
        )

    def _upgrade(self):
        if self.version == 3:
            return self._append()
        self.version += 1
        self.writer.version = self.columns.version = self.version
        return self.writer.write_metadata()

    def _add_ref(self):
        snapshot = self.chance.choice(self.writer.snapshots)["snapshot-id"]
        kind = self.chance.choice(("tag", "branch"))
        self.writer.tag(f"{kind}_{len(self.writer.refs)}", snapshot, kind)

    def _rollback(self):
        snapshot = self.chance.choice(self.writer.log)["snapshot-id"]
        self.writer.rollback(snapshot)

    # ------------------------------------------------------------------ evolution of the spec

    def _evolve_spec(self):
        current = copy.deepcopy(self.writer.specs[-1]["fields"])
        kind = self.chance.choice(("add", "remove", "clear", "replace"))
        if kind in ("remove", "replace") and current:
            self._remove_partition(current, self.chance.choice(current))
        if kind == "clear":
            for each in list(current):
                self._remove_partition(current, each)
        if kind in ("add", "replace") or current == self.writer.specs[-1]["fields"]:
            current = self._spec_fields(current)
        if current != self.writer.specs[-1]["fields"]:
            self.writer.set_spec(current)

    def _remove_partition(self, fields, field):
        if self.version == 1:
            field["transform"] = "void"
        else:
            fields.remove(field)

    def _spec_fields(self, present):
        taken = {(each["source-id"], each["transform"]) for each in present}
        for _ in range(self.chance.choice((1, 1, 2))):
            drawn = self.columns.transform(self._fields if hasattr(self, "writer") else [])
            if drawn is None:
                break
            source, transform = drawn[0][-1]["id"], drawn[1]
            if (source, transform) in taken or (transform == "void" and self.version > 1):
                continue
            taken.add((source, transform))
            field_id = self._next_partition_id
            self._next_partition_id += 1
            made = {"source-id": source, "field-id": field_id, "name": f"p{field_id}"}
            present = [*present, {**made, "transform": transform}]
        return present

    def _evolve_schema(self):
        fields = copy.deepcopy(self._fields)
        current = self.writer.specs[-1]["fields"]
        for _ in range(self.chance.choice((1, 1, 2, 3))):
            self.columns.change(
                fields,
                kept={each["source-id"] for each in current if each["transform"] != "void"},
                sources={f["source-id"] for spec in self.writer.specs for f in spec["fields"]},
            )
        self.writer.set_fields(fields)


def _struct_paths(fields):
    """The paths to structs that are in no list or map."""
    for each in fields:
        if isinstance(each["type"], dict) and each["type"]["type"] == "struct":
            yield [each]
            for path in _struct_paths(each["type"]["fields"]):
                yield [each, *path]


def _nested(fields, values):
    """The value tree that holds ``values`` (by id) inside the structs of ``fields``."""
    return {
        each["id"]: values[each["id"]]
        if each["id"] in values
        else _nested(each["type"]["fields"], values)
        for each in only_fields(fields, set(values))
    }


def _with_required(chance, fields, row):
    """A rewritten row: a required column added later has its default, never NULL."""
    for each in fields:
        assert not each.get("required") or row[each["id"]] is not None or each["type"] == "unknown"
    return row


def _named(fields, tree):
    """A value tree as Arrow takes it: structs as dicts by name."""

    def value(type_, item):
        if item is None or isinstance(type_, str):
            return item
        match type_["type"]:
            case "struct":
                return _named(type_["fields"], item)
            case "list":
                return [value(type_["element"], each) for each in item]
            case _:
                return [(value(type_["key"], k), value(type_["value"], v)) for k, v in item]

    return {
        each["name"]: value(each["type"], tree[each["id"]])
        for each in fields
        if each["type"] != "unknown"
    }
