"""Contracts of models: types by our names, and NOT NULL as the one constraint."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.constraints import fixtures

_BY_FOREIGN_KEY = """
create or replace table <model_identifier> (
    id integer not null, color varchar, date_day varchar
) as (
    select id, color, date_day
    from (
        -- depends_on: <foreign_key_model_identifier>
        select 'blue' as color, 1 as id, '2019-01-01' as date_day
    ) as model_subq
)
"""
_QUOTED = """
create or replace table <model_identifier> (
    id integer not null, "from" varchar not null, date_day varchar
) as (
    select id, "from", date_day
    from (
        select 'blue' as "from", 1 as id, '2019-01-01' as date_day
    ) as model_subq
)
"""


class Types:
    @pytest.fixture
    def string_type(self) -> str:
        return "varchar"

    @pytest.fixture
    def schema_string_type(self) -> str:
        return "varchar"

    @pytest.fixture
    def int_type(self) -> str:
        return "integer"

    @pytest.fixture
    def schema_int_type(self) -> str:
        return "integer"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "integer", "integer"],
            ["'1'", "varchar", "varchar"],
            ["cast('2019-01-01' as date)", "date", "date"],
            ["true", "boolean", "boolean"],
            ["cast('2013-11-03 00:00:00' as timestamp)", "timestamp", "timestamp"],
            ["cast('2013-11-03 00:00:00' as timestamptz)", "timestamptz", "timestamptz"],
            ["['a', 'b', 'c']", "varchar[]", "varchar[]"],
            ["{'a': 1}", "struct(a integer)", "struct(a integer)"],
            ["cast('1' as decimal(9, 2))", "decimal(9,2)", "decimal(9,2)"],
        ]


class Ddl:
    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return _BY_FOREIGN_KEY


class QuotedDdl:
    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return _QUOTED


class NotNull:
    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ['NULL in required column "id"']


def _with_our_setting(model: str) -> str:
    """A model with SET as its header, and a query that shows the setting."""
    text = model.replace("set session time zone 'Asia/Kolkata'", "set timezone = 'Asia/Kolkata'")
    shown = "strftime(timestamptz '2026-01-31 00:00:00+00:00', '%H:%M')"
    return text.replace("current_setting('timezone')", shown)


class Header:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_contract_sql_header.sql": _with_our_setting(
                fixtures.my_model_contract_sql_header_sql
            ),
            "constraints_schema.yml": fixtures.model_contract_header_schema_yml,
        }


class IncrementalHeader:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_contract_sql_header.sql": _with_our_setting(
                fixtures.my_model_incremental_contract_sql_header_sql
            ),
            "constraints_schema.yml": fixtures.model_contract_header_schema_yml,
        }
