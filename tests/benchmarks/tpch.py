"""TPC-H as Iceberg tables: the queries of the benchmark and how the data is made.

Imports only the standard library at the top, because peers read the queries from environments of their
own.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

QUERIES = {
    "count": "SELECT count(*) FROM lineitem",
    "point": "SELECT * FROM lineitem WHERE l_orderkey = 12345 ORDER BY l_linenumber",
    "q1": """
        SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty,
               sum(l_extendedprice) AS sum_base_price,
               sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
               sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
               avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price,
               avg(l_discount) AS avg_disc, count(*) AS count_order
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    "q3": """
        SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate,
               o_shippriority
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
        WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15'
          AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority
        ORDER BY revenue DESC, o_orderdate LIMIT 10""",
    "q5": """
        SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer JOIN orders ON c_custkey = o_custkey
        JOIN lineitem ON l_orderkey = o_orderkey
        JOIN supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey
        JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
        WHERE r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01'
          AND o_orderdate < DATE '1995-01-01'
        GROUP BY n_name ORDER BY revenue DESC""",
    "q6": """
        SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
          AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    "q9": """
        SELECT nation, o_year, sum(amount) AS sum_profit
        FROM (SELECT n_name AS nation, extract(year FROM o_orderdate) AS o_year,
                     l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
              FROM part JOIN lineitem ON p_partkey = l_partkey
              JOIN supplier ON s_suppkey = l_suppkey
              JOIN partsupp ON ps_suppkey = l_suppkey AND ps_partkey = l_partkey
              JOIN orders ON o_orderkey = l_orderkey
              JOIN nation ON s_nationkey = n_nationkey
              WHERE p_name LIKE '%green%') AS profit
        GROUP BY nation, o_year ORDER BY nation, o_year DESC""",
    "q18": """
        SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON o_orderkey = l_orderkey
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey
                             HAVING sum(l_quantity) > 300)
        GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
        ORDER BY o_totalprice DESC, o_orderdate LIMIT 100""",
}
JOINED = ("q1", "q3", "q5", "q6", "q9", "q18")

TABLES = {
    "lineitem": ("count", "point", "q1", "q3", "q5", "q6", "q9", "q18"),
    "orders": ("q3", "q5", "q9", "q18"),
    "customer": ("q3", "q5", "q18"),
    "supplier": ("q5", "q9"),
    "nation": ("q5", "q9"),
    "region": ("q5",),
    "part": ("q9",),
    "partsupp": ("q9",),
}
LINEITEM_FILES = 4

# What a user of PyIceberg's scan would write by hand: columns and row filter per table.
_ALL = ("*",)
PROJECTIONS: dict[str, dict[str, tuple[tuple[str, ...], str | None]]] = {
    "count": {"lineitem": (("l_linenumber",), None)},
    "point": {"lineitem": (_ALL, "l_orderkey = 12345")},
    "q1": {
        "lineitem": (
            (
                "l_returnflag", "l_linestatus", "l_quantity", "l_extendedprice", "l_discount",
                "l_tax", "l_shipdate",
            ),
            "l_shipdate <= '1998-09-02'",
        )
    },
    "q3": {
        "customer": (("c_custkey", "c_mktsegment"), "c_mktsegment = 'BUILDING'"),
        "orders": (
            ("o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"),
            "o_orderdate < '1995-03-15'",
        ),
        "lineitem": (
            ("l_orderkey", "l_extendedprice", "l_discount", "l_shipdate"),
            "l_shipdate > '1995-03-15'",
        ),
    },
    "q5": {
        "customer": (("c_custkey", "c_nationkey"), None),
        "orders": (
            ("o_orderkey", "o_custkey", "o_orderdate"),
            "o_orderdate >= '1994-01-01' and o_orderdate < '1995-01-01'",
        ),
        "lineitem": (("l_orderkey", "l_suppkey", "l_extendedprice", "l_discount"), None),
        "supplier": (("s_suppkey", "s_nationkey"), None),
        "nation": (_ALL, None),
        "region": (_ALL, "r_name = 'ASIA'"),
    },
    "q6": {
        "lineitem": (
            ("l_extendedprice", "l_discount", "l_shipdate", "l_quantity"),
            "l_shipdate >= '1994-01-01' and l_shipdate < '1995-01-01' and l_quantity < 24",
        )
    },
    "q9": {
        "part": (("p_partkey", "p_name"), None),
        "lineitem": (
            (
                "l_orderkey", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice",
                "l_discount",
            ),
            None,
        ),
        "supplier": (("s_suppkey", "s_nationkey"), None),
        "partsupp": (("ps_suppkey", "ps_partkey", "ps_supplycost"), None),
        "orders": (("o_orderkey", "o_orderdate"), None),
        "nation": (_ALL, None),
    },
    "q18": {
        "customer": (("c_custkey", "c_name"), None),
        "orders": (("o_orderkey", "o_custkey", "o_orderdate", "o_totalprice"), None),
        "lineitem": (("l_orderkey", "l_quantity"), None),
    },
}  # fmt: skip


def environment(folder: Path, *requirements: str) -> Path:
    """The Python of a virtual environment with these packages, made once."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *requirements], check=True)
    return python


def warehouse(cache: Path, scale: float) -> Path:
    """A folder with the TPC-H tables in Iceberg (``catalog.db`` beside them), made once."""
    folder = cache / f"tpch-tables-{scale:g}"
    if (folder / "done").exists():
        return folder
    raw = cache / f"raw-{scale:g}"
    if not raw.exists():
        python = environment(cache / "env-tpchgen", "tpchgen-cli")
        command = [python.with_name("tpchgen-cli"), "parquet", "-s", f"{scale:g}"]
        subprocess.run([*command, f"--output-dir={raw}"], check=True)
    folder.mkdir(parents=True, exist_ok=True)
    print(f"writing {folder}", file=sys.stderr)
    _write(folder, raw)
    (folder / "done").touch()
    return folder


def _write(folder: Path, raw: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("tpch", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("tpch")
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    for name in TABLES:
        rows = pq.read_table(raw / f"{name}.parquet")
        fields = [field.with_type(plain.get(field.type, field.type)) for field in rows.schema]
        rows = rows.cast(pa.schema(fields))
        table = catalog.create_table(f"tpch.{name}", schema=rows.schema)
        files = LINEITEM_FILES if name == "lineitem" else 1
        size = -(-rows.num_rows // files)
        for start in range(0, rows.num_rows, size):
            table.append(rows.slice(start, size))
