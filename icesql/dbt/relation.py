"""A table or view by its name, which may be read as it was."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Optional

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import ComponentName, RelationType

from icesql.dbt.names import literal, quoted

# Annotations are read by dbt: they are not postponed here.


@dataclass(frozen=True, eq=False, repr=False)
class IcesqlRelation(BaseRelation):
    """``"namespace"."table"``, with the catalog in front where it is not the connection's own.

    A schema of several parts, such as ``a.b``, is a namespace in a namespace.
    """

    # What dbt calls the connection's own catalog: the adapter says so when it begins.
    own_database: ClassVar[str] = "default"

    require_alias: bool = False
    version: Optional[str] = None
    as_of: Optional[str] = None
    renameable_relations: Any = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )
    replaceable_relations: Any = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )

    def at(self, version: Any = None, timestamp: Any = None) -> "IcesqlRelation":
        """The relation as it was: ``ref('orders').at(version='audit')``.

        ``version`` is a snapshot id, branch or tag, ``timestamp`` what ``TIMESTAMP AS OF`` takes
        as text. What stands for a relation in a unit test stays as it is. Raises ValueError for
        both.
        """
        if version is not None and timestamp is not None:
            raise ValueError(f"{self.render()}: give a version or a timestamp, not both")
        if self.type == RelationType.CTE:
            return self
        made: IcesqlRelation = self.replace(
            version=None if version is None else str(version),
            as_of=None if timestamp is None else str(timestamp),
        )
        return made

    @property
    def other_catalog(self) -> Optional[str]:
        """The catalog, where it is not the connection's own."""
        name = self.path.database
        return name if name and name.lower() != self.own_database.lower() else None

    def quoted(self, identifier: str) -> str:
        """A name in double quotes."""
        return quoted(identifier)

    def _render_iterator(self) -> Iterator[tuple[Optional[ComponentName], Optional[str]]]:
        for key, part in super()._render_iterator():
            name = self.path.schema
            if key == ComponentName.Database and self.other_catalog is None:
                yield key, None
            elif key == ComponentName.Schema and part is not None and name and "." in name:
                # Quoted or not, each part is a name.
                yield key, ".".join(quoted(each) for each in name.split("."))
            else:
                yield key, part

    def render(self) -> str:
        """The name as SQL writes it, and the version or time that is read."""
        text: str = super().render()
        if self.version is not None:
            is_id = self.version.lstrip("-").isdigit()
            return f"{text} VERSION AS OF {self.version if is_id else literal(self.version)}"
        if self.as_of is not None:
            return f"{text} TIMESTAMP AS OF {literal(self.as_of)}"
        return text
