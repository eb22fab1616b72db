"""All figures of the manual's table "Figures" on this machine, one benchmark after another.

    python tests/benchmarks/run_all.py CACHE [--only tpch_all,stores]

CACHE keeps data and the environments of the peers, which are made with pip as they are needed: about
3 GB, and an hour and a half the first time. Each benchmark prints its own lines, with ratios of
icesql to its peers; the end says which of them failed. Leave the machine alone meanwhile.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

# Its arguments, where CACHE stands for the folder, and what it measures.
BENCHMARKS = {
    "tpch_all": (["CACHE"], "TPC-H SF1, 22 queries, warm"),
    "user_cases": (["CACHE"], "28 cases of users: many small files, months, wide, nested, evolved"),
    "stores": (["CACHE"], "tables in an object store at 30 ms a request"),
    "planning": (["--files", "50000", "--filters", "one id"], "planning 50,000 files"),
    "cold": (["CACHE"], "a command from start to exit"),
    "clients": (["CACHE"], "point lookups of 16 threads"),
    # After tpch_all, which makes lineitem.
    "compaction": (["CACHE/tpch-raw-1/lineitem.parquet", "CACHE/small"], "small files made one"),
    "converting": (["CACHE/tpch-raw-1/lineitem.parquet", "CACHE/upserts"], "deletes converted"),
    "writing": (["CACHE/tpch-raw-1/lineitem.parquet"], "INSERT of lineitem"),
    "merging": (["CACHE/merging"], "MERGE of one row of a hundred"),
    "upserts": ([], "upserts of a million keys, and of 200 columns"),
    "commits": (["CACHE"], "3,000 commits of ten rows"),
    "spark_peers": (["CACHE", "--scale", "1"], "TPC-H SF1 on Spark, Iceberg's jar and Comet"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cache", type=Path)
    parser.add_argument("--only", default=",".join(BENCHMARKS))
    options = parser.parse_args()
    cache = options.cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in options.only.split(","):
        arguments, title = BENCHMARKS[name]
        given = [each.replace("CACHE", str(cache)) for each in arguments]
        print(f"\n## {title} ({name}.py)", flush=True)
        script = str(Path(__file__).with_name(f"{name}.py"))
        if subprocess.run([sys.executable, script, *given], check=False).returncode:
            failed.append(name)
    print(f"\nfailed: {', '.join(failed)}" if failed else "\nall of them ran")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
