"""What users meet on local files: 28 cases against DuckDB on the bare files and its extension.

    python tests/benchmarks/user_cases.py CACHE [--rounds 7] [--cases ev_full,wide_2] [--engines …]

Tables of 800 small files, of months, of 500 columns, nested, of strings and evolved; warm, all rows
fetched. The bare files cannot answer what needs a column's id, so these two cases have the
extension alone beside them. See ``paired`` for how it is measured.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import paired  # type: ignore[import-not-found]
from tpch import environment, warehouse  # type: ignore[import-not-found]
from tpch_all import tables_of  # type: ignore[import-not-found]

TABLES = Path(__file__).with_name("user_tables.py")
WRITER = ("pyiceberg[pyarrow,sql-sqlite,pyiceberg-core]", "numpy")
ENGINES = ("icesql", "files", "duckdb-iceberg")
GOALS = {"files": 1.05, "duckdb-iceberg": 0.95}
CASES = {
    "ev_limit10": "SELECT * FROM events LIMIT 10",
    "ev_topn": "SELECT ts, id FROM events ORDER BY ts DESC, id DESC LIMIT 10",
    "ev_minmax": "SELECT min(ts), max(ts) FROM events",
    "ev_count_part": "SELECT count(*) FROM events WHERE cat = 'cat03'",
    "ev_count_days": "SELECT count(*) FROM events WHERE ts >= TIMESTAMP '2023-11-20' "
    "AND ts < TIMESTAMP '2023-11-30'",
    "ev_count_range": "SELECT count(*) FROM events WHERE value BETWEEN 10 AND 20",
    "ev_group": "SELECT cat, count(*) FROM events GROUP BY cat ORDER BY cat",
    "ev_joinday": "SELECT day, sum(value) FROM events JOIN days ON CAST(ts AS DATE) = day "
    "WHERE marked GROUP BY day ORDER BY day",
    "ev_insub": "SELECT sum(value) FROM events WHERE cat IN (SELECT cat FROM cats WHERE grp = 3)",
    "ev_maxsub": "SELECT count(*), sum(value) FROM events WHERE ts = (SELECT max(ts) FROM events)",
    "ev_full": "SELECT sum(value) FROM events",
    "ev_dfilter": "SELECT count(*), sum(value) FROM events WHERE value > 99.5",
    "ev_point": "SELECT * FROM events WHERE id = 1234567",
    "ev_join": "SELECT grp, sum(value) FROM events JOIN cats ON events.cat = cats.cat "
    "WHERE grp = 3 GROUP BY grp",
    "ev_distinct": "SELECT DISTINCT cat FROM events ORDER BY cat",
    "wide_2": "SELECT sum(c003), sum(c444) FROM wide",
    "wide_limit": "SELECT * FROM wide LIMIT 10",
    "wide_filter": "SELECT c001, c499 FROM wide WHERE c250 = 77",
    "month_q6": "SELECT sum(l_extendedprice * l_discount) AS revenue FROM months "
    "WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' "
    "AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    "month_point": "SELECT * FROM months WHERE l_orderkey = 12325",
    "nest_struct": "SELECT rec.kind, sum(rec.item.price) FROM nested WHERE rec.item.name = 's7' "
    "GROUP BY ALL ORDER BY ALL",
    "nest_unnest": "SELECT u.tag, count(*) FROM nested, UNNEST(tags) AS u(tag) WHERE id < 200000 "
    "GROUP BY u.tag ORDER BY u.tag",
    "nest_list": "SELECT count(*) FROM nested WHERE list_contains(tags, 17)",
    "str_like": "SELECT count(*) FROM strings WHERE text LIKE '%tok bora%'",
    "str_group": "SELECT key, count(*), max(size) FROM strings GROUP BY key ORDER BY key",
    "evo_plain": "SELECT key, sum(amount) FROM plain GROUP BY key ORDER BY key",
    "evo_renamed": "SELECT key, sum(total) FROM evolved GROUP BY key ORDER BY key",
    "evo_added": "SELECT extra, count(*) FROM evolved GROUP BY extra ORDER BY extra",
}
# With folders of partitions the bare files have one column more, and which ten rows come is open.
OTHERWISE = ("ev_limit10", "ev_point", "wide_limit", "month_point")
NOT_OF_FILES = ("evo_renamed", "evo_added")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cache", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--engines", default=",".join(ENGINES))
    options = parser.parse_args()
    cache, engines = options.cache.resolve(), options.engines.split(",")
    folder = cache / "user-cases"
    if not (folder / "done").exists():
        warehouse(cache, 1)
        # Files of an attempt that ended early would be among the bare ones.
        shutil.rmtree(folder, ignore_errors=True)
        python = environment(cache / "env-tables", *WRITER)
        made = [python, TABLES, folder, cache / "raw-1" / "lineitem.parquet"]
        subprocess.run([str(part) for part in made], check=True)
        (folder / "done").touch()
    tables, places = tables_of(folder), paired.pythons(cache, engines)
    print(f"python {platform.python_version()}, {os.cpu_count()} cores")
    table = paired.Table(engines, GOALS)
    for case in options.cases.split(","):
        sql = CASES[case]
        given = {
            "catalog": f"sqlite:///{folder}/catalog.db",
            "namespace": "u",
            "tables": {name: it for name, it in tables.items() if re.search(rf"\b{name}\b", sql)},
            "sql": sql,
        }
        asked = [name for name in engines if name != "files" or case not in NOT_OF_FILES]
        givens = dict.fromkeys(asked, given)
        apart = ("files",) if case in OTHERWISE else ()
        table.line(case, paired.measure(givens, places, options.rounds), apart=apart)
    table.end()


if __name__ == "__main__":
    main()
