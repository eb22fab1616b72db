"""Options of files as the table's properties have them."""

from __future__ import annotations

import pytest

from icesql.write.options import write_options
from tests.tables import read_table

CODEC, LEVEL = "write.parquet.compression-codec", "write.parquet.compression-level"


@pytest.mark.parametrize(("codec", "level", "expected"), read_table(__file__, "compression.tsv"))
def test_levels_of_compression(codec: str, level: str, expected: str) -> None:
    """gzip's is Java's where none is named, not pyarrow's 9."""
    options = write_options({k: v for k, v in ((CODEC, codec), (LEVEL, level)) if v})
    assert f"{options.codec} {options.level}" == expected


def test_delete_files_have_a_level_of_their_own() -> None:
    given = {"write.delete.parquet.compression-codec": "gzip", CODEC: "zstd", LEVEL: "3"}
    assert write_options(given, deletes=True).level == 3
    del given[LEVEL]
    assert write_options(given, deletes=True).level == 6
    assert write_options(given).level is None


def test_a_property_without_the_prefix_is_none_of_parquet() -> None:
    assert write_options({"compression-codec": "brotli", "page-row-limit": "7"}) == write_options(
        {}
    )
