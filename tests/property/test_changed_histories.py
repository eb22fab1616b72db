"""Random table histories that icesql goes on with: what is left equals a model in plain Python.

The tables are those of ``test_histories``: three file formats, every kind of delete, columns and
partitions that have changed. DELETE, UPDATE, INSERT and maintenance change them; the model, which
imports nothing of icesql, does the same to its value trees. Six histories by default;
ICESQL_CHANGED_HISTORIES=200 runs more.
"""

from __future__ import annotations

import copy
import math
import os
import random

import pytest

import icesql
from tests.writer.history import History
from tests.writer.model import seen_rows, shown_rows
from tests.writer.values import pool

SEEDS = range(int(os.environ.get("ICESQL_CHANGED_HISTORIES", "6")))
LENGTH = 8
MAINTENANCE = [
    "CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))",
    "CALL system.rewrite_data_files('s.t', options => map('delete-file-threshold', '1'))",
    "CALL system.rewrite_manifests('s.t')",
    "CALL system.rewrite_position_delete_files('s.t', options => map('rewrite-all', 'true'))",
    "CALL system.expire_snapshots('s.t', older_than => now(), retain_last => 1)",
    "CALL system.remove_orphan_files('s.t')",
]

REFUSED = (
    "store in different ways",  # partition values of type fixed
    "new deletes are vectors",  # position delete files of version 2 in a table of version 3
)


def equal(one, other):
    """SQL's ``=`` of two values that are not NULL: NaN is NaN, and -0.0 is 0.0."""
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    return one == other


class Changed:
    """A history's table, its rows now, and a connection that changes it."""

    def __init__(self, connection, seed, folder):
        self.chance = random.Random(f"changed {seed}")
        self.con = connection
        history = History(seed, folder)
        self.version = history.version
        self.fields = copy.deepcopy(history.writer.schema["fields"])
        self.rows = (
            [] if history.writer.current is None
            else history.rows(history.writer.current, self.fields)
        )  # fmt: skip
        connection.execute("CREATE SCHEMA IF NOT EXISTS s")
        connection.execute(f"CALL system.register_table('s.t', '{history.metadata_path}')")
        self.log = [*map(str, history.log)]

    def run(self, sql, parameters=()):
        self.log.append(f"{sql} {parameters}")
        self.con.execute(sql, parameters)

    def step(self):
        """One statement, and the same to the rows."""
        steps = [self.delete, self.delete, self.update, self.update, self.insert, self.maintain]
        if self.version > 1:
            steps.append(self.set_modes)
        try:
            self.chance.choice(steps)()
        except icesql.NotSupportedError as error:
            # Nothing has changed then, either.
            if not any(each in str(error) for each in REFUSED):
                raise

    # ------------------------------------------------------------------ statements

    def condition(self):
        """SQL, its parameters, and whether it is true for a row."""
        plain = [each for each in self.fields if self.compared(each)]
        field = self.chance.choice(plain or self.fields)
        name, key = '"{}"'.format(field["name"]), field["id"]
        if not plain or self.chance.random() < 0.2:
            wanted = self.chance.choice(["IS NULL", "IS NOT NULL"])
            return f"{name} {wanted}", [], lambda row: (row[key] is None) == (wanted == "IS NULL")
        known = [row[key] for row in self.rows if row[key] is not None]
        values = [self.chance.choice(known or pool(field["type"])) for _ in range(2)]
        if self.chance.random() < 0.3:
            return (
                f"NOT ({name} = ?)",
                values[:1],
                lambda row: row[key] is not None and not equal(row[key], values[0]),
            )
        return (
            f"({name} = ? OR {name} = ?)",
            values,
            lambda row: row[key] is not None and any(equal(row[key], each) for each in values),
        )

    def compared(self, field):
        """Whether values of a column are parameters as the model has them."""
        other = ("uuid", "unknown", "time", "binary")
        return isinstance(field["type"], str) and not field["type"].endswith("_ns") and not (
            field["type"].startswith("fixed") or field["type"] in other
        )  # fmt: skip

    def delete(self):
        text, values, true = self.condition()
        self.run(f"DELETE FROM s.t WHERE {text}", values)
        self.rows = [row for row in self.rows if not true(row)]

    def update(self):
        text, values, true = self.condition()
        field = self.chance.choice(self.fields)
        name, key, given = '"{}"'.format(field["name"]), field["id"], []
        same = [each for each in self.fields if each["type"] == field["type"]]
        free = not field.get("required")
        if self.compared(field) and self.chance.random() < 0.5:
            given = [self.chance.choice(pool(field["type"]))]
            change, value = "?", lambda _: given[0]
        elif free and self.chance.random() < 0.5:
            change, value = "NULL", lambda _: None
        else:
            same = [each for each in same if free or each.get("required")]
            other = self.chance.choice(same)
            change, value = '"{}"'.format(other["name"]), lambda row: row[other["id"]]
            if isinstance(field["type"], dict) and other is not field:
                return  # other ids below
        self.run(f"UPDATE s.t SET {name} = {change} WHERE {text}", [*given, *values])
        self.rows = [{**row, key: value(row)} if true(row) else row for row in self.rows]

    def insert(self):
        text, values, true = self.condition()
        names = ", ".join('"{}"'.format(each["name"]) for each in self.fields)
        self.run(f"INSERT INTO s.t SELECT {names} FROM s.t WHERE {text}", values)
        self.rows += [row for row in self.rows if true(row)]

    def maintain(self):
        self.run(self.chance.choice(MAINTENANCE))

    def set_modes(self):
        kind = self.chance.choice(["delete", "update"])
        mode = self.chance.choice(["copy-on-write", "merge-on-read"])
        self.run(f"ALTER TABLE s.t SET TBLPROPERTIES ('write.{kind}.mode' = '{mode}')")

    # ------------------------------------------------------------------ what is right

    def problem(self):
        expected = shown_rows(self.fields, self.rows)
        for reader in ("auto", "arrow"):
            self.con.execute(f"SET local_reader = '{reader}'")
            found = seen_rows(self.con.execute("SELECT * FROM s.t").fetchall())
            if found != expected:
                lost = [row for row in expected if row not in found]
                extra = [row for row in found if row not in expected]
                return f"{len(found)} rows of {len(expected)} ({reader}): {lost[:2]}, {extra[:2]}"
        return None

    def row_ids(self):
        """Row ids by what is in the row; unique where there are any."""
        if self.version < 3:
            return set()
        found = [row[0] for row in self.con.execute("SELECT _row_id FROM s.t").fetchall()]
        known = [each for each in found if each is not None]
        assert len(known) == len(set(known)), self.log
        return set(known)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_icesql_leaves_is_what_the_model_leaves(tmp_path, seed):
    (tmp_path / "wh").mkdir()
    with icesql.connect(
        "c",
        uri=f"sqlite:///{tmp_path}/c.db",
        warehouse=tmp_path / "wh",
        properties={"init_catalog_tables": "true"},
    ) as connection:
        table = Changed(connection, seed, tmp_path / "table")
        assert table.problem() is None, table.log
        for _ in range(LENGTH):
            before = table.row_ids()
            table.step()
            assert table.problem() is None, "\n".join([str(table.problem()), *table.log])
            after = table.row_ids()
            inserts = table.log[-1].startswith("INSERT")
            assert inserts or not before or after <= before, table.log
