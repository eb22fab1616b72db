"""ALTER TABLE of columns, and DROP TABLE … PURGE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql


@pytest.mark.parametrize("catalog", ["sqlite"], indirect=True)
def test_purge(con: icesql.Connection, catalog: dict[str, Any]) -> None:
    for name in ("kept", "gone"):
        con.execute(f"CREATE TABLE s.{name} AS SELECT 1 AS a")
    con.execute("DROP TABLE s.kept")
    con.execute("DROP TABLE s.gone PURGE")
    (left,) = Path(catalog["warehouse"]).parent.rglob("*.parquet")
    assert "/kept/" in str(left)
