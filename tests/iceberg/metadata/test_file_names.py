"""The name of the next metadata file."""

from __future__ import annotations

import pytest

from icesql.errors import ProgrammingError
from icesql.iceberg.metadata.writing import is_gzipped, metadata_folder, next_metadata_name


@pytest.mark.parametrize(
    ("base", "name"),
    [
        (None, "00000-u.metadata.json"),
        ("/t/metadata/00000-a.metadata.json", "00001-u.metadata.json"),
        ("/t/metadata/99999-a.gz.metadata.json", "100000-u.metadata.json"),
        ("/t/metadata/v3.metadata.json", "00000-u.metadata.json"),
        ("/t/metadata/x00003-a.metadata.json", "00000-u.metadata.json"),
        ("/t/metadata/3.metadata.json", "00000-u.metadata.json"),
    ],
)
def test_the_number_follows_that_of_the_base(base, name) -> None:
    assert next_metadata_name(base, "u", gzipped=False) == name


def test_the_folder_is_the_tables_unless_a_property_names_another() -> None:
    assert metadata_folder("s3://b/t/", {}) == "s3://b/t/metadata"
    assert metadata_folder("s3://b/t", {"write.metadata.path": "s3://m/t/"}) == "s3://m/t"


def test_a_codec_is_none_or_gzip() -> None:
    assert not is_gzipped({})
    assert is_gzipped({"write.metadata.compression-codec": "GZIP"})
    with pytest.raises(ProgrammingError, match="zstd"):
        is_gzipped({"write.metadata.compression-codec": "zstd"})
