"""Casts of texts in Spark's dialect: PySpark's results for hundreds of columns and constants."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

import icesql
from icesql.query.dialects.spark.calls import _TRIMMED, forms
from icesql.query.dialects.types import of_cast
from tests.tables import read_table

# PySpark's result for a text and a type, as text or null in JSON: of 2,000 random texts, most of
# them almost valid, and, at the end, texts with zones, checked with Java 17.
ANSWERS = Path(__file__).with_name("spark_text_casts.tsv")
CONSTANTS = 12
ZONE = "America/New_York"


def test_texts_are_cast_as_pyspark_casts_them(tmp_path) -> None:
    """All texts of a type as one column, some as constants. CAST fails if TRY_CAST is NULL."""
    lines = read_table(__file__, ANSWERS.name)
    known = {(kind, json.loads(text)): json.loads(value) for kind, text, value in lines}
    wrong = []
    with icesql.connect(
        warehouse=str(tmp_path), dialect="spark", timezone=ZONE, read_only=False
    ) as connection:
        connection.execute("CREATE SCHEMA n").close()
        connection.execute("CREATE TABLE n.t (id INT, s STRING)").close()
        for kind in dict.fromkeys(kind for kind, _ in known):
            texts = [text for each, text in known if each == kind]
            refused = _refused(kind, texts)
            texts = [each for each in texts if each not in refused]
            given = pa.table({"id": pa.array(range(len(texts)), pa.int32()), "s": texts})
            replaced = "INSERT OVERWRITE n.t SELECT * FROM given"
            connection.execute(replaced, tables={"given": given}).close()
            good = [str(n) for n, text in enumerate(texts) if known[kind, text] is not None]
            sql = f"SELECT id, {_shown(kind)} FROM (SELECT id, {{}}(s AS {kind}) AS v FROM n.t)"
            cast = f"{sql.format('CAST')} WHERE id IN ({', '.join(good)})"
            found = [each for one in (sql.format("TRY_CAST"), cast)
                     for each in connection.execute(one).fetchall()]  # fmt: skip
            assert len(found) == len(texts) + len(good)
            wrong += [(kind, texts[n], got) for n, got in found if got != known[kind, texts[n]]]
            for text in sorted(refused)[:3]:
                connection.execute("INSERT OVERWRITE n.t VALUES (0, ?)", [text]).close()
                with pytest.raises(icesql.DataError):
                    connection.execute(f"SELECT TRY_CAST(s AS {kind}) FROM n.t").fetchall()
        for kind, text in random.Random(1).sample(sorted(known), CONSTANTS):
            escaped = text.replace("\\", "\\\\").replace("'", "\\'")
            for word in ("CAST", "TRY_CAST"):
                got: Any = icesql.DataError
                sql = f"SELECT {_shown(kind)} FROM (SELECT {word}('{escaped}' AS {kind}) AS v)"
                with suppress(icesql.DataError):
                    ((got,),) = connection.execute(sql).fetchall()
                value = known[kind, text]
                fails = _refused(kind, [text]) or (word == "CAST" and value is None)
                if got != (icesql.DataError if fails else value):
                    wrong.append((kind, text, got))
    assert not wrong


def _shown(kind: str) -> str:
    """An expression of the value that distinguishes adjacent values."""
    if kind == "DATE":
        return "CAST(datediff(v, DATE '1970-01-01') AS STRING)"
    if kind == "TIMESTAMP_NTZ":
        day = "datediff(CAST(v AS DATE), DATE '1970-01-01')"
        clock = "':', hour(v), minute(v), extract(SECOND FROM v)"
        return f"CASE WHEN v IS NOT NULL THEN CONCAT({day}, ' ', CONCAT_WS({clock})) END"
    if kind == "TIMESTAMP":
        return "CAST(unix_micros(v) AS STRING)"
    if kind in ("FLOAT", "DOUBLE"):
        return "CAST(CAST(v AS DOUBLE) AS STRING)"
    return "CAST(v AS STRING)"


def _refused(kind: str, texts: list[str]) -> set[str]:
    """The texts that casts.py refuses to compute."""
    to = of_cast(exp.DataType.build(kind, dialect="spark"))
    assert to is not None
    first = " ".join(f"WHEN regexp_full_match(t, '{form}') THEN {value.startswith('error')}"
                     for form, value in forms(to, kind, "CAST"))  # fmt: skip
    trimmed = _TRIMMED.replace("$1", "x")
    rows = duckdb.connect().execute(
        f"SELECT x FROM (SELECT x, {trimmed} AS t FROM (SELECT unnest($1::VARCHAR[]) AS x)) "
        f"WHERE CASE {first} END", [texts],
    ).fetchall()  # fmt: skip
    return {text for (text,) in rows}


@pytest.mark.parametrize("text", ["12:34:56.5", "T12:34:56.5", " 12:34:56.5\t"])
def test_a_time_of_day_is_one_of_today(text: str) -> None:
    sql = f"SELECT TRY_CAST('{text}' AS TIMESTAMP), TRY_CAST('{text}' AS TIMESTAMP_NTZ), now()"
    with icesql.connect(dialect="spark", timezone="America/New_York") as connection:
        ((found, naive, now),) = connection.execute(sql).fetchall()
    assert found == now.replace(hour=12, minute=34, second=56, microsecond=500_000)
    assert naive is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0x1p1000", "DOUBLE"),
        ("0x1.234567p3", "FLOAT"),
    ],
)
@pytest.mark.parametrize("word", ["CAST", "TRY_CAST"])
def test_what_cannot_be_computed_is_an_error_by_name(text: str, kind: str, word: str) -> None:
    with (
        icesql.connect(dialect="spark") as connection,
        pytest.raises(icesql.DataError, match="of many digits as a text"),
    ):
        connection.execute(f"SELECT {word}('{text}' AS {kind})").fetchall()


@pytest.mark.parametrize(("text", "kind", "value"), read_table(__file__, "number_casts.tsv"))
def test_hexadecimal_numbers_and_digits_of_other_scripts(text: str, kind: str, value: str) -> None:
    with icesql.connect(dialect="spark") as connection:
        sql = f"SELECT TRY_CAST('{text}' AS {kind}), TRY_CAST(t AS {kind}) FROM VALUES ('{text}') AS q(t)"
        assert repr(connection.execute(sql).fetchall()) == f"[({value}, {value})]"


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01 24:00:00",
        "2020-01-01 12:60:00",
        "2020-01-01 10:00:00+18:01",
        "2020-01-01 10:00Z",
        "2020-01-01 10:00:00 Mars/Olympus",
        "2020-01-01 10:00:00 Australia/Act",
        "2020-01-01 10:00:00 ROC",
        "2020-01-01 10:00:00+18:00:01",
    ],
)
@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_what_spark_refuses_is_refused(text: str, kind: str) -> None:
    with icesql.connect(dialect="spark", timezone="America/New_York") as connection:
        sql = f"SELECT TRY_CAST('{text}' AS {kind})"
        assert connection.execute(sql).fetchall() == [(None,)]
        with pytest.raises(icesql.DataError):
            connection.execute(f"SELECT CAST('{text}' AS {kind})").fetchall()


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("12:30:00+02:00", "Etc/GMT-2"),
        ("T12:30:00 Pacific/Kiritimati", "Pacific/Kiritimati"),
        ("12:30:00.HST", "Pacific/Honolulu"),
        ("12:30:00 -10", "Pacific/Honolulu"),
    ],
)
def test_a_time_of_day_with_a_zone_is_one_of_today_there(text: str, zone: str) -> None:
    sql = f"SELECT CAST('{text}' AS TIMESTAMP), now()"
    with icesql.connect(dialect="spark", timezone="America/New_York") as connection:
        ((found, now),) = connection.execute(sql).fetchall()
    there = now.astimezone(ZoneInfo(zone))
    assert found == there.replace(hour=12, minute=30, second=0, microsecond=0)


def test_names_of_zones_are_read_as_java_writes_them(tmp_path) -> None:
    # Zones that DuckDB has and Java does not, as of Java 17.0.15.
    unknown = {"ROC", "Factory", "US/Pacific-New", "Canada/East-Saskatchewan"}
    listed = duckdb.sql("SELECT name FROM pg_timezone_names()").fetchall()
    names = sorted({name for (name,) in listed} - unknown)
    cased = {each for name in names for each in (name.upper(), name.lower(), name.title())}
    texts = pa.table({"z": [*names, *sorted(cased - set(names))]})
    sql = "SELECT z FROM n.t WHERE TRY_CAST('2024-01-15 10:20:30 ' || z AS TIMESTAMP) IS NOT NULL"
    with icesql.connect(warehouse=str(tmp_path), dialect="spark") as connection:
        connection.execute("CREATE SCHEMA n").close()
        connection.execute("CREATE TABLE n.t (z STRING)").close()
        connection.execute("INSERT INTO n.t SELECT * FROM given", tables={"given": texts}).close()
        found = connection.execute(sql).fetchall()
    assert sorted(name for (name,) in found) == names
