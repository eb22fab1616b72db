"""A target of ``profiles.yml``: arguments of ``icesql.connect``, with the same names."""

from dataclasses import dataclass, field
from typing import Any, Optional, Union

from dbt.adapters.contracts.connection import Credentials

from icesql.config import property_text

# dbt evaluates these annotations at run time, so they are not postponed.


@dataclass
class IcesqlCredentials(Credentials):
    """The catalog, the namespace (``schema``) of the models, and how statements run.

    ``catalog`` is a name of ``.pyiceberg.yaml``; ``uri``, ``warehouse`` and ``properties`` give
    directly what that file would contain. ``database`` is dbt's name for the connection's own
    catalog. Rendered SQL omits it, so that views stay readable where the catalog has another name.
    """

    database: Optional[str] = None
    schema: str = "default"
    catalog: Optional[str] = None
    uri: Optional[str] = None
    warehouse: Optional[str] = None
    properties: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    timezone: Optional[str] = None
    engine: Optional[str] = None
    master: Optional[str] = None
    remote: Optional[str] = None
    files: Union[bool, str, list[str], None] = None
    branch: Optional[str] = None
    purge: bool = False
    retries: int = 3

    def __post_init__(self) -> None:
        self.database = self.database or self.catalog or "default"

    @property
    def type(self) -> str:
        """The name of this adapter."""
        return "icesql"

    @property
    def unique_field(self) -> str:
        """The identity of the catalog, which dbt hashes."""
        return self.catalog or self.uri or self.warehouse or "icesql"

    def _connection_keys(self) -> tuple[str, ...]:
        # uri and properties may hold passwords and tokens; dbt prints these of `dbt debug`.
        return ("database", "schema", "catalog", "warehouse", "engine", "timezone", "branch")

    def arguments(self) -> dict[str, Any]:
        """The arguments of ``icesql.connect``."""
        same = ("catalog", "uri", "warehouse", "timezone", "engine", "master", "remote", "files")
        return {
            **{name: getattr(self, name) for name in same},
            # YAML yields booleans and numbers; catalogs and settings need strings.
            "properties": {name: property_text(value) for name, value in self.properties.items()},
            "settings": {name: property_text(value) for name, value in self.settings.items()},
            # A connection with read limits is read-only by default.
            "read_only": False if self.files is not None else None,
        }
