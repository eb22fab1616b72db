"""``spark.read.format("icesql")`` and ``readStream``: a Python Data Source over scan tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import icesql.errors
from icesql.errors import ProgrammingError

_CONNECT = ("catalog", "uri", "warehouse", "properties")


def register(session: Any, **connect: Any) -> None:
    """Let ``session.read.format("icesql")`` and ``readStream`` read Iceberg tables.

    ``connect`` says where names are looked up, as in ``icesql.connect``: catalog, uri, warehouse,
    properties. It travels inside the source, not in options, so no plan or log shows it. Read
    options: ``snapshot-id``, ``as-of-timestamp`` (ms), ``branch``, ``tag``, ``columns`` ("a, b"),
    ``split-size``; for streams see ``spark_stream``. Raises ProgrammingError for another option.
    """
    unknown = set(connect) - set(_CONNECT)
    if unknown:
        raise ProgrammingError(
            f"register() knows {', '.join(_CONNECT)}, not {', '.join(sorted(unknown))}"
        )
    chosen = {name: value for name, value in connect.items() if value is not None}
    if "warehouse" in chosen:
        chosen["warehouse"] = str(chosen["warehouse"])
    if "catalog" in chosen:
        chosen["name"] = chosen.pop("catalog")
    folder = str(Path(icesql.errors.__file__).resolve().parent.parent)
    session.dataSource.register(_source(folder, chosen))


def _source(folder: str, connect: dict[str, Any]) -> Any:
    """The DataSource class; nested, so that it travels by value to where icesql must be found."""
    from pyspark.sql.datasource import DataSource

    class IcesqlDataSource(DataSource):  # type: ignore[misc, unused-ignore]
        @classmethod
        def name(cls) -> str:
            return "icesql"

        def _tables(self) -> Any:
            import sys

            if folder not in sys.path:
                sys.path.append(folder)
            from icesql.engine.spark.planning import Planning

            return Planning(dict(self.options), connect)

        def schema(self) -> str:
            ddl: str = self._tables().schema()
            return ddl

        def reader(self, schema: Any) -> Any:
            return self._tables().reader()

        def streamReader(self, schema: Any) -> Any:
            return self._tables().stream_reader()

    return IcesqlDataSource
