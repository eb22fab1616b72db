from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from datetime import UTC
from decimal import Decimal
from typing import Any

from icesql.engine.values import Timestamp
from icesql.repl.render import (
    ROWS_MEASURED,
    Style,
    display_width,
    heading_lines,
    json_of,
    row_line,
    text_of,
    write_rows,
)
from icesql.scan.report import bytes_text
from tests.rows import rows_of


def written(
    output_format: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    style: Style | None = None,
) -> str:
    out = io.StringIO()
    assert write_rows(out, output_format, columns, rows, style or Style()) == len(rows)
    return out.getvalue()


def test_table_aligns_numbers_right_and_shows_null() -> None:
    rows = [(1, "eu", Decimal("1.00")), (20, None, Decimal("-12.50"))]
    assert written("table", ["id", "region", "amount"], rows).splitlines() == [
        " id | region | amount",
        "----+--------+-------",
        "  1 | eu     |   1.00",
        " 20 | NULL   | -12.50",
    ]


def test_table_of_no_rows_keeps_its_heading() -> None:
    assert written("table", ["id"], []) == " id\n---\n"


def test_table_counts_wide_characters_as_two_cells() -> None:
    lines = written("table", ["name", "n"], [("東京", 1), ("Rome", 2)]).splitlines()
    assert lines[2] == " 東京 | 1"
    assert lines[3] == " Rome | 2"
    assert display_width("東京") == 4


def test_table_spells_out_control_characters() -> None:
    text = written("table", ["a"], [("x\n\x1b[31my",)])
    assert "\x1b" not in text
    assert text.splitlines()[2] == " x\\n\\x1b[31my"


def test_table_is_cut_to_the_width_of_the_terminal() -> None:
    rows = [(1, "a" * 100, "b" * 100)]
    for width in (30, 40, 80):
        lines = written("table", ["id", "left", "right"], rows, Style(width)).splitlines()
        assert max(map(display_width, lines)) <= width
        assert lines[2].count("…") == 2
    assert "a" * 100 in written("table", ["id", "left", "right"], rows)


def test_headings_above_narrow_values_are_whole_on_several_lines() -> None:
    columns = [
        "rewritten_data_files_count", "added_data_files_count", "rewritten_bytes_count",
        "failed_data_files_count", "removed_delete_files_count",
    ]  # fmt: skip
    lines = written("table", columns, [(12, 1, 123456, 0, 0)], Style(80)).splitlines()
    assert max(map(display_width, lines)) <= 80
    assert not any("…" in each for each in lines)
    heads = [each.split("|") for each in lines[: lines.index(next(x for x in lines if "--" in x))]]
    found = ["".join(part.strip() for part in parts) for parts in zip(*heads, strict=False)]
    assert found == columns
    # Two words do with two lines, and a plain one stands at the bottom.
    rows = [(1, "x" * 30, "y" * 30)]
    lines = written("table", ["field_id_of_it", "city", "comment"], rows, Style(40)).splitlines()
    assert lines[0].strip(" |") == "field_id_of_it" or lines[0].startswith(" ")
    assert "city" in lines[lines.index(next(x for x in lines if "--" in x)) - 1]


@rows_of(__file__, "folded_headings.tsv", "heading", "width", "expected")
def test_a_heading_is_folded_where_a_word_ends(heading: str, width: str, expected: str) -> None:
    """One that has no room even so is left for the caller to cut."""
    lines = expected.split(" ¦ ")
    found = list(heading_lines([heading, "x"], [int(width), 1]))
    assert [each[0] for each in found] == lines
    assert [each[1] for each in found] == [""] * (len(lines) - 1) + ["x"]


def test_a_single_column_is_never_cut() -> None:
    lines = written("table", ["plan"], [("x" * 200,)], Style(40)).splitlines()
    assert lines == [" plan", "-" * 80, " " + "x" * 200]


def test_narrow_table_is_not_cut() -> None:
    assert written("table", ["id"], [(1,)], Style(80)) == written("table", ["id"], [(1,)])


def test_markdown_escapes_bars_and_line_breaks() -> None:
    assert written("markdown", ["a|b", "n"], [("x|y\nz", 1)]).splitlines() == [
        "| a\\|b | n |",
        "|---|---:|",
        "| x\\|y\\nz | 1 |",
    ]


def test_values_that_no_query_of_the_engine_gives() -> None:
    assert text_of(Decimal("1E+3")) == json_of(Decimal("1E+3")) == "1000"
    moment = Timestamp.from_nanoseconds(1_000_000_007, UTC)
    assert text_of(moment) == "1970-01-01 00:00:01.000000007+00:00"
    assert json_of(moment) == '"1970-01-01T00:00:01.000000007+00:00"'


def test_rows_are_written_as_they_come() -> None:
    out = io.StringIO()
    seen = []

    def rows() -> Iterator[tuple[int]]:
        for number in range(10):
            seen.append(len(out.getvalue()))
            yield (number,)

    write_rows(out, "markdown", ["n"], rows(), Style())
    assert seen[9] > seen[5] > seen[2]


def test_a_long_table_measures_only_its_first_rows() -> None:
    out = io.StringIO()
    early: list[str] = []

    def rows() -> Iterator[tuple[Any]]:
        for number in range(ROWS_MEASURED + 5):
            if number == ROWS_MEASURED + 1:
                early.append(out.getvalue())
            yield ("x" * 50,) if number > ROWS_MEASURED else (number,)

    assert write_rows(out, "table", ["n"], rows(), Style()) == ROWS_MEASURED + 5
    assert early[0].count("\n") >= ROWS_MEASURED
    assert out.getvalue().rstrip().endswith("x" * 50)


def test_sizes_and_counts_read_well() -> None:
    assert [bytes_text(size) for size in (0, 999, 1536, 5 << 20)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "5 MB",
    ]
    assert row_line(1, 0.0123) == "(1 row, 12 ms)"
    assert row_line(12345, None) == "(12,345 rows)"


def test_markdown_has_no_tag_of_the_data() -> None:
    text = written("markdown", ["a<b"], [("<img src=x onerror=alert(1)>|",)])
    assert text.splitlines()[0] == "| a\\<b |"
    assert text.splitlines()[2] == "| \\<img src=x onerror=alert(1)>\\| |"
