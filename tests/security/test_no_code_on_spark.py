"""Payloads through every input of the Spark engine: nothing of a message, row or path ever runs."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.engine.spark.scans import FRAGMENTS, Scans
from tests.security.conftest import Canary
from tests.writer.fields import fields
from tests.writer.table import TableWriter

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

FIELDS = fields("x long, b string")
# Each quotes the text in an error of Spark's.
FORMS = [
    "SELECT CAST({} AS INT)",
    "SELECT sum(CAST({} AS INT)) FROM t",
    "SELECT a.x FROM t a JOIN t b ON a.x = CAST({} AS INT)",
    "SELECT sum(x) OVER (ORDER BY CAST({} AS INT)) FROM t",
    "SELECT CAST({} AS DATE) FROM t",
    "SELECT CAST({} AS DECIMAL(10, 2)) FROM t",
]


@pytest.fixture
def table(spark: Any, tmp_path: Path, canary: Canary) -> str:
    """``t``, whose rows hold the payload."""
    made = TableWriter(tmp_path / "t", FIELDS)
    made.commit([made.data_file([{"x": x, "b": canary.pickled} for x in range(3)])])
    spark.register_table("t", str(made.metadata_path))
    return str(made.metadata_path)


def test_the_payload_itself_works(canary: Canary) -> None:
    pickle.loads(pickle.dumps(canary))
    assert canary.path.exists()
    canary.path.unlink()


@pytest.mark.parametrize(
    ("door", "form"),
    [("text", FORMS[0]), ("text", FORMS[1]), ("parameter", FORMS[2]), ("parameter", FORMS[4])]
    + [("row", form) for form in FORMS[1:]],
)
def test_texts_in_errors_of_spark_are_texts(
    spark: Any, table: str, canary: Canary, door: str, form: str
) -> None:
    place = {"text": f"'{canary.pickled}'", "parameter": "?", "row": "b"}[door]
    if "JOIN" in form and door == "row":
        place = "b.b"
    parameters = [canary.pickled] if door == "parameter" else []
    with pytest.raises(icesql.Error) as caught:
        spark.execute(form.format(place), parameters).fetchall()
    assert type(caught.value).__module__ == "icesql.errors"
    canary.check()
    # A message that claims a failure of Spark is not trusted either: the session goes on.
    assert spark.execute("SELECT count(*) FROM t WHERE x >= 0").fetchall() == [(3,)]


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_a_path_in_the_error_of_a_worker_is_a_path(
    spark: Any,
    tmp_path: Path,
    canary: Canary,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The first statement has no fragment: tasks read it.
    monkeypatch.setattr(Scans, "ways", frozenset({FRAGMENTS}))
    made = TableWriter(tmp_path / "t", FIELDS)
    file = made.data_file([{"x": 1, "b": "v"}], format=kind)
    path = Path(file.record["file_path"])
    hostile = path.with_name(canary.pickled.replace("/", "_") + path.suffix)
    hostile.write_bytes(b"damaged " * 20)
    file.record["file_path"] = str(hostile)
    made.commit([file])
    spark.register_table("hostile", str(made.metadata_path))
    for sql in ("SELECT * FROM hostile", "SELECT sum(x) FROM hostile WHERE x > 0"):
        with pytest.raises(icesql.CorruptFileError) as caught:
            spark.execute(sql).fetchall()
        assert caught.value.path == str(hostile)
        canary.check()


def test_a_message_about_spark_in_data_is_data(spark: Any, table: str) -> None:
    cursor = spark.execute("SELECT x FROM t")
    session = cursor._result._frame.sparkSession
    for text in ("SparkContext was shut down", "java.lang.OutOfMemoryError: Java heap space"):
        with pytest.raises(icesql.DataError) as caught:
            spark.execute("SELECT CAST(? AS DATE) FROM t", [text]).fetchall()
        assert text in str(caught.value)
    again = spark.execute("SELECT x FROM t")
    assert again._result._frame.sparkSession is session


@pytest.mark.parametrize("ways", [(), (FRAGMENTS,)], ids=["tasks", "fragments"])
def test_names_and_values_stay_what_they_are(
    spark: Any,
    tmp_path: Path,
    canary: Canary,
    ways: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Scans, "ways", frozenset(ways))
    texts = list(canary.payloads.values())
    columns = [FIELDS[0]]
    columns += [
        {"id": 10 + at, "name": text, "required": False, "type": "string"}
        for at, text in enumerate(texts)
    ]
    inner = [each | {"id": each["id"] + 100} for each in columns[1:]]
    struct = {"type": "struct", "fields": inner}
    columns.append({"id": 5, "name": "s", "required": False, "type": struct})
    made = TableWriter(tmp_path / "t", columns)
    row = {"x": 1, **{text: text for text in texts}, "s": {text: text for text in texts}}
    made.commit([made.data_file([row]), made.data_file([row | {"x": 2}])])
    spark.register_table("odd", str(made.metadata_path))
    cursor = spark.execute("SELECT * FROM odd WHERE x = 1")
    assert [each[0] for each in cursor.description] == [each["name"] for each in columns]
    assert cursor.fetchall() == [tuple(row.values())]
    quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
    literals = ["'" + text.replace("'", "''") + "'" for text in texts]
    found = spark.execute(
        f"SELECT {', '.join(f'min({each})' for each in quoted)},"
        f" {', '.join(f's.{each}' for each in quoted)}, {', '.join(literals)},"
        f" {', '.join('?' for _ in texts)} FROM odd"
        f" WHERE {' AND '.join(f'{q} = {v}' for q, v in zip(quoted, literals, strict=True))}"
        f" GROUP BY {', '.join(f's.{each}' for each in quoted)}",
        texts,
    ).fetchall()
    assert found == [tuple(texts * 4)]


def test_an_error_that_a_row_raises_is_the_querys_own(spark: Any, tmp_path: Path) -> None:
    """Errors that icesql makes Spark raise for a row are transported behind the mark, too."""
    made = TableWriter(tmp_path / "t", FIELDS)
    odd = ["1_000", "\\'; x", "{0}"]
    made.commit([made.data_file([{"x": at, "b": text} for at, text in enumerate(odd)])])
    spark.register_table("odd", str(made.metadata_path))
    with pytest.raises(icesql.NotSupportedError, match="a CAST of such text to INT on Spark"):
        spark.execute("SELECT CAST(b AS INT) FROM odd WHERE x = 0").fetchall()
    for at in (1, 2):
        with pytest.raises(icesql.DataError):
            spark.execute("SELECT CAST(b AS INT) FROM odd WHERE x = ?", [at]).fetchall()
