"""Trino's list of table properties is closed: each is Iceberg's of that meaning, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql

GIVEN = [
    ("format = 'ORC'", {"write.format.default": "orc"}),
    ("max_commit_retry = 7", {"commit.retry.num-retries": "7"}),
    ("delete_after_commit_enabled = true", {"write.metadata.delete-after-commit.enabled": "true"}),
    ("max_previous_versions = 5", {"write.metadata.previous-versions-max": "5"}),
    ("object_store_layout_enabled = true", {"write.object-storage.enabled": "true"}),
    ("orc_bloom_filter_fpp = 0.05", {"write.orc.bloom.filter.fpp": "0.05"}),
    ("orc_bloom_filter_columns = ARRAY['a', 'b']", {"write.orc.bloom.filter.columns": "a,b"}),
    (
        "parquet_bloom_filter_columns = ARRAY['a', 'b']",
        {f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in "ab"},
    ),
    (
        "extra_properties = MAP(ARRAY['x.y', 'z'], ARRAY['1', '2']), max_commit_retry = 3",
        {"x.y": "1", "z": "2", "commit.retry.num-retries": "3"},
    ),
    ("\"max_commit_retry\" = '9'", {"max_commit_retry": "9"}),  # of that very name
    ("write.delete.mode = 'merge-on-read'", {"write.delete.mode": "merge-on-read"}),
]
REFUSED = [
    ("max_commit_retries = 7", "did you mean max_commit_retry.*\"max_commit_retries\" ="),
    ("nothing_like_it = 'x'", '"nothing_like_it" ='),
    ("extra_properties = MAP(ARRAY['a', 'b'], ARRAY['1'])", "as many values"),
]  # fmt: skip


@pytest.mark.parametrize("dialect", [None, "trino", "spark"])
def test_each_word_is_translated_or_refused(tmp_path: Path, dialect: str | None) -> None:
    with icesql.connect(warehouse=tmp_path, dialect=dialect) as con:
        con.execute("CREATE SCHEMA s")
        for number, (given, wanted) in enumerate(GIVEN):
            table = f"s.t{number}"
            con.execute(f"CREATE TABLE {table} (a INTEGER, b VARCHAR(9)) WITH ({given})")
            assert wanted.items() <= properties(con, table).items(), given
            con.execute(f"CREATE TABLE {table}_b (a INTEGER, b VARCHAR(9))")
            con.execute(f"ALTER TABLE {table}_b SET PROPERTIES {given}")
            assert wanted.items() <= properties(con, f"{table}_b").items(), given
        con.execute("CREATE TABLE s.t (a INTEGER)")
        for given, told in REFUSED:
            for sql in (f"CREATE TABLE s.u (a INT) WITH ({given})",
                        f"ALTER TABLE s.t SET PROPERTIES {given}"):  # fmt: skip
                with pytest.raises(icesql.Error, match=told):
                    con.execute(sql)
        con.execute("ALTER TABLE s.t0 SET PROPERTIES format = DEFAULT")
        assert "write.format.default" not in properties(con, "s.t0")
        con.execute("ALTER TABLE s.t1 SET PROPERTIES max_commit_retry = DEFAULT")
        assert "commit.retry.num-retries" not in properties(con, "s.t1")
        with pytest.raises(icesql.Error, match="format_version = DEFAULT"):
            con.execute("ALTER TABLE s.t1 SET PROPERTIES format_version = DEFAULT")


@pytest.mark.parametrize("dialect", [None, "trino", "spark"])
def test_a_codec_is_one_of_the_format(tmp_path: Path, dialect: str | None) -> None:
    with icesql.connect(warehouse=tmp_path, dialect=dialect) as con:
        con.execute("CREATE SCHEMA s")
        for number, (given, form, codec) in enumerate(
            [
                ("compression_codec = 'ZSTD'", "parquet", "zstd"),
                ("compression_codec = 'none', format = 'PARQUET'", "parquet", "uncompressed"),
                ("compression_codec = 'GZIP', format = 'ORC'", "orc", "zlib"),
                ("format = 'ORC', compression_codec = 'LZ4'", "orc", "lz4"),
                ("format = 'AVRO', compression_codec = 'GZIP'", "avro", "gzip"),
            ]
        ):
            con.execute(f"CREATE TABLE s.t{number} (a INTEGER) WITH ({given})")
            own = properties(con, f"s.t{number}")
            assert own[f"write.{form}.compression-codec"] == codec
            assert "compression_codec" not in own
        con.execute("INSERT INTO s.t1 VALUES (1)")
        for given in ("compression_codec = 'LZ4'", "compression_codec = 'BROTLI'"):
            with pytest.raises(icesql.Error, match=r"for parquet files.*NONE, SNAPPY, ZSTD, GZIP"):
                con.execute(f"CREATE TABLE s.u (a INT) WITH ({given})")
        # What the files of the table are is not said there.
        with pytest.raises(icesql.Error, match=r"write\.parquet\.compression-codec"):
            con.execute("ALTER TABLE s.t0 SET PROPERTIES compression_codec = 'GZIP'")


def properties(con: icesql.Connection, table: str) -> dict[str, str]:
    return dict(con.execute(f"SHOW TBLPROPERTIES {table}").fetchall())
