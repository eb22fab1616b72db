"""What a notebook shows of a result, and that showing it changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import icesql

ORDERS = "SELECT id, amount, ordered_at, region FROM shop.orders ORDER BY id"


class _Cells(HTMLParser):
    """The texts of a page by the tag that they stand in, and every tag that there is."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def test_the_first_rows_the_types_and_the_scan_are_shown(connection: Any) -> None:
    page = connection.execute(ORDERS)._repr_html_()
    cells = _Cells(page).cells
    assert cells[:4] == [
        "idbigint",
        "amountdecimal(10,2)",
        "ordered_attimestamptz",
        "regionvarchar",
    ]
    assert len(cells) == 4 + 20 * 4
    assert "the first 20 rows; there are more" in page
    assert "shop.orders: manifests" in page


@pytest.mark.parametrize("again", [1, 2])
@pytest.mark.parametrize(
    "sql", [ORDERS, "SHOW TABLES", "SELECT count(*) FROM shop.orders", "SELECT 1 AS a WHERE 1 = 2"]
)
def test_a_result_that_was_shown_is_read_from_its_start(
    connection: Any, sql: str, again: int
) -> None:
    plain = connection.execute(sql).fetchall()
    tables = connection.execute(sql).arrow()
    for read in ("fetchall", "arrow", "iteration", "fetchone"):
        cursor = connection.execute(sql)
        pages = {cursor._repr_html_() for _ in range(again)}
        assert len(pages) == 1
        if read == "fetchall":
            assert cursor.fetchall() == plain
        elif read == "arrow":
            assert cursor.arrow() == tables
        elif read == "iteration":
            assert list(cursor) == plain
        else:
            assert cursor.fetchone() == (plain[0] if plain else None)
            cursor._repr_html_()
            assert cursor.fetchall() == plain[1:]


def test_a_result_that_is_being_read_shows_what_is_left(connection: Any) -> None:
    cursor = connection.execute(ORDERS)
    first = cursor.fetchmany(5)
    rest = cursor._repr_html_()
    ids = _Cells(rest).cells[4::4]
    assert first[-1][0] < int(ids[0])
    assert len(ids) == 20
    assert (
        len(first) + len(cursor.fetchall())
        == connection.execute(f"SELECT count(*) FROM ({ORDERS})").fetchone()[0]
    )
    assert "fetched already" in cursor._repr_html_()
    cursor = connection.execute(ORDERS)
    cursor.arrow_reader().read_next_batch()
    assert "fetched already" in cursor._repr_html_()


def test_what_stands_in_a_table_is_no_html(connection: Any) -> None:
    hostile = "<script>alert(1)</script><img src=x onerror=y>&\x1b[2J\u202e"
    cursor = connection.execute(
        "SELECT ? AS \"<b onclick='z'>c</b>\", {'<i>': ?} AS s", [hostile, hostile]
    )
    page = cursor._repr_html_()
    assert _Cells(page).tags <= {
        "div",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "br",
        "small",
        "em",
    }
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;" in page
    assert "<b onclick" not in page


def test_values_are_texts_for_people(connection: Any) -> None:
    cursor = connection.execute(
        "SELECT NULL AS n, CAST('1.50' AS DECIMAL(9, 2)) AS d, TIMESTAMPTZ '2026-01-02 03:04:05+00' AS t, "
        "'\\x01'::BLOB AS b, repeat('x', 5000) AS long, true AS yes"
    )
    cells = _Cells(cursor._repr_html_()).cells[6:]
    assert cells[:4] == ["NULL", "1.50", "2026-01-02 03:04:05+00:00", "0x01"]
    assert len(cells[4]) == 300
    assert cells[5].startswith("true")
    assert cursor.fetchone()[:3] == (
        None,
        Decimal("1.50"),
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )


def test_a_wide_result_is_cut(connection: Any) -> None:
    page = connection.execute(
        "SELECT " + ", ".join(f"{n} AS c{n}" for n in range(50))
    )._repr_html_()
    assert len(_Cells(page).cells) == 80
    assert "10 more columns" in page


def test_what_has_no_rows_shows_none(tmp_path: Path) -> None:
    with icesql.connect(warehouse=tmp_path) as connection:
        cursor = connection.cursor()
        assert cursor._repr_html_() is None
        cursor.execute("CREATE SCHEMA s")
        assert cursor._repr_html_() is None
        cursor.execute("CREATE TABLE s.t (a INTEGER)")
        cursor.execute("INSERT INTO s.t VALUES (1)")
        assert "snapshot" in cursor._repr_html_()
        cursor.close()
        assert cursor._repr_html_() is None


def test_the_error_of_a_row_is_raised_when_it_is_shown(connection: Any) -> None:
    cursor = connection.execute("SELECT error('no ' || id) FROM shop.orders")
    with pytest.raises(icesql.Error, match="no "):
        cursor._repr_html_()
