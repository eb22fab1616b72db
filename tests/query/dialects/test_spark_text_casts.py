"""Casts of texts in Spark's dialect: what PySpark gave for some hundred, of columns and constants."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql
from tests.campaigns.spark_text_casts import compare

# Of 2,000 texts that ``tests/campaigns/spark_text_casts.py judge --seed 7`` drew.
ANSWERS = Path(__file__).with_name("spark_text_casts.tsv")


def test_texts_are_cast_as_pyspark_casts_them(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = compare(ANSWERS.read_text(encoding="utf-8").splitlines(), 12)
    assert not wrong, capsys.readouterr().out


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
        ("2020-01-01 10:00:00 Europe/Paris", "TIMESTAMP"),
        ("2020-01-01 10:00:00 EST", "TIMESTAMP_NTZ"),
        ("12:00:00Z", "TIMESTAMP"),
        ("0x1p3", "DOUBLE"),
        ("\u0661", "DECIMAL(10,2)"),
    ],
)
@pytest.mark.parametrize("word", ["CAST", "TRY_CAST"])
def test_what_cannot_be_computed_is_an_error_by_name(text: str, kind: str, word: str) -> None:
    with (
        icesql.connect(dialect="spark") as connection,
        pytest.raises(icesql.DataError, match=r"in a text|as a text|with a zone|another script"),
    ):
        connection.execute(f"SELECT {word}('{text}' AS {kind})").fetchall()


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01 24:00:00",
        "2020-01-01 12:60:00",
        "2020-01-01 10:00:00+18:01",
        "2020-01-01 10:00Z",
    ],
)
@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_what_spark_refuses_is_refused(text: str, kind: str) -> None:
    with icesql.connect(dialect="spark", timezone="America/New_York") as connection:
        sql = f"SELECT TRY_CAST('{text}' AS {kind})"
        assert connection.execute(sql).fetchall() == [(None,)]
        with pytest.raises(icesql.DataError):
            connection.execute(f"SELECT CAST('{text}' AS {kind})").fetchall()
