"""The rows of a result as Arrow, and as what libraries make of Arrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from icesql.dbapi.script import one_frame
from icesql.errors import MissingExtraError, ProgrammingError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from icesql.engine.protocol import Result


class ArrowRows(ABC):
    """The formats of a cursor besides rows of Python values; each reads the result, once."""

    @abstractmethod
    def _rows(self) -> Result:
        """The open result. Raises ProgrammingError without one, InterfaceError when closed."""

    @abstractmethod
    def _at_work(self) -> AbstractContextManager[None]:
        """Context manager whose errors are reported as the cursor's."""

    @one_frame
    def arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        with self._at_work():
            return self._rows().arrow_reader().read_all()

    def fetch_arrow_table(self) -> pa.Table:
        """``arrow()``, as other drivers call it."""
        return self.arrow()

    @one_frame
    def arrow_reader(self) -> pa.RecordBatchReader:
        """All rows as a stream of record batches; memory stays bounded.

        The stream outlives this cursor and its connection, unless they are closed.
        """
        with self._at_work():
            return self._rows().arrow_reader()

    def fetch_record_batches(self, rows: int = 1_000_000) -> pa.RecordBatchReader:
        """All rows as a stream of record batches of ``rows`` rows each, the last one shorter.

        Raises ProgrammingError for ``rows`` below 1.
        """
        from icesql.dbapi.batches import in_batches_of

        if rows < 1:
            raise ProgrammingError(f"a record batch cannot have {rows} rows; give 1 or more")
        return in_batches_of(rows, self.arrow_reader())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All rows as a PyCapsule of an ArrowArrayStream, for any library that takes one.

        Source: Arrow PyCapsule interface.
        """
        return self.arrow_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The Arrow schema of the result as a PyCapsule; no row is read."""
        from icesql.engine.result_schema import arrow_schema

        with self._at_work():
            return arrow_schema(self._rows().columns).__arrow_c_schema__()

    @one_frame
    def pl(self) -> polars.DataFrame:
        """All rows as a Polars DataFrame. Raises MissingExtraError without Polars."""
        try:
            import polars
        except ImportError as error:
            raise MissingExtraError("polars", extra="polars") from error
        from icesql.dbapi.frames import polars_frame

        with self._at_work():
            result = self._rows()
            return polars_frame(polars, result.arrow_reader().read_all(), result.columns)

    @one_frame
    def df(self) -> pandas.DataFrame:
        """All rows as a pandas DataFrame.

        Sums of integers are int64 where they fit. Raises MissingExtraError without pandas,
        DataError for values that pandas has none for.
        """
        try:
            import pandas  # noqa: F401 - to report early that it is missing
        except ImportError as error:
            raise MissingExtraError("pandas", extra="pandas") from error
        from icesql.dbapi.frames import data_frame

        with self._at_work():
            result = self._rows()
            return data_frame(result.arrow_reader().read_all(), result.columns)

    def fetchdf(self) -> pandas.DataFrame:
        """``df()``, as other drivers call it."""
        return self.df()
