"""EXPLAIN FILE, EXPLAIN (FORMAT tree) and EXPLAIN (FORMAT html) over tables with odd names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

import icesql
from icesql.errors import ProgrammingError
from tests.writer.table import TableWriter

NASTY = "<script>alert('1')</script>\" onload=\"x&amp;\u202e"
FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "place", "required": False, "type": "string"},
    {"id": 3, "name": "note", "required": False, "type": "string"},
]
BY_PLACE = [{"source-id": 2, "field-id": 1000, "name": "place", "transform": "identity"}]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[icesql.Connection]:
    """``t`` by place: Athens with a deletion, a place with a nasty name, and a later commit."""
    table = TableWriter(tmp_path_factory.mktemp("explained") / "t", FIELDS, spec=BY_PLACE)
    files = [
        table.data_file(
            [{"id": 10 * n + i, "place": place, "note": NASTY} for i in range(5)],
            partition=(place,),
        )
        for n, place in enumerate(["Athens", NASTY])
    ]
    table.commit(files)
    table.commit([table.position_deletes([(files[0], 1)], partition=("Athens",))])
    late = table.data_file([{"id": 99, "place": "Zagreb", "note": None}], partition=("Zagreb",))
    table.commit([late], rewrite=False)
    with icesql.connect() as opened:
        opened.register_table("t", table.metadata_path)
        yield opened


def _text(connection: icesql.Connection, sql: str) -> str:
    return "\n".join(line for (line,) in connection.execute(sql).fetchall())


def _path(connection: icesql.Connection, place: str) -> str:
    sql = "SELECT file_path FROM t.data_files WHERE partition.place = ?"
    ((path,),) = connection.execute(sql, [place]).fetchall()
    return str(path)


def test_a_file_is_told_with_its_deletes_and_what_is_left_of_the_filter(
    connection: icesql.Connection,
) -> None:
    name = _path(connection, "Athens").rpartition("/")[2]
    text = _text(connection, f"EXPLAIN FILE '{name}' SELECT id FROM t WHERE id < 3")
    assert re.search(rf"file: .*/{re.escape(name)}$", text, re.MULTILINE)
    assert "partition: place='Athens' (spec 0)" in text
    assert "rows: 5 in" in text
    assert "column id: at least 0, at most 4, 0 NULL" in text
    assert "column note" not in text
    assert "decision: kept" in text
    assert "residual: id < 3" in text
    assert re.search(r"delete file: .*\(positions, 1 rows, sequence number 2\)", text)
    assert "reader: duckdb + deletes" in text


@pytest.mark.parametrize(
    ("where", "decision"),
    [
        ("place = 'Athens'", "skipped by partition summary: place = 'Athens'; lower bound is"),
        ("id < 3", "skipped by metrics: id < 3; lower bound is 99"),
        ("id < 3 AND id > 4", "skipped by metrics"),
        ("1 = 2", "skipped by filter: no row can match"),
    ],
)
def test_the_step_that_decided_is_told(
    connection: icesql.Connection, where: str, decision: str
) -> None:
    path = _path(connection, "Zagreb")
    text = _text(connection, f"EXPLAIN FILE '{path}' SELECT id FROM t WHERE {where}")
    assert f"decision: {decision}" in text
    assert "residual" not in text


def test_other_steps_decide_too(connection: icesql.Connection) -> None:
    path = _path(connection, "Zagreb")
    text = _text(connection, f"EXPLAIN FILE '{path}' SELECT min(id) FROM t")
    assert "decision: skipped by order: MIN(id); lower bound is 99" in text
    text = _text(connection, f"EXPLAIN FILE '{path}' SELECT count(*) FROM t WHERE id > 5")
    assert "decision: counted from metadata: 1 rows" in text


def test_a_file_that_is_not_there(connection: icesql.Connection) -> None:
    with pytest.raises(ProgrammingError, match=r"no live data file of t at .* ends with 'x'"):
        connection.execute("EXPLAIN FILE 'x' SELECT id FROM t")
    with pytest.raises(ProgrammingError, match="no live data file of no table"):
        connection.execute("EXPLAIN FILE 'x' SELECT 1")
    path = _path(connection, "Zagreb")
    with pytest.raises(ProgrammingError, match="no live data file"):
        connection.execute(f"EXPLAIN FILE '{path}' SELECT id FROM t VERSION AS OF 1000")


def test_a_tree_goes_down_to_files_and_row_groups(connection: icesql.Connection) -> None:
    lines = _text(connection, "EXPLAIN (FORMAT tree) SELECT id FROM t WHERE id < 3").splitlines()
    assert lines[0] == "table t"
    assert re.fullmatch(
        r"   estimate: at most 5 rows, 1 file, 1 delete file, [\d,]+ bytes", lines[1]
    )
    assert lines[2].startswith("└─ snapshot 1002 (main)")
    assert re.fullmatch(r"   ├─ manifest .*: 1 of 2 files kept", lines[3])
    assert re.fullmatch(r"   │  ├─ file .*: place='Athens', 5 rows, [\d,]+ bytes, kept", lines[4])
    assert re.fullmatch(r"   │  │  └─ .*1 delete file, residual id < 3", lines[5])
    assert lines[6].startswith("   │  └─ file ")
    assert lines[6].endswith("skipped by metrics: id < 3; lower bound is 10")
    assert "   └─ manifest " in lines[7]
    assert len(lines) == 9


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[str] = set()
        self.squares: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "i" and dict(attrs).get("title"):
            self.squares.append(dict(attrs)["class"])


def test_a_page_holds_no_markup_of_a_stranger(connection: icesql.Connection) -> None:
    literal = NASTY.replace("'", "''")
    sql = f"EXPLAIN (FORMAT html) SELECT id AS \"<b>\" FROM t WHERE id < 20 AND note = '{literal}'"
    cursor = connection.execute(sql)
    ((page,),) = cursor.fetchall()
    tags = _Tags()
    tags.feed(page)
    assert tags.found == {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "pre", "code", "p", "i",
        "table", "tr", "th", "td", "span", "b", "br",
    }  # fmt: skip
    assert tags.attributes == {
        "lang",
        "charset",
        "http-equiv",
        "content",
        "class",
        "style",
        "title",
    }
    assert tags.squares == ["kept", "kept", ""]
    assert "default-src 'none'" in page
    assert "\u202e" not in page
    assert "place=&#x27;&lt;script&gt;" in page
    assert (cursor.description or [])[0][1] == "html"


def test_metadata_tables_and_changes_have_no_files_to_tell(connection: icesql.Connection) -> None:
    text = _text(connection, "EXPLAIN (FORMAT tree) SELECT path FROM t.manifests")
    assert text.splitlines()[:2] == ["table t.manifests", "   estimate: from metadata alone"]
    assert "no tables are read" in _text(connection, "EXPLAIN (FORMAT tree) SELECT 1")
    assert "<h2>t</h2>" in _text(
        connection, "EXPLAIN (FORMAT html) SELECT id FROM t CHANGES FROM VERSION 1000"
    )
