"""CHANGES of random histories: what commits did to rows equals the difference of the model's rows.

Twelve histories by default; ICESQL_HISTORIES=300 runs more of the series.
"""

from __future__ import annotations

import ast
import os
import random
from collections import Counter
from itertools import pairwise

import pytest

import icesql
from tests.property.predicates import quoted
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


def listed(fields):
    return ", ".join(quoted(each["name"]) for each in fields)


def summed(states):
    """What is deleted and what is inserted from one state to the next, all together."""
    steps = [difference(*pair) for pair in pairwise(states)]
    return tuple(sum((step[side] for step in steps), Counter()) for side in (0, 1))


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


KEYS = ("boolean", "int", "long", "string", "date", "timestamp", "uuid")


def value_of(row, place):
    """A value of a row as the model spells it, None for NULL."""
    return ast.literal_eval(row)[place]


def wide_fields(own, later):
    """Fields by the names of ``own`` with the types that later ones have for the same ids."""
    known = {each["id"]: each for each in later}
    return [
        {**each, "type": wide_type(each["type"], known[each["id"]]["type"])}
        if each["id"] in known
        else each
        for each in own
    ]


def wide_type(own, later):
    match own, later:
        case {"type": "struct", "fields": mine}, {"type": "struct", "fields": theirs}:
            return {**own, "fields": wide_fields(mine, theirs)}
        case {"type": "list"}, {"type": "list"}:
            return {**own, "element": wide_type(own["element"], later["element"])}
        case {"type": "map"}, {"type": "map"}:
            parts = {part: wide_type(own[part], later[part]) for part in ("key", "value")}
            return {**own, **parts}
    return later


class Checked:
    """A history and the checks of its changes, a part of them by the seed."""

    def __init__(self, seed, folder):
        self.history = History(seed, folder)
        self.chance = random.Random(seed)

    def check(self, connection):
        connection.register_table("t", self.history.metadata_path)
        found = list(lines(self.history))
        for line in self.chance.sample(found, min(3, len(found))):
            connection.execute(f"SET local_reader = '{self.chance.choice(['auto', 'arrow'])}'")
            self.range(connection, line)
        ids = [each["snapshot-id"] for each in self.history.writer.snapshots]
        # Any two states, of whichever branches and in whichever order.
        self.difference(connection, self.chance.choice(ids), self.chance.choice(ids))
        if found and self.chance.random() < 0.3:
            self.blame(connection, max(found, key=len))

    def range(self, connection, line):
        history = self.history
        fields = history.fields_of(line[-1])
        states = [rows_at(history, each, fields) for each in line]
        names = listed(fields)
        clause = f"t CHANGES FROM VERSION {line[0]} TO VERSION {line[-1]}"
        sql = f"SELECT {names}, _change_type FROM {clause}"
        # All the way at once, whatever lies between.
        net = told(connection, f"{sql} WITH (deduplicationMode = netChanges)")
        assert net == difference(states[0], states[-1]), (clause, history.log)
        # Commit by commit.
        steps = [difference(*pair) for pair in pairwise(states)]
        assert told(connection, sql) == summed(states), (clause, history.log)
        counts = connection.execute(
            f"SELECT _commit_version, count(*) FROM {clause} GROUP BY ALL"
        ).fetchall()
        assert dict(counts) == {
            commit: (deleted + inserted).total()
            for commit, (deleted, inserted) in zip(line[1:], steps, strict=True)
            if deleted or inserted
        }
        # A filter finds the changes of the rows that it finds.
        column = self.chance.choice(fields)["name"]
        place = [each["name"] for each in fields].index(column)
        kept = sum(row[place] is not None for row in connection.execute(sql).fetchall())
        found = connection.execute(f'{sql} WHERE "{column}" IS NOT NULL').fetchall()
        assert len(found) == kept
        at_once = [difference(states[0], states[-1])]
        modes = [("netChanges", at_once), ("dropCarryovers", steps)]
        mode, expected = self.chance.choice(modes)
        self.updates(connection, line, fields, expected, mode)

    def updates(self, connection, line, fields, steps, mode):
        """A delete and an insert of one key are the two sides of an update, if each is the only."""
        places = [n for n, each in enumerate(fields) if each["type"] in KEYS]
        if not places:
            return
        key = self.chance.choice(places)
        expected, is_error = Counter(), False
        for step in steps:
            keys = [Counter(value_of(row, key) for row in each.elements()) for each in step]
            for kind, image, rows, own, other in (
                ("delete", "update_preimage", step[0], *keys),
                ("insert", "update_postimage", step[1], *reversed(keys)),
            ):
                for row in rows.elements():
                    value = value_of(row, key)
                    paired = value is not None and other[value] > 0
                    is_error |= paired and (own[value] > 1 or other[value] > 1)
                    expected[row, image if paired else kind] += 1
        names = listed(fields)
        sql = (
            f"SELECT {names}, _change_type FROM t CHANGES FROM VERSION {line[0]} "
            f'TO VERSION {line[-1]} KEYED BY ("{fields[key]["name"]}") '
            f"WITH (computeUpdates = true, deduplicationMode = {mode})"
        )
        if is_error:
            with pytest.raises(icesql.Error, match="have one key"):
                connection.execute(sql).fetchall()
            return
        found = Counter()
        for *row, kind in connection.execute(sql).fetchall():
            found[seen_rows([tuple(row)])[0], kind] += 1
        assert found == expected, (sql, self.history.log)

    def difference(self, connection, start, end):
        fields = self.history.fields_of(end)
        names = listed(fields)
        sql = f"SELECT {names}, _change_type FROM (DIFF t BETWEEN {start} AND {end})"
        if end < start:  # ids grow: the types of the start are the later ones
            fields = wide_fields(fields, self.history.fields_of(start))
        states = [rows_at(self.history, each, fields) for each in (start, end)]
        assert told(connection, sql) == difference(*states), (sql, self.history.log)
        summary = connection.execute(
            f"SELECT files_after, records_after - deletes_after FROM "
            f"(DIFF SUMMARY t BETWEEN {start} AND {end}) WHERE part = 'total'"
        ).fetchall()
        if summary:
            live = self.history.writer.live_at[end]
            assert summary[0][0] == sum(each.content == 0 for each in live)

    def blame(self, connection, line):
        """All that happened to rows up to a snapshot, from its beginning on."""
        end = line[-1]
        fields = self.history.fields_of(end)
        whole = max((each for each in lines(self.history) if each[-1] == end), key=len)
        states = [[], *(rows_at(self.history, each, fields) for each in whole)]
        sql = f"SELECT {listed(fields)}, _change_type FROM (BLAME t VERSION AS OF {end})"
        assert told(connection, sql) == summed(states), (sql, self.history.log)


@pytest.mark.parametrize("seed", SEEDS)
def test_changes_are_the_difference_of_the_models_rows(tmp_path, seed):
    checked = Checked(seed, tmp_path)
    with icesql.connect() as connection:
        checked.check(connection)


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
