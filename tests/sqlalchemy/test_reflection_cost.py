"""The number of requests that reflection sends to a remote catalog."""

from __future__ import annotations

import json
from pathlib import Path

from sqlalchemy import MetaData, create_engine, inspect

import icesql
from tests.catalog.rest_server import Server


def test_a_table_is_looked_up_twice(warehouse: Path) -> None:
    with icesql.connect(warehouse=warehouse) as connection:
        assert connection.catalog is not None
        place = connection.catalog.load(("shop", "customers")).metadata_location
    metadata = json.loads(Path(place.removeprefix("file://")).read_text(encoding="utf-8"))
    server = Server()
    for number in range(20):
        answer = {"metadata-location": place, "metadata": metadata, "config": {}}
        server.tables["far", f"t{number}"] = answer
    engine = create_engine(f"icesql://?uri={server.uri}&type=rest")
    try:
        inspector = inspect(engine)
        assert len(inspector.get_table_names("far")) == 20
        before = len(server.asked)
        for _ in range(3):
            assert inspector.has_table("t1", "far")
            assert inspector.get_columns("t1", "far")
        assert len(server.asked) == before + 1
        assert len(inspector.get_table_names("far")) == 20
        assert len(server.asked) == before + 1
        everything = MetaData()
        everything.reflect(engine, schema="far")
        assert len(everything.tables) == 20
        # The names, and of each table its columns and its comment.
        assert len(server.asked) == before + 1 + 1 + 2 * 20
    finally:
        engine.dispose()
        server.close()
