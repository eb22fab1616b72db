"""CHANGES of random histories: what commits did to rows equals the difference of the model's rows.

Twelve histories by default; ICESQL_HISTORIES=300 runs more of the series.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from itertools import pairwise

import pytest

import icesql
from tests.writer.history import History
from tests.writer.model import seen_rows, shown_rows

WANTED = int(os.environ.get("ICESQL_HISTORIES", "12"))
SEEDS = range(1000, 1000 + WANTED)


def lines(history):
    """Each way from a snapshot to one that came of it, as lists of ids, oldest first."""
    parents = {s["snapshot-id"]: s.get("parent-snapshot-id") for s in history.writer.snapshots}
    for last in parents:
        line = [last]
        while (parent := parents[line[0]]) is not None:
            line.insert(0, parent)
            yield list(line)


def difference(before, after):
    """What is deleted and what is inserted, with their numbers."""
    old, new = Counter(before), Counter(after)
    return old - new, new - old


def told(connection, sql):
    """Deleted and inserted rows as the model spells them."""
    deleted, inserted = Counter(), Counter()
    for *row, kind in connection.execute(sql).fetchall():
        into = {"delete": deleted, "insert": inserted}[kind]
        into.update(seen_rows([tuple(row)]))
    return deleted, inserted


def rows_at(history, snapshot_id, fields):
    return shown_rows(fields, history.rows(snapshot_id, fields))


@pytest.mark.parametrize("seed", SEEDS)
def test_changes_are_the_difference_of_the_models_rows(tmp_path, seed):
    history = History(seed, tmp_path)
    chance = random.Random(seed)
    found = list(lines(history))
    with icesql.connect() as connection:
        connection.register_table("t", history.metadata_path)
        for line in chance.sample(found, min(4, len(found))):
            start, end = line[0], line[-1]
            connection.execute(f"SET local_reader = '{chance.choice(['auto', 'arrow'])}'")
            fields = history.fields_of(end)
            states = [rows_at(history, each, fields) for each in line]
            names = ", ".join('"{}"'.format(each["name"]) for each in fields)
            clause = f"t CHANGES FROM VERSION {start} TO VERSION {end}"
            sql = f"SELECT {names}, _change_type FROM {clause}"
            # All the way at once, whatever lies between.
            net = told(connection, f"{sql} WITH (deduplicationMode = netChanges)")
            assert net == difference(states[0], states[-1]), (clause, history.log)
            # Commit by commit.
            steps = [difference(*pair) for pair in pairwise(states)]
            by_commit = told(connection, sql)
            assert by_commit == (
                sum((deleted for deleted, _ in steps), Counter()),
                sum((inserted for _, inserted in steps), Counter()),
            ), (clause, history.log)
            counts = connection.execute(
                f"SELECT _commit_version, count(*) FROM {clause} GROUP BY ALL"
            ).fetchall()
            assert dict(counts) == {
                commit: (deleted + inserted).total()
                for commit, (deleted, inserted) in zip(line[1:], steps, strict=True)
                if deleted or inserted
            }
            # A filter finds the changes of the rows that it finds.
            column = chance.choice(fields)["name"]
            sql = f'SELECT {names}, _change_type FROM {clause} WHERE "{column}" IS NOT NULL'
            place = [each["name"] for each in fields].index(column)
            kept = sum(
                row[place] is not None
                for row in connection.execute(
                    f"SELECT {names}, _change_type FROM {clause}"
                ).fetchall()
            )
            assert len(connection.execute(sql).fetchall()) == kept


def test_the_first_commit_is_a_change_of_nothing(tmp_path):
    history = History(1, tmp_path)
    first = history.writer.snapshots[0]
    with icesql.connect() as connection:
        connection.register_table("t", history.metadata_path)
        clause = f"VERSION {first['snapshot-id']} INCLUSIVE TO VERSION {first['snapshot-id']}"
        rows = connection.execute(f"SELECT _change_type FROM t CHANGES FROM {clause}").fetchall()
        assert len(rows) == len(
            history.rows(first["snapshot-id"], history.fields_of(first["snapshot-id"]))
        )
        assert {kind for (kind,) in rows} <= {"insert"}
