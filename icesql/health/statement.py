"""The statement that mends a finding, as icesql spells it and as Spark does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from icesql.sql.table_name import is_plain_name, name_text


class Statement(Struct, frozen=True):
    """Empty texts where nothing mends it. In ``spark`` the catalog is called ``catalog``."""

    icesql: str = ""
    spark: str = ""

    def then(self, other: Statement) -> Statement:
        """This one and another one after it."""
        return Statement(f"{self.icesql}; {other.icesql}", f"{self.spark}; {other.spark}")


def call(procedure: str, table: Sequence[str], **arguments: Any) -> Statement:
    """``CALL system.procedure``; the table is named by place where it is the only argument."""
    name = Statement(_literal(name_text(table)), _spark_literal(_spark_name(table)))
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
    ours = ", ".join(f"{_literal(k)} = {_literal(v)}" for k, v in properties.items())
    spark = ", ".join(f"{_spark_literal(k)} = {_spark_literal(v)}" for k, v in properties.items())
    return Statement(
        f"ALTER TABLE {name_text(table)} SET TBLPROPERTIES ({ours})",
        f"ALTER TABLE catalog.{_spark_name(table)} SET TBLPROPERTIES ({spark})",
    )


def replace_branch(table: Sequence[str], branch: str, snapshot_id: int) -> Statement:
    """``ALTER TABLE … REPLACE BRANCH``."""
    ours, spark = name_text([branch]), _spark_name([branch])
    return Statement(
        f"ALTER TABLE {name_text(table)} REPLACE BRANCH {ours} AS OF VERSION {snapshot_id}",
        f"ALTER TABLE catalog.{_spark_name(table)} REPLACE BRANCH {spark} "
        f"AS OF VERSION {snapshot_id}",
    )


def column(name: str) -> Statement:
    """A column in a text, such as the one of ``sort_order``."""
    return Statement(_literal(name_text([name])), _spark_literal(_spark_name([name])))


def constant(text: str) -> Statement:
    """A constant that both spell alike."""
    return Statement(text, text)


def _value(value: Any) -> Statement:
    match value:
        case Statement():
            return value
        case str():
            return Statement(_literal(value), _spark_literal(value))
        case Mapping():
            return Statement(
                f"map({', '.join(_literal(x) for each in value.items() for x in each)})",
                f"map({', '.join(_spark_literal(x) for each in value.items() for x in each)})",
            )
        case _:
            return constant(str(value).lower())


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _spark_literal(text: str) -> str:
    return "'" + re.sub(r"[\\']", r"\\\g<0>", text) + "'"


def _spark_name(parts: Sequence[str]) -> str:
    """Spark quotes names with backticks."""
    return ".".join(
        each if is_plain_name(each) else "`" + each.replace("`", "``") + "`" for each in parts
    )
