"""Changes of one property of the table ``ns.t``, and a catalog of PyIceberg's that takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from icesql.catalog.pyiceberg import PyIcebergCatalog
from icesql.catalog.writes.change import TableChange
from icesql.iceberg.metadata.changes import updates as u

TABLE: Final = ("ns", "t")


def database(folder: Path) -> PyIcebergCatalog:
    """PyIceberg's catalog in a database, with the namespace ``ns``."""
    from pyiceberg.catalog.sql import SqlCatalog

    theirs = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "wh"))
    made = PyIcebergCatalog(theirs, "c", {"type": "sql"})
    made.create_namespace(("ns",))
    return made


def swapped(catalog: Any, table: Any, value: str, base: str | None = None) -> Any:
    """The outcome of one try to set the property ``k`` where the table is as it was at ``base``."""
    update, when = u.SetProperties({"k": value}), table.metadata.last_updated_ms + 60_000
    change = TableChange((update,), (), table.storage, when)
    return catalog.swap(table.identifier, base or table.metadata_location, change)


def value_of(catalog: Any) -> str | None:
    """The property ``k`` as the catalog has it now."""
    found: str | None = catalog.load(TABLE).metadata.properties.get("k")
    return found
