"""Differences from Postgres, for which the suite is written; and omissions with their reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import contracts
import pytest
from dbt.tests.adapter.basic import expected_catalog as catalogs
from dbt.tests.adapter.hooks import test_model_hooks as model_hooks
from dbt.tests.adapter.incremental import test_incremental_microbatch as microbatch
from dbt.tests.adapter.simple_seed import seeds
from dbt.tests.util import check_relations_equal
from docs import EXPECTED_OF_A_SEED, EXPECTED_OF_A_VIEW, expected

from tests.tables import read_table


class ShowsOurError:
    DATABASE_ERROR_MESSAGE = 'unexpected "limit"'


class Hooks:
    """A target has no user, no password and no database of that name."""

    def check_hooks(self, state: str, project: Any, host: Any, count: int | None = None) -> None:
        given = {"count": count or 1} if isinstance(self, model_hooks.BaseTestPrePost) else {}
        found = self.get_ctx_vars(state, project=project, **given)  # type: ignore[attr-defined]
        for context in found if isinstance(found, list) else [found]:
            assert context["test_state"] == state
            assert context["target_name"] == "default"
            assert context["target_schema"] == project.test_schema
            assert context["target_threads"] == 4
            assert context["target_type"] == "icesql"
            assert context["run_started_at"]
            assert context["invocation_id"]


class HooksOfAllModels(Hooks):
    """Hooks outside of a transaction call a procedure, where Postgres vacuums."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        called = "call system.rewrite_manifests('{{ this.schema }}.on_model_hook')"
        outside = {"sql": called, "transaction": False}
        before, after = model_hooks.MODEL_PRE_HOOK, model_hooks.MODEL_POST_HOOK
        return {"models": {"test": {"pre-hook": [before, outside], "post-hook": [outside, after]}}}


class Bom:
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        project.run_sql(seeds.seeds__expected_sql)
        place = Path(project.project_root) / "seeds" / "seed_bom.csv"
        place.write_text("\ufeff" + seeds.seed__actual_csv, encoding="utf-8")


class SeedsAreReplaced:
    """There is no cascade: a view of a replaced seed still exists, and is correct."""

    def _check_relation_end_state(self, run_result: Any, project: Any, exists: bool) -> None:
        assert len(run_result) == 1
        check_relations_equal(project.adapter, ["seed_actual", "seed_expected"])
        check_relations_equal(
            project.adapter, ["models__downstream_from_seed_actual", "seed_expected"]
        )


class DropsSchemas:
    @pytest.fixture
    def clear_test_schema(self, project: Any) -> Any:
        yield
        adapter = project.adapter
        with adapter.connection_named("__test"):
            place = adapter.Relation.create(database=project.database, schema=project.test_schema)
            adapter.drop_schema(place)
            adapter.create_schema(place)


class WithoutOffset:
    """Of the texts of times, as DuckDB reads a TIMESTAMP."""

    @pytest.fixture(scope="class")
    def input_model_sql(self) -> str:
        return microbatch._input_model_sql.replace(":00-0'", ":00'")

    @pytest.fixture(scope="class")
    def insert_two_rows_sql(self, project: Any) -> str:
        place = project.adapter.Relation.create(
            database=project.database, schema=project.test_schema
        )
        rows = ", ".join(f"({n}, TIMESTAMP '2020-01-0{n} 00:00:00')" for n in (4, 5))
        return f"insert into {place}.input_model (id, event_time) values {rows}"


class Timestamps:
    """now() is of the session's zone; the texts of dbt's other functions are ours."""

    @pytest.fixture(scope="class")
    def expected_schema(self) -> dict[str, str]:
        return {
            "current_timestamp": "timestamptz",
            "current_timestamp_in_utc_backcompat": "timestamp",
            "current_timestamp_backcompat": "timestamp",
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> None:
        return None


class Integers:
    """Whole numbers of a seed have 64 bits, whatever the file holds now."""

    def assert_columns_equal(self, project: Any, expected: Any, actual: Any) -> None:
        assert [each[1] for each in expected] == ["bigint"]
        assert [each[1] for each in actual] == ["integer"]


class Docs:
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> Any:
        return expected(catalogs.base_expected_catalog, project)


class DocsOfReferences:
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> Any:
        return expected(catalogs.expected_references_catalog, project)


class OneRelation:
    @pytest.fixture(scope="class")
    def expected_catalog_my_seed(self, project: Any) -> Any:
        return EXPECTED_OF_A_SEED(project)

    @pytest.fixture(scope="class")
    def expected_catalog_my_view_model(self, project: Any) -> Any:
        return EXPECTED_OF_A_VIEW(project)


class NullsOfAType:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        from dbt.tests.adapter.utils import fixture_null_compare as fixture

        name = self.NAME  # type: ignore[attr-defined]
        sql = getattr(fixture, f"MODELS__TEST_{name.upper()}_SQL")
        return {
            f"test_{name}.yml": getattr(fixture, f"MODELS__TEST_{name.upper()}_YML"),
            f"test_{name}.sql": sql.replace("null as", "cast(null as integer) as"),
        }


class NullCompare(NullsOfAType):
    NAME = "null_compare"


class MixedNullCompare(NullsOfAType):
    NAME = "mixed_null_compare"


CHANGED: Final[dict[str, type]] = {
    key: globals().get(name) or getattr(contracts, name)
    for key, name in read_table(__file__, "changed.tsv")
}
LEFT_OUT: Final = dict(read_table(__file__, "left_out.tsv"))
