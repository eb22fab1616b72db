"""Deletes read by DuckDB's anti joins and by ``read/`` leave the same rows."""

from __future__ import annotations

import random

import pytest

import icesql
from tests.writer.fields import fields, spec
from tests.writer.table import TableWriter

FIELDS = fields("k int, s string, v long")


def rows(table, sql, reader):
    with icesql.connect(settings={"local_reader": reader}) as con:
        con.register_table("t", table.metadata_path)
        cursor = con.execute(sql)
        return sorted(cursor.fetchall(), key=repr), set(cursor.scan_groups)


@pytest.mark.parametrize("kind", ["positions", "vectors"])
def test_positions_delete_rows_of_their_file_only(tmp_path, kind):
    table = TableWriter(tmp_path, FIELDS, version=3 if kind == "vectors" else 2)
    first = table.data_file([{"k": i, "s": "a", "v": i} for i in range(5)])
    second = table.data_file([{"k": i + 10, "s": "b", "v": i} for i in range(5)])
    clean = table.data_file([{"k": 99, "s": "c", "v": 0}])
    table.commit([first, second, clean])
    if kind == "positions":
        table.commit([table.position_deletes([(first, 0), (first, 3), (second, 4)])])
    else:
        table.commit(table.deletion_vectors([(first, [0, 3]), (second, [4])]))
    found, groups = rows(table, "SELECT k FROM t", "auto")
    assert found == sorted([(k,) for k in (1, 2, 4, 10, 11, 12, 13, 99)], key=repr)
    # A position delete file whose bounds do not name one path may apply to its whole partition.
    assert groups == {"duckdb + deletes", *(["duckdb"] if kind == "vectors" else [])}
    assert rows(table, "SELECT k FROM t", "arrow")[0] == found
    assert rows(table, "SELECT count(*) FROM t", "auto")[0] == [(8,)]


def test_null_equals_null_and_only_older_rows_are_deleted(tmp_path):
    table = TableWriter(tmp_path, FIELDS)
    table.commit([table.data_file([{"k": None, "s": "a", "v": 1}, {"k": 1, "s": None, "v": 2}])])
    table.commit([table.equality_deletes([{"k": None, "s": "a"}, {"k": 1, "s": "x"}], [1, 2])])
    table.commit([table.data_file([{"k": None, "s": "a", "v": 3}])])
    for reader, name in (("auto", "duckdb + deletes"), ("arrow", "arrow")):
        found, groups = rows(table, "SELECT v FROM t", reader)
        assert found == [(2,), (3,)]
        assert name in groups


@pytest.mark.parametrize("commits", [5, 80])
def test_stream_of_upserts_keeps_the_last_value_of_each_key(tmp_path, commits):
    # 80 sequence numbers exceed the limit for a CASE.
    table = TableWriter(tmp_path, FIELDS)
    chance = random.Random(commits)
    expected = {}
    for number in range(commits):
        keys = chance.sample(range(20), 4)
        data = table.data_file([{"k": k, "s": "x", "v": number} for k in keys])
        table.commit([table.equality_deletes([{"k": k} for k in keys], [1]), data])
        expected.update(dict.fromkeys(keys, number))
    wanted = sorted(expected.items(), key=repr)
    assert rows(table, "SELECT k, v FROM t", "auto")[0] == wanted
    assert rows(table, "SELECT k, v FROM t", "arrow")[0] == wanted


def test_partitioned_equality_deletes_stay_in_their_partition(tmp_path):
    table = TableWriter(tmp_path, FIELDS, spec=spec("2 identity s"))
    table.commit(
        [
            table.data_file([{"k": 1, "s": s, "v": 1}, {"k": 2, "s": s, "v": 1}], partition=(s,))
            for s in ("a", "b", None)
        ]
    )
    table.commit(
        [
            table.equality_deletes([{"k": 1}], [1], partition=("a",)),
            table.equality_deletes([{"k": 2}], [1], partition=(None,)),
        ]
    )
    wanted = sorted([(2, "a"), (1, "b"), (2, "b"), (1, None)], key=repr)
    for reader in ("auto", "arrow"):
        assert rows(table, "SELECT k, s FROM t", reader)[0] == wanted


def test_zeros_of_both_signs_are_two_keys(tmp_path):
    table = TableWriter(tmp_path, fields("x double"))
    table.commit([table.data_file([{"x": 0.0}, {"x": -0.0}, {"x": float("nan")}])])
    table.commit([table.equality_deletes([{"x": -0.0}, {"x": float("nan")}], [1])])
    for reader in ("auto", "arrow"):
        found, _ = rows(table, "SELECT x FROM t", reader)
        assert [str(x) for (x,) in found] == ["0.0"]
