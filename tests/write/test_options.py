"""Options of files as the table's properties have them."""

from __future__ import annotations

import pytest

from icesql.write.options import write_options

CODEC, LEVEL = "write.parquet.compression-codec", "write.parquet.compression-level"


@pytest.mark.parametrize(
    ("properties", "codec", "level"),
    [
        ({}, "gzip", 6),
        ({CODEC: "GZIP"}, "gzip", 6),
        ({CODEC: "gzip", LEVEL: "9"}, "gzip", 9),
        ({CODEC: "zstd"}, "zstd", None),
        ({CODEC: "zstd", LEVEL: "3"}, "zstd", 3),
        ({CODEC: "snappy", LEVEL: "3"}, "snappy", None),
    ],
)
def test_levels_of_compression(properties: dict[str, str], codec: str, level: int | None) -> None:
    """gzip's is Java's where none is named, not pyarrow's 9."""
    options = write_options(properties)
    assert (options.codec, options.level) == (codec, level)


def test_delete_files_have_a_level_of_their_own() -> None:
    given = {"write.delete.parquet.compression-codec": "gzip", CODEC: "zstd", LEVEL: "3"}
    assert write_options(given, deletes=True).level == 3
    del given[LEVEL]
    assert write_options(given, deletes=True).level == 6
    assert write_options(given).level is None
