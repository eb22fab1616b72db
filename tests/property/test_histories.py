"""Random table histories: what icesql reads equals a plain-Python model, at every snapshot and ref.

Twenty-five histories by default; ICESQL_HISTORIES=500 runs the whole series, of which they are part.
"""

from __future__ import annotations

import os
import random

import pytest

import icesql
from tests.writer.history import History
from tests.writer.model import DataFile, seen_rows, shown_rows

SERIES = 500
WANTED = int(os.environ.get("ICESQL_HISTORIES", "25"))
# A twentieth of the series, the same one everywhere, which holds every kind of change.
SEEDS = range(10, SERIES, max(1, SERIES // WANTED)) if WANTED < SERIES else range(WANTED)


def readings(history):
    """(clause, snapshot id, JSON fields): each snapshot, tag, branch and the table as it is."""
    writer = history.writer
    for snapshot in writer.snapshots:
        snapshot_id = snapshot["snapshot-id"]
        yield f" FOR VERSION AS OF {snapshot_id}", snapshot_id, history.fields_of(snapshot_id)
    for name, ref in writer.refs.items():
        snapshot_id = ref["snapshot-id"]
        # A branch is read by the table's schema, a tag by that of its snapshot.
        own = history.fields_of(snapshot_id) if ref["type"] == "tag" else writer.schema["fields"]
        yield f" FOR VERSION AS OF '{name}'", snapshot_id, own
    yield "", writer.current, writer.schema["fields"]


def problems(history, connection, reader):
    """Where the answers of a reader differ from the model."""
    connection.execute(f"SET local_reader = '{reader}'")
    chance = random.Random(len(history.log))
    for clause, snapshot_id, fields in readings(history):
        rows = history.rows(snapshot_id, fields)
        files = history.files_at(snapshot_id)
        some = chance.sample(fields, chance.randint(1, len(fields)))
        names = ", ".join('"{}"'.format(each["name"]) for each in some)
        pairs = sorted(
            repr([f"str {data.path!r}", f"int {position}"])
            for data, position, _ in history.model.live(files)
        )
        others = [
            (f"SELECT {names} FROM t", shown_rows(some, rows)),
            ("SELECT _file, _pos FROM t", pairs),
            ("SELECT count(*) FROM t", [repr([f"int {len(rows)}"])]),
        ]
        whole = ("SELECT * FROM t", shown_rows(fields, rows))
        for sql, expected in (whole, chance.choice(others)):
            found = seen_rows(connection.execute(sql + clause).fetchall())
            if found != expected:
                extra = [row for row in found if row not in expected]
                lost = [row for row in expected if row not in found]
                yield f"{sql}{clause} ({reader}): lost {lost[:3]}, invented {extra[:3]}"


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_those_of_the_model_at_every_snapshot(tmp_path, seed):
    history = History(seed, tmp_path)
    with icesql.connect() as connection:
        connection.register_table("t", history.metadata_path)
        found = [
            each for reader in ("auto", "arrow") for each in problems(history, connection, reader)
        ]
    assert found == [], "\n".join([*found, *map(str, history.log)])


def test_histories_hold_every_kind_of_change(tmp_path):
    steps, kinds, formats, versions, transforms = set(), set(), set(), set(), set()
    for seed in SEEDS[:50]:
        history = History(seed, tmp_path / str(seed))
        steps |= {name for name, _ in history.log}
        versions.add(history.version)
        for each in history.files.values():
            kinds.add("data" if isinstance(each, DataFile) else each.kind)
            formats.add((each.written.content, each.written.record["file_format"]))
        for spec in history.writer.specs:
            transforms |= {each["transform"].partition("[")[0] for each in spec["fields"]}
    assert {"_rollback", "_compact", "_drop_files", "_upgrade", "_add_ref"} <= steps
    assert kinds == {"data", "position", "vector", "equality"}
    assert {(c, f) for c in (0, 1, 2) for f in ("PARQUET", "AVRO", "ORC")} | {
        (1, "PUFFIN")
    } == formats
    assert versions == {1, 2, 3}
    assert transforms == {
        "identity", "bucket", "truncate", "year", "month", "day", "hour", "void",
    }  # fmt: skip
