"""Tables that grow with their rows: icesql's, and those of Java by the same statements.

Twin tables of one SQLite catalog get the same random columns: by MERGE WITH SCHEMA EVOLUTION in
Spark's spelling, and by INSERT WITH SCHEMA EVOLUTION … BY NAME, which is ``mergeSchema`` of Spark's
writer. Then Java tells schemas, with their ids, and rows of both.

    python java_schema_evolution.py make FOLDER [--cases 40]            # with icesql
    python java_schema_evolution.py check FOLDER --jars A.jar:B.jar     # with PySpark 4.1

The jars are those of ``java_metadata_tables.py``. Each run prints what differs and exits with 1
if anything does.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

_ANY = "'write.spark.accept-any-schema' = 'true'"
_WIDER = {"int": "bigint", "float": "double", "decimal(9,2)": "decimal(12,2)"}
_LEAVES = ("int", "float", "decimal(9,2)", "string", "date", "boolean", "binary", "timestamp_ntz")
_VALUES = {
    "int": "CAST({n} AS INT)", "bigint": "CAST({n} + 5000000000 AS BIGINT)",
    "float": "CAST({n}.5 AS FLOAT)", "double": "CAST({n}.25 AS DOUBLE)",
    "decimal(9,2)": "CAST({n}.25 AS DECIMAL(9,2))",
    "decimal(12,2)": "CAST(1234567890.25 AS DECIMAL(12,2))",
    "string": "'s{n}'", "date": "DATE '2026-01-0{d}'", "boolean": "true", "binary": "X'0{d}'",
    "timestamp_ntz": "TIMESTAMP_NTZ '2026-01-0{d} 01:02:03'",
}  # fmt: skip

# A type is the name of a leaf, {name: type}, ["list", type] or ["map", type].
Type = Any


def new_type(draw: random.Random, depth: int = 0) -> Type:
    kind = draw.random()
    if depth > 2 or kind < 0.55:
        return draw.choice(_LEAVES)
    if kind < 0.8:
        return {name: new_type(draw, depth + 1) for name in draw.sample("pqru", draw.randint(1, 3))}
    return [draw.choice(("list", "map")), new_type(draw, depth + 1)]


def grown(draw: random.Random, type: Type, depth: int = 0) -> Type:
    """The type with some more: fields anywhere in a struct, wider leaves."""
    if isinstance(type, str):
        return _WIDER.get(type, type) if draw.random() < 0.4 else type
    if isinstance(type, list):
        return [type[0], grown(draw, type[1], depth + 1)]
    fields = [(name, grown(draw, inner, depth + 1)) for name, inner in type.items()]
    for name in draw.sample("pqruvwxy", 2):
        if name not in type and draw.random() < 0.4:
            fields.insert(draw.randint(0, len(fields)), (name, new_type(draw, depth + 1)))
    return dict(fields)


def some(draw: random.Random, type: dict[str, Type]) -> dict[str, Type]:
    """Some of the columns, in another order; the key always."""
    kept = [name for name in type if name == "k" or draw.random() < 0.8]
    draw.shuffle(kept)
    return {name: type[name] for name in kept}


def value(type: Type, number: int) -> str:
    if isinstance(type, str):
        return _VALUES[type].format(n=number, d=number % 9 + 1)
    if isinstance(type, dict):
        inner = ", ".join(f"'{name}', {value(each, number)}" for name, each in type.items())
        return f"named_struct({inner})"
    if type[0] == "list":
        return f"array({value(type[1], number)}, {value(type[1], number + 1)})"
    return f"map('a', {value(type[1], number)})"


def query(type: dict[str, Type], keys: list[int]) -> str:
    """Rows with these keys."""
    selects = []
    for key in keys:
        listed = ", ".join(
            f"{f'CAST({key} AS BIGINT)' if name == 'k' else value(each, key)} AS {name}"
            for name, each in type.items()
        )
        selects.append(f"SELECT {listed}")
    return " UNION ALL ".join(selects)


def ddl(type: Type) -> str:
    if isinstance(type, str):
        return type
    if isinstance(type, dict):
        return f"struct<{', '.join(f'{name}: {ddl(each)}' for name, each in type.items())}>"
    return f"array<{ddl(type[1])}>" if type[0] == "list" else f"map<string, {ddl(type[1])}>"


def union(old: Type, new: Type) -> Type:
    """What a table of one type has after rows of the other."""
    if isinstance(old, dict):
        both = {name: union(each, new[name]) if name in new else each for name, each in old.items()}
        return both | {name: each for name, each in new.items() if name not in old}
    if isinstance(old, list):
        return [old[0], union(old[1], new[1])]
    return new if _WIDER.get(old) == new else old


def case(seed: int) -> tuple[str, list[tuple[str, str]]]:
    """The columns of a table, and statements: ("merge" or "append", text with {t} for the table)."""
    draw = random.Random(seed)
    table = {"k": "bigint"} | {name: new_type(draw) for name in draw.sample("abcd", 2)}
    columns = ", ".join(f"{name} {ddl(each)}" for name, each in table.items())
    steps = [("append", query(table, [1, 2, 3]))]
    for number in range(4):
        wider = {"k": "bigint", **grown(draw, {n: t for n, t in table.items() if n != "k"})}
        given = some(draw, wider)
        keys = [draw.randint(1, 6), 7 + number]
        if draw.random() < 0.4:
            steps.append(("append", query(given, keys)))
        else:
            clauses = ["WHEN MATCHED THEN UPDATE SET *", "WHEN NOT MATCHED THEN INSERT *"]
            taken = list(given)
            if draw.random() < 0.4:
                taken = [each for each in given if draw.random() < 0.6]
                if not taken:
                    continue
                # Spark also widens columns that no clause assigns.
                given = {
                    name: each if name in taken else table.get(name, each)
                    for name, each in given.items()
                }
                sets = ", ".join(f"{each} = s.{each}" for each in taken)
                clauses = [f"WHEN MATCHED THEN UPDATE SET {sets}"]
            text = f"MERGE WITH SCHEMA EVOLUTION INTO {{t}} t USING ({query(given, keys)}) s "
            steps.append(("merge", f"{text}ON t.k = s.k {' '.join(clauses)}"))
            given = {name: given[name] for name in taken}
        table = union(table, given)
    return columns, steps


# ------------------------------------------------------------------ icesql writes


def make(folder: Path, cases: int) -> None:
    import icesql

    (folder / "wh").mkdir(parents=True)
    with icesql.connect(
        "c", uri=f"sqlite:///{folder / 'c.db'}", warehouse=str(folder / "wh"), dialect="spark",
        properties={"init_catalog_tables": "true"},
    ) as con:  # fmt: skip
        con.execute("CREATE SCHEMA ns")
        for seed in range(cases):
            columns, steps = case(seed)
            con.execute(f"CREATE TABLE ns.own{seed} ({columns}) {_properties(seed)}")
            for kind, text in steps:
                statement = text.format(t=f"ns.own{seed}")
                if kind == "append":
                    statement = f"INSERT WITH SCHEMA EVOLUTION INTO ns.own{seed} BY NAME {text}"
                con.execute(statement)
    (folder / "told.json").write_text(json.dumps(cases))


def _properties(seed: int) -> str:
    mode = "merge-on-read" if seed % 2 and seed % 3 else "copy-on-write"
    return f"TBLPROPERTIES ('format-version' = '{seed % 3 + 1}', 'write.merge.mode' = '{mode}')"


# ------------------------------------------------------------------ Java reads


def check(folder: Path, jars: str) -> int:
    from tests.campaigns.java_session import java_session

    spark = java_session(jars, folder / "wh", folder / "c.db")
    failures: list[str] = []
    refused = 0
    for seed in range(json.loads((folder / "told.json").read_text())):
        columns, steps = case(seed)
        twin, own = f"c.ns.twin{seed}", f"c.ns.own{seed}"
        spark.sql(f"CREATE TABLE {twin} ({columns}) USING iceberg {_properties(seed)}")
        try:
            for kind, text in steps:
                if kind == "append":
                    spark.sql(f"ALTER TABLE {twin} SET TBLPROPERTIES ({_ANY})")
                    spark.sql(text).writeTo(twin).options(
                        **{"mergeSchema": "true", "check-ordering": "false"}
                    ).append()
                    spark.sql(
                        f"ALTER TABLE {twin} UNSET TBLPROPERTIES ('write.spark.accept-any-schema')"
                    )
                else:
                    spark.sql(text.format(t=twin))
        except Exception as error:  # of Java, of any kind
            refused += 1
            print(f"{seed}: Spark refuses a {kind}: {str(error).splitlines()[0][:200]}")
            continue
        found, wanted = (_told(spark, each) for each in (own, twin))
        failures += [
            f"{seed} {what}:\n  icesql {found[what]}\n  Java   {wanted[what]}\n  {steps}"
            for what in found
            if found[what] != wanted[what]
        ]
    for each in failures:
        print(each)
    print(f"{len(failures)} differences; Spark refused {refused} cases")
    return 1 if failures else 0


def _told(spark: Any, table: str) -> dict[str, Any]:
    java = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        spark._jsparkSession, table
    )
    return {
        # Spark makes fields of constants required that it adds inside of a struct.
        "schema": java.schema().toString().replace(": required ", ": optional "),
        "last column": java.operations().current().lastColumnId(),
        "rows": sorted(str(list(each)) for each in spark.table(table).collect()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["make", "check"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jars", default="")
    parser.add_argument("--cases", type=int, default=40)
    given = parser.parse_args()
    if given.what == "make":
        make(given.folder, given.cases)
        return 0
    return check(given.folder, given.jars)


if __name__ == "__main__":
    sys.exit(main())
