"""Payloads through every input of the local engine: names stay names, values values, nothing runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.errors import repr_name
from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.manifest import compiled_walk as manifest_decoder
from icesql.iceberg.manifest import walk_source as manifest_walk
from icesql.iceberg.manifest.partition_values import PartitionForm
from icesql.iceberg.types import LONG, STRING
from tests.iceberg import manifest_files
from tests.security.conftest import Canary
from tests.sessions import fetched
from tests.writer.table import TableWriter

PAYLOADS = tuple(Canary(Path("canary")).payloads)
READERS = ("auto", "arrow")


def field(field_id: int, name: str, type_: Any = "string") -> dict[str, Any]:
    return {"id": field_id, "name": name, "required": False, "type": type_}


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def asked(path: str, sql: str, parameters: Any = (), reader: str = "auto") -> Any:
    """Names of the columns, and the rows, of ``sql`` over the table ``t``."""
    with icesql.connect() as connection:
        connection.register_table("t", path)
        connection.execute(f"SET local_reader = '{reader}'")
        cursor = connection.execute(sql, parameters)
        rows = cursor.fetchall()
        return [each[0] for each in cursor.description], rows


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("aim", PAYLOADS)
def test_names_and_values_of_a_table(tmp_path: Path, canary: Canary, aim: str, reader: str) -> None:
    text = canary.payloads[aim]
    struct = {"type": "struct", "fields": [field(4, text), field(5, "x", "long")]}
    fields = [
        field(1, "id", "long"),
        field(2, text) | {"doc": text},
        field(3, "s", struct),
        field(6, text + "'\"`") | {"doc": text},
        # Of an id that is reserved: such a column is the path of its file.
        field(2147483646, f"{text} AS "),
    ]
    spec = [{"name": "part", "transform": "identity", "source-id": 2, "field-id": 1000}]
    table = TableWriter(
        tmp_path / "t", fields, spec=spec, version=3, properties={text: text, "owner": text}
    )
    rows = [{"id": 1, text: text, "s": {text: text, "x": 7}, text + "'\"`": None}]
    named = f"{canary.path.name}_{text}".replace("/", "_").replace("\0", "")[:120]
    path = str(tmp_path / "t" / "data" / f"{named}.parquet")
    file = table.data_file(rows, partition=[text], path=path)
    table.commit([file, table.equality_deletes([{"id": 2}], [1], partition=[text])])
    table.tag(text)
    place = str(table.metadata_path)

    names, found = asked(place, "SELECT * FROM t", reader=reader)
    assert names == [each["name"] for each in fields]
    assert found == [(1, text, {text: text, "x": 7}, None, path)]
    column, odd = identifier(text), identifier(f"{text} AS ")
    for sql, parameters in (
        (f"SELECT {column}, s.{column}, {odd} FROM t WHERE {column} = ?", [text]),
        (f"SELECT a.{column}, b.s[?], b.{odd} FROM t a JOIN t b USING ({column})", [text]),
        (f"SELECT min({column}), max(s.{column}), min({odd}) FROM t GROUP BY {column}", []),
        (
            f"SELECT {column}, s.{column}, {odd} FROM t FOR VERSION AS OF '{text.replace(chr(39), chr(39) * 2)}'",
            [],
        ),
    ):
        assert asked(place, sql, parameters, reader)[1] == [(text, text, path)], sql
    described = asked(place, "DESCRIBE t")[1]
    assert [row[0] for row in described] == names
    assert text in [row[0] for row in asked(place, "SHOW REFS FROM t")[1]]
    asked(place, f"EXPLAIN SELECT * FROM t WHERE {column} = ?", [text])


@pytest.mark.parametrize("aim", PAYLOADS)
def test_texts_of_a_statement(canary: Canary, aim: str) -> None:
    text = canary.payloads[aim]
    literal = "'" + text.replace("'", "''") + "'"
    with icesql.connect() as connection:
        for sql, parameters in (
            (f"SELECT {literal} AS {identifier(text)}", []),
            (f"SELECT ? AS {identifier(text)}", [text]),
            (f"SELECT $a AS {identifier(text)}", {"a": text}),
            (f"SELECT x AS {identifier(text)} FROM (VALUES ({literal})) AS {identifier(text)}(x)", []),
            (f"WITH {identifier(text)} AS (SELECT {literal} AS x) SELECT x AS {identifier(text)} FROM {identifier(text)}", []),
        ):  # fmt: skip
            cursor = connection.execute(sql, parameters)
            assert (cursor.fetchall(), cursor.description[0][0]) == ([(text,)], text)
        for sql in (
            f"SELECT * FROM {identifier(text)}",
            f"SELECT {identifier(text)} FROM (SELECT 1 AS x)",
            f"SELECT CAST({literal} AS INT)",
            f"SET {identifier(text)} = 1",
            f"SET timezone = {literal}",
            f"DESCRIBE {identifier(text)}",
            text,
        ):
            with pytest.raises(icesql.Error) as caught:
                fetched(connection, sql)
            assert type(caught.value).__module__ == "icesql.errors"
        with pytest.raises(icesql.Error):
            connection.columns(text)


@pytest.mark.parametrize("aim", PAYLOADS)
@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_the_error_of_a_damaged_file_names_its_path(
    tmp_path: Path, canary: Canary, kind: str, aim: str
) -> None:
    text = canary.payloads[aim].replace("/", "_")[:120]
    table = TableWriter(tmp_path / "t", [field(1, "x", "long")])
    path = tmp_path / "t" / "data" / f"{text}.{kind}"
    file = table.data_file([{"x": 1}], format=kind, path=str(path))
    table.commit([file])
    path.write_bytes(b"damaged!" * (path.stat().st_size // 8 + 1))
    for reader in READERS:
        with pytest.raises(icesql.Error) as caught:
            asked(str(table.metadata_path), "SELECT * FROM t", reader=reader)
        assert getattr(caught.value, "path", None) == str(path)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_negative_field_ids_are_ids(tmp_path: Path, kind: str, reader: str) -> None:
    struct = {"type": "struct", "fields": [field(-4, "y", "long")]}
    fields = [field(-2, "a", "long"), field(-3, "b"), field(-5, "s", struct), field(7, "c")]
    table = TableWriter(tmp_path / "t", fields)
    rows = [{"a": n, "b": f"b{n}", "s": {"y": n}, "c": None} for n in range(4)]
    table.commit([table.data_file(rows, format=kind)])
    table.commit([table.equality_deletes([{"a": 1}], [-2], format=kind)])
    table.commit([table.equality_deletes([{"b": "b2"}], [-3], format=kind)])
    place = str(table.metadata_path)
    expected = [(0, "b0", {"y": 0}, None), (3, "b3", {"y": 3}, None)]
    assert asked(place, "SELECT * FROM t ORDER BY a", reader=reader)[1] == expected
    assert asked(place, "SELECT count(*) FROM t WHERE b = 'b3'", reader=reader)[1] == [(1,)]


def test_a_name_with_a_nul_is_a_name(tmp_path: Path) -> None:
    name = "a\0'; DROP"
    table = TableWriter(tmp_path / "t", [field(1, "x", "long"), field(2, name)])
    table.commit([table.data_file([{"x": 1, name: "v\0w"}])])
    for reader in READERS:
        found = asked(str(table.metadata_path), "SELECT * FROM t", reader=reader)
        assert found == (["x", name], [(1, "v\0w")])


def test_errors_show_names_and_format_none_of_them(canary: Canary) -> None:
    for text in canary.payloads.values():
        error = icesql.errors.ColumnNotFoundError(text, table=text, similar=[text])
        # Unchanged, except for line breaks and control characters, which are escaped.
        spelled = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
        assert str(error).isprintable()
        assert str(error).count(spelled) == 3
        assert repr_name(text) == f'"{spelled}"'


# ---------------------------------------------------------------------------- manifests

_TEXTS = ("name", "doc", "namespace", "default", "symbols", "aliases")


def renamed(node: Any, text: str) -> Any:
    """An Avro schema whose every free text, and some that do not belong there, is ``text``."""
    if isinstance(node, list):
        return [renamed(each, text) for each in node]
    if not isinstance(node, dict):
        return node
    made = {key: renamed(value, text) for key, value in node.items()}
    if "name" in made:
        # Fields are known by their ids; the number keeps the names apart.
        made["name"] = f"{text}{made.get('field-id', '')}"
    return {**made, "doc": text, "aliases": [text], text: text}


def source_of(schema: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The source that reads manifests of this writer schema."""
    sources: list[str] = []

    def seen(source: str, *more: Any) -> Any:
        sources.append(source)
        return compile(source, *more)

    monkeypatch.setattr(manifest_walk, "compile", seen, raising=False)
    manifest_decoder._compiled.cache_clear()
    header = {"avro.schema": json.dumps(schema).encode()}
    file = AvroFile(path="m", metadata=header, data=b"", blocks=())
    manifest_decoder.read_manifest(file, PartitionForm((STRING, LONG)))
    (source,) = sources
    return source


@pytest.mark.parametrize("aim", PAYLOADS)
def test_the_source_of_a_manifest_walk_holds_no_text_of_its_schema(
    canary: Canary, aim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = [
        manifest_files.partition_field("a", 1000, "string"),
        manifest_files.partition_field("b", 1001, "long"),
    ]
    fields = manifest_files.data_file_fields(*part)
    odd = {"type": "enum", "name": "odd", "symbols": ["A"]}
    fields += [
        manifest_files.field("unknown", 900, "string"),
        manifest_files.field("stranger", None, {"type": "map", "values": odd}),
        manifest_files.field("fixed", 901, {"type": "fixed", "name": "f", "size": 3}),
    ]
    schema = manifest_files.entry_schema(fields)
    plain = source_of(schema, monkeypatch)
    text = canary.payloads[aim]
    hostile = renamed(schema, text)
    assert source_of(hostile, monkeypatch) == plain
    assert text not in plain
