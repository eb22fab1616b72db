"""A data file as Arrow reads it: from this machine, or from what is fetched of an object store."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icesql.iceberg.manifest.data_file import DataFile
from icesql.read.formats.decode_errors import decoding
from icesql.scan.tasks.task import ScanContext
from icesql.storage.stores.stream import StoredStream


def open_data_stream(file: DataFile, context: ScanContext) -> tuple[Any, StoredStream | None]:
    """Arrow's stream, and what is below it where that is an object store."""
    storage = context.storage
    local = storage.local_path(file.path)
    with decoding(local or file.path):
        if local is not None:
            return pa.OSFile(local, "rb"), None
        stream = storage.open_known(file.path, file.file_size_in_bytes)
        if not isinstance(stream, StoredStream):
            return stream, None
        if stream.file.is_whole:
            data = stream.read()
            return pa.BufferReader(data), None
        return pa.PythonFile(stream, mode="r"), stream
