"""A target of ``profiles.yml``: what ``icesql.connect`` takes, by the same names."""

from dataclasses import dataclass, field
from typing import Any, Optional, Union

from dbt.adapters.contracts.connection import Credentials

# Annotations are read by dbt when the profile is: they are not postponed here.


@dataclass
class IcesqlCredentials(Credentials):
    """The catalog, the namespace (``schema``) of the models, and how statements run.

    ``catalog`` is a name of ``.pyiceberg.yaml``; ``uri``, ``warehouse`` and ``properties`` say what
    that file would. ``database`` is what dbt calls the connection's own catalog, which SQL does not
    name: views stay readable where the catalog has another name.
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
        """The identity of a lake; dbt hashes it."""
        return self.catalog or self.uri or self.warehouse or "icesql"

    def _connection_keys(self) -> tuple[str, ...]:
        # uri and properties may hold passwords and tokens; dbt prints these of `dbt debug`.
        return ("database", "schema", "catalog", "warehouse", "engine", "timezone", "branch")

    def arguments(self) -> dict[str, Any]:
        """The arguments of ``icesql.connect``."""
        return {
            "catalog": self.catalog,
            "uri": self.uri,
            "warehouse": self.warehouse,
            # YAML reads true and 4 where the catalog wants texts.
            "properties": {name: _text(value) for name, value in self.properties.items()},
            "settings": {name: _text(value) for name, value in self.settings.items()},
            "timezone": self.timezone,
            "engine": self.engine,
            "master": self.master,
            "remote": self.remote,
            "files": self.files,
            # Limits on what may be read make a connection read-only unless it says otherwise.
            "read_only": False if self.files is not None else None,
        }


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
