"""Open a file by the format that its manifest names."""

from __future__ import annotations

from icesql.errors import UnsupportedTableError
from icesql.iceberg.manifest.data_file import DataFile
from icesql.read.formats.reader import FileReader
from icesql.scan.tasks import ScanContext


def open_reader(file: DataFile, context: ScanContext) -> FileReader:
    """Open a data file, or a delete file that is not a deletion vector.

    Raises UnsupportedTableError for an encrypted file or a format that the spec does not know,
    StorageError when the file cannot be reached, CorruptFileError when it is not of its format.
    """
    if file.key_metadata is not None:
        raise UnsupportedTableError("encryption", table=context.table, path=file.path)
    match file.file_format.upper():
        case "PARQUET":
            from icesql.read.formats.parquet import ParquetFileReader

            return ParquetFileReader(file, context)
        case "AVRO":
            from icesql.read.formats.avro import AvroFileReader

            return AvroFileReader(file, context)
        case "ORC":
            from icesql.read.formats.orc import OrcFileReader

            return OrcFileReader(file, context)
        case other:
            raise UnsupportedTableError(f"file format {other}", table=context.table, path=file.path)
