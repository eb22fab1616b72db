"""Implements dbt's adapter interface with icesql's statements and metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Optional, Union

from dbt.adapters.base.impl import AdapterConfig, ConstraintSupport
from dbt.adapters.base.meta import available
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.sql import SQLAdapter
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.exceptions import DbtDatabaseError

from icesql.dbt import statements
from icesql.dbt.connections import IcesqlConnectionManager
from icesql.dbt.relation import IcesqlColumn, IcesqlRelation
from icesql.dbt.statements import is_wider
from icesql.quoting import literal, quoted

if TYPE_CHECKING:
    import agate

_STRATEGIES: Final = ("append", "merge", "delete+insert", "insert_overwrite", "microbatch")


@dataclass
class IcesqlConfig(AdapterConfig):
    """The table options in the config of a model, with the names of Spark, Trino and Athena."""

    partitioned_by: Optional[Union[str, list[str]]] = None
    partition_by: Optional[Union[str, list[str]]] = None
    sorted_by: Optional[Union[str, list[str]]] = None
    location: Optional[str] = None
    format_version: Optional[int] = None
    tblproperties: Optional[dict[str, Any]] = None
    table_properties: Optional[dict[str, Any]] = None


class IcesqlAdapter(SQLAdapter):
    """dbt on Iceberg tables."""

    ConnectionManager = IcesqlConnectionManager
    Relation = IcesqlRelation
    Column = IcesqlColumn
    AdapterSpecificConfigs = IcesqlConfig

    CONSTRAINT_SUPPORT: Final = {
        ConstraintType.check: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.primary_key: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }

    _capabilities = CapabilityDict(
        {
            Capability.SchemaMetadataByRelations: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadataBatch: CapabilitySupport(support=Support.Full),
            Capability.GetCatalogForSingleRelation: CapabilitySupport(support=Support.Full),
            # Concurrent batches of a model would commit to one table, and wait for one another.
            Capability.MicrobatchConcurrency: CapabilitySupport(support=Support.Unsupported),
        }
    )

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        self.Relation.own_database = config.credentials.database

    @classmethod
    def date_function(cls) -> str:
        """SQL for the current time."""
        return "now()"

    @classmethod
    def quote(cls, identifier: str) -> str:
        """A name in double quotes."""
        return quoted(identifier)

    def valid_incremental_strategies(self) -> list[str]:
        """All of dbt's strategies."""
        return list(_STRATEGIES)

    # ------------------------------------------------------------------ types of seeds

    @classmethod
    def convert_text_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Text."""
        return "varchar"

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """bigint or double; decimal(p, s) has to be set with ``column_types``."""
        import agate

        return "double" if agate_table.aggregate(agate.MaxPrecision(col_idx)) else "bigint"

    @classmethod
    def convert_integer_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """64 bits, whatever values the file has now."""
        return "bigint"

    @classmethod
    def convert_datetime_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """A timestamp without a time zone."""
        return "timestamp"

    # ------------------------------------------------------------------ schemas and relations

    def list_schemas(self, database: str | None) -> list[str]:
        """The namespaces of a catalog, inner ones with dots."""
        other = self.Relation.create(database=database).other_catalog
        place = f" FROM {quoted(other)}" if other else ""
        return [row[0] for row in self._rows(f"SHOW SCHEMAS{place}")]

    @available.parse(lambda *a, **k: False)
    def check_schema_exists(self, database: str | None, schema: str) -> bool:
        """True if a namespace of that name exists."""
        return schema in self.list_schemas(database)

    def list_relations_without_caching(self, schema_relation: Any) -> list[IcesqlRelation]:
        """Tables and views of a namespace, from lists only: no metadata file is read."""
        place = schema_relation.without_identifier()
        found = statements.tables_and_views(self._rows, place)
        policy = {"database": True, "schema": True, "identifier": True}
        return [
            self.Relation.create(
                database=schema_relation.database,
                schema=schema_relation.schema,
                identifier=name,
                quote_policy=policy,
                type=kind,
            )
            for name, kind in found
        ]

    @available.parse_none
    def drop_schema(self, relation: Any) -> None:
        """Drop a namespace with its tables and views."""
        place = relation.without_identifier()
        for each in self.list_relations_without_caching(place):
            self.drop_relation(each)
        self._run(f"DROP SCHEMA IF EXISTS {place.render()}")
        self.cache.drop_schema(relation.database, relation.schema)

    def _make_match_kwargs(
        self, database: str | None, schema: str | None, identifier: str | None
    ) -> dict[str, str]:
        # Names keep their case, quoted or not.
        given = {"database": database, "schema": schema, "identifier": identifier}
        return {name: value for name, value in given.items() if value is not None}

    def get_columns_in_relation(self, relation: Any) -> list[IcesqlColumn]:
        """Names and types of the columns; none if the relation does not exist."""
        try:
            sql = f"SELECT * FROM {relation.render()} LIMIT 0"
            columns: list[IcesqlColumn] = self.get_column_schema_from_query(sql)
        except DbtDatabaseError as error:
            if statements.is_missing(error):
                return []
            raise
        return columns

    def expand_column_types(self, goal: Any, current: Any) -> None:
        """Does nothing: no type has a length."""

    @available.parse(lambda *a, **k: False)
    def is_wider(self, relation: Any, column: str, new_type: str) -> bool:
        """True if a column can be widened to another type without new files."""
        types = {each.name: each.dtype for each in self.get_columns_in_relation(relation)}
        return column in types and is_wider(types[column], new_type)

    # ------------------------------------------------------------------ what macros call

    @available
    def purges(self) -> bool:
        """True if DROP TABLE deletes files: the target's setting ``purge``."""
        return bool(self.config.credentials.purge)

    @available
    def literal(self, text: Any) -> str:
        """A text as a SQL literal."""
        return literal(str(text))

    @available.parse(lambda *a, **k: "")
    def seed_select(self, agate_table: agate.Table, types: Sequence[str]) -> str:
        """A SELECT of the rows of a CSV file, each column cast to its type."""
        handle = self.connections.get_thread_connection().handle
        return statements.select_of(handle.connection, agate_table, types)

    @available.parse_none
    def forget_seed(self) -> None:
        """Release the rows of ``seed_select``."""
        statements.forget(self.connections.get_thread_connection().handle.connection)

    @available.parse(lambda *a, **k: "")
    def comments_sql(
        self, relation: Any, description: str | None, columns: dict[str, Any] | None
    ) -> str:
        """The statements that set comments to those of the project; empty if they are equal."""
        return statements.changes_sql(self._rows, relation, description, columns)

    # ------------------------------------------------------------------ docs and freshness

    def _get_one_catalog(
        self, information_schema: Any, schemas: set[str], used_schemas: frozenset[tuple[str, str]]
    ) -> agate.Table:
        relations = self._relations_in(information_schema.database, schemas)
        return self._catalog_of(relations, used_schemas)

    def _get_one_catalog_by_relations(
        self,
        information_schema: Any,
        relations: list[Any],
        used_schemas: frozenset[tuple[str, str]],
    ) -> agate.Table:
        # A project's relations have no kind (table or view), and may not exist.
        wanted = {(each.schema, each.identifier) for each in relations}
        there = self._relations_in(information_schema.database, {schema for schema, _ in wanted})
        found = [each for each in there if (each.schema, each.identifier) in wanted]
        return self._catalog_of(found, used_schemas)

    def _relations_in(self, database: str | None, schemas: set[str]) -> list[IcesqlRelation]:
        found = []
        for schema in sorted(schemas):
            place = self.Relation.create(database=database, schema=schema)
            found += self.list_relations_without_caching(place)
        return found

    def _catalog_of(
        self, relations: Sequence[Any], used_schemas: frozenset[tuple[str, str]]
    ) -> agate.Table:
        used = {schema.lower() for _, schema in used_schemas if schema}
        return statements.agate_table(
            self._rows, [each for each in relations if each.schema.lower() in used]
        )

    def get_catalog_for_single_relation(self, relation: Any) -> Any:
        """The catalog entry of one relation, or None."""
        return statements.of_relation(self._rows, relation)

    def calculate_freshness_from_metadata_batch(
        self, sources: list[Any], macro_resolver: Any = None
    ) -> tuple[list[Any], dict[Any, Any]]:
        """The time of each source's current snapshot: no data file is read."""
        found = {}
        for source in sources:
            modified, now = statements.last_modified(self._rows, source)
            found[source] = self._create_freshness_response(modified, now)
        return [], found

    def _rows(self, sql: str) -> list[Any]:
        _, cursor = self.connections.add_select_query(sql)
        return list(cursor.fetchall())

    def _run(self, sql: str) -> None:
        self.connections.execute(sql)
