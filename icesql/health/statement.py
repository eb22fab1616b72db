"""The statement that fixes a finding, in icesql's and in Spark's syntax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icesql.frozen import Frozen
from icesql.quoting import literal, spark_name, spark_string
from icesql.sql.table_name import name_text


class Statement(Frozen):
    """Empty strings if there is no fix. ``spark`` uses ``catalog`` as the catalog's name."""

    icesql: str = ""
    spark: str = ""

    def then(self, other: Statement) -> Statement:
        """This statement followed by another one."""
        return Statement(f"{self.icesql}; {other.icesql}", f"{self.spark}; {other.spark}")


def call(procedure: str, table: Sequence[str], **arguments: Any) -> Statement:
    """``CALL system.procedure``; the table is a positional argument if it is the only one."""
    name = Statement(literal(name_text(table)), spark_string(name_text(table, spark_name)))
    if not arguments:
        texts = [name]
    else:
        given = {"table": name} | {key: _value(value) for key, value in arguments.items()}
        texts = [
            Statement(f"{key} => {each.icesql}", f"{key} => {each.spark}")
            for key, each in given.items()
        ]
    return Statement(
        f"CALL system.{procedure}({', '.join(each.icesql for each in texts)})",
        f"CALL catalog.system.{procedure}({', '.join(each.spark for each in texts)})",
    )


def set_properties(table: Sequence[str], properties: Mapping[str, str]) -> Statement:
    """``ALTER TABLE … SET TBLPROPERTIES``."""
    ours = ", ".join(f"{literal(k)} = {literal(v)}" for k, v in properties.items())
    spark = ", ".join(f"{spark_string(k)} = {spark_string(v)}" for k, v in properties.items())
    return Statement(
        f"ALTER TABLE {name_text(table)} SET TBLPROPERTIES ({ours})",
        f"ALTER TABLE catalog.{name_text(table, spark_name)} SET TBLPROPERTIES ({spark})",
    )


def replace_branch(table: Sequence[str], branch: str, snapshot_id: int) -> Statement:
    """``ALTER TABLE … REPLACE BRANCH``."""
    ours, spark = name_text([branch]), name_text([branch], spark_name)
    return Statement(
        f"ALTER TABLE {name_text(table)} REPLACE BRANCH {ours} AS OF VERSION {snapshot_id}",
        f"ALTER TABLE catalog.{name_text(table, spark_name)} REPLACE BRANCH {spark} "
        f"AS OF VERSION {snapshot_id}",
    )


def column(name: str) -> Statement:
    """A column name as a string literal, for arguments such as ``sort_order``."""
    return Statement(literal(name_text([name])), spark_string(name_text([name], spark_name)))


def constant(text: str) -> Statement:
    """A constant with the same spelling in both."""
    return Statement(text, text)


def _value(value: Any) -> Statement:
    match value:
        case Statement():
            return value
        case str():
            return Statement(literal(value), spark_string(value))
        case Mapping():
            return Statement(
                f"map({', '.join(literal(x) for each in value.items() for x in each)})",
                f"map({', '.join(spark_string(x) for each in value.items() for x in each)})",
            )
        case _:
            return constant(str(value).lower())
