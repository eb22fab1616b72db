"""DataFile: one data or delete file as a manifest describes it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from icesql.frozen import Frozen


class FileContent(IntEnum):
    """The content of a file; deletion vectors are POSITION_DELETES in Puffin format."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class DataFile(Frozen):
    """A file of a manifest entry, with inherited values filled in; immutable and picklable.

    ``path`` is the identity, verbatim from the manifest; ``storage`` maps it to the place to open.
    ``partition`` follows the fields of spec ``spec_id``, values in the internal form of
    ``iceberg.types``. ``sequence_number`` is the data sequence number (0 in v1).
    ``record_count`` below 0 means unknown. Counts and bounds are by field id, None when the
    file has none at all; bounds are the raw single-value bytes.
    Source: Iceberg spec, "Manifests".
    """

    content: FileContent
    path: str
    file_format: str  # upper case: PARQUET, AVRO, ORC, PUFFIN
    spec_id: int
    partition: tuple[Any, ...]
    record_count: int
    file_size_in_bytes: int
    sequence_number: int = 0
    file_sequence_number: int | None = None
    snapshot_id: int | None = None
    column_sizes: Mapping[int, int] | None = None
    value_counts: Mapping[int, int] | None = None
    null_value_counts: Mapping[int, int] | None = None
    nan_value_counts: Mapping[int, int] | None = None
    lower_bounds: Mapping[int, bytes] | None = None
    upper_bounds: Mapping[int, bytes] | None = None
    key_metadata: bytes | None = None
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None

    @property
    def is_deletion_vector(self) -> bool:
        """Whether the positions lie in a Puffin blob."""
        return self.file_format == "PUFFIN"
