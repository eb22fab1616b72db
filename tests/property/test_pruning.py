"""Pruning changes no answer: random predicates give the same rows with and without it.

On every table of the corpus that has rows and on generated histories; both local readers agree.
ICESQL_PREDICATES multiplies how many predicates each table is asked.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

import icesql
from tests.property.predicates import Predicates, columns_of, quoted
from tests.writer.history import History
from tests.writer.model import seen_rows

TIMES = int(os.environ.get("ICESQL_PREDICATES", "1"))
CORPUS = Path(os.environ.get("ICESQL_CORPUS") or "/nonexistent")
# Tables of more rows are asked for figures instead of rows.
MANY_ROWS = 5_000
SETTINGS = (("auto", "on"), ("auto", "off"), ("arrow", "on"))


def tables_with_rows():
    listed = CORPUS / "tables.jsonl"
    if not listed.is_file():
        return ["without a corpus"]
    rows = [json.loads(line) for line in listed.read_text(encoding="utf-8").splitlines() if line]
    return [row["metadata"] for row in rows if row["usability"] == "full"]


def answer(connection, sql, parameters):
    """The sorted rows, or the name of the error and how much was skipped."""
    try:
        cursor = connection.execute(sql, parameters)
        rows = seen_rows(cursor.fetchall())
    except icesql.Error as error:
        return type(error).__name__, 0
    skipped = sum(
        report.skipped_data_files + report.skipped_data_manifests for report in cursor.scan_reports
    )
    return rows, skipped


def disagreements(connection, clause, chance, count):
    """(differences, files and manifests skipped, answers that are rows) of random predicates."""
    connection.execute("SET local_reader = 'arrow'")
    connection.execute("SET prune = off")
    (size,) = connection.execute(f"SELECT count(*) FROM t{clause}").fetchone()
    cursor = connection.execute(f"SELECT * FROM t{clause} LIMIT 400")
    names = [each[0] for each in cursor.description]
    predicates = Predicates(chance, columns_of(names, cursor.fetchall()))
    found, skipped, answered = [], 0, 0
    for _ in range(count):
        condition, parameters = predicates.predicate()
        columns = chance.sample(names, min(len(names), chance.randint(1, 3)))
        selected = ", ".join(["count(*)"] if chance.random() < 0.1 else map(quoted, columns))
        if size > MANY_ROWS:
            one = quoted(columns[0])
            selected = f"count(*), count(DISTINCT {one}), min({one}), max({one})"
        sql = f"SELECT {selected} FROM t{clause} WHERE {condition}"
        answers = []
        for reader, prune in SETTINGS:
            connection.execute(f"SET local_reader = '{reader}'")
            connection.execute(f"SET prune = {prune}")
            answers.append(answer(connection, sql, parameters))
        skipped += answers[0][1]
        answered += isinstance(answers[0][0], list)
        if any(each[0] != answers[0][0] for each in answers):
            found.append((sql, parameters, [str(each[0])[:300] for each in answers]))
    return found, skipped, answered


@pytest.mark.parametrize("metadata", tables_with_rows())
def test_corpus_tables_give_the_same_rows_with_and_without_pruning(corpus, metadata):
    with icesql.connect() as connection:
        connection.register_table("t", str(corpus / metadata))
        found, _, answered = disagreements(connection, "", random.Random(metadata), 4 * TIMES)
    assert found == []
    assert answered


@pytest.mark.parametrize("series", range(5))
def test_histories_give_the_same_rows_with_and_without_pruning(tmp_path, series):
    skipped = answered = 0
    for seed in range(10_000 + series, 10_000 + 25 * TIMES, 5):
        chance = random.Random(seed)
        history = History(seed, tmp_path / str(seed))
        with icesql.connect() as connection:
            connection.register_table("t", history.metadata_path)
            snapshot = chance.choice(history.writer.snapshots)["snapshot-id"]
            for clause in ("", f" FOR VERSION AS OF {snapshot}"):
                found, less, rows = disagreements(connection, clause, chance, 4)
                skipped, answered = skipped + less, answered + rows
                assert found == [], (seed, *history.log)
    # Something must be there to prune, and most predicates must be valid SQL.
    assert skipped > 10
    assert answered > 20
