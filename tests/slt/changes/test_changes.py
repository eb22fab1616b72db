"""Runs the cases of the .slt files here: statements that change a catalog, and what they leave."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.slt.runner import READS, Case, read_cases, run_record

FILES = sorted(Path(__file__).parent.glob("*.slt"))
_SETTINGS = (
    "caches = on",
    "local_reader = 'arrow'",
    "caches = off",
    "prune = off",
    "local_reader = 'auto'",
)
_AFTER = ("RESET local_reader", "RESET caches", "RESET prune")


def runs() -> Iterator[Any]:
    for path in FILES:
        for case in read_cases(path):
            for catalog in case.catalogs:
                for values in case.values or [{}]:
                    name = "-".join([path.stem, case.name, catalog, *values.values()])
                    yield pytest.param(path.name, case, values, catalog, id=name)


@contextmanager
def arguments(kind: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Those of ``connect`` for an empty catalog of a kind."""
    warehouse = folder / "warehouse"
    warehouse.mkdir()
    match kind:
        case "directory":
            yield {"warehouse": str(warehouse)}
        case "sqlite":
            place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": str(warehouse)}
            yield place | {"properties": {"init_catalog_tables": "true"}}
        case "rest":
            from tests.catalog.writes.rest_writes import WritableServer

            with closing(WritableServer(warehouse)) as server:
                yield {"uri": server.uri}
        case _:
            raise ValueError(f"no kind of catalog is called {kind}")


@pytest.mark.parametrize(("file", "case", "values", "catalog"), list(runs()))
def test_what_statements_leave(
    file: str, case: Case, values: dict[str, str], catalog: str, tmp_path: Path
) -> None:
    """Queries by both readers, again, and with caches and pruning off; a refused statement leaves
    the files as they were."""

    def files() -> list[Path]:
        return sorted(each for each in tmp_path.rglob("*") if each.is_file())

    with (
        arguments(catalog, tmp_path) as given,
        icesql.connect(**given, files=True) as connection,
    ):
        connection.execute("CREATE SCHEMA s")
        for record in case.records:
            sql = record.sql
            for name, value in values.items():
                sql = sql.replace(f"${{{name}}}", value)
            record, before = replace(record, sql=sql), files()
            try:
                run_record(connection, record, None)
                if record.kind == "query" and READS.match(sql):
                    for setting in _SETTINGS:
                        connection.execute(f"SET {setting}")
                        run_record(connection, record, None)
                    for setting in _AFTER:
                        connection.execute(setting)
                assert record.kind != "error" or files() == before, "the statement left files"
            except (AssertionError, icesql.Error) as error:
                pytest.fail(f"{file}:{record.line}\n{sql}\n{error}", pytrace=False)
