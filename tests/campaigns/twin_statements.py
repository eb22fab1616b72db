"""Random statements that icesql and Spark SQL both take, about a table whose columns are known.

``{t}`` stands for the table, ``{n}`` for its name without the catalog, ``{s3}`` for the snapshot
that was current after statement 3, and ``{head:b}`` for the newest snapshot of branch b.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

PRIMITIVES: Final = (
    "BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(9, 2)", "DECIMAL(20, 3)", "STRING",
    "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ",
)  # fmt: skip
_WIDER: Final = {"INT": "BIGINT", "FLOAT": "DOUBLE", "DECIMAL(9, 2)": "DECIMAL(15, 2)"}
_TRANSFORMS: Final = {
    "BOOLEAN": ("{}",), "FLOAT": ("{}",), "DOUBLE": ("{}",),
    "INT": ("{}", "bucket(3, {})", "truncate(3, {})"),
    "BIGINT": ("{}", "bucket(3, {})", "truncate(3, {})"),
    "DECIMAL": ("{}", "bucket(2, {})", "truncate(50, {})"),
    "STRING": ("{}", "{}", "bucket(3, {})", "truncate(1, {})"),
    "BINARY": ("{}", "bucket(2, {})", "truncate(1, {})"),
    "DATE": ("{}", "years({})", "months({})", "days({})", "bucket(2, {})"),
    "TIMESTAMP": ("{}", "years({})", "months({})", "days({})", "hours({})", "bucket(2, {})"),
}  # fmt: skip
_VALUES: Final = {
    "BOOLEAN": ("true", "false"),
    "INT": ("0", "1", "-1", "2", "3", "4", "7", "2147483647", "-2147483600"),
    "BIGINT": ("0", "1", "-1", "2", "3", "4", "7", "9223372036854775807", "-9223372036854775800"),
    "FLOAT": ("0", "1.5", "-2.25", "'NaN'", "'Infinity'", "'-0.0'", "1e30"),
    "DOUBLE": ("0", "1.5", "-2.25", "'NaN'", "'-Infinity'", "'-0.0'", "1e300"),
    "DECIMAL": ("0", "1.5", "-1.25", "99.99", "1234567.89", "-50"),
    "STRING": ("''", "'a'", "'b'", "'bc'", "'é/ ='", "'a longer text than sixteen'", "'😀'"),
    "BINARY": ("X''", "X'00'", "X'FF'", "X'0102'"),
    "DATE": ("'1970-01-01'", "'1969-12-31'", "'2024-02-29'", "'2024-03-01'", "'0001-01-01'"),
    "TIMESTAMP": (
        "'1970-01-01 00:00:00'", "'1969-12-31 23:59:59.999999'", "'2024-02-29 12:30:00'",
        "'2024-02-29 13:00:00.5'", "'1900-01-01 00:00:00'",
    ),
}  # fmt: skip
_MODES: Final = ("copy-on-write", "merge-on-read")
_PROPERTIES: Final = (
    ("write.distribution-mode", ("none", "hash", "range")),
    ("write.metadata.metrics.default", ("none", "counts", "truncate(2)", "full")),
    ("commit.manifest.min-count-to-merge", ("2", "3")),
    ("commit.manifest-merge.enabled", ("false", "true")),
    ("write.delete.granularity", ("file", "partition")),
    ("write.object-storage.enabled", ("true",)),
    ("write.parquet.compression-codec", ("snappy", "zstd", "gzip", "uncompressed")),
    ("write.summary.partition-limit", ("5",)),
    ("write.metadata.previous-versions-max", ("2",)),
    ("write.spark.fanout.enabled", ("true", "false")),
)  # fmt: skip


# ------------------------------------------------------------------ columns


@dataclass(frozen=True)
class Type:
    """A type by its SQL name; STRUCT has ``fields``, ARRAY and MAP the types of their parts."""

    name: str
    fields: tuple[Column, ...] = ()
    parts: tuple[Type, ...] = ()

    @property
    def sql(self) -> str:
        match self.name:
            case "STRUCT":
                inner = ", ".join(f"{each.name}: {each.type.sql}" for each in self.fields)
                return f"STRUCT<{inner}>"
            case "ARRAY" | "MAP":
                return f"{self.name}<{', '.join(each.sql for each in self.parts)}>"
        return self.name

    @property
    def stem(self) -> str:
        return self.name.partition("(")[0].removesuffix("_NTZ")


@dataclass(frozen=True)
class Column:
    name: str
    type: Type
    required: bool = False

    @property
    def ddl(self) -> str:
        return f"{self.name} {self.type.sql}{' NOT NULL' if self.required else ''}"


Path = tuple[str, ...]


def leaves(columns: tuple[Column, ...], above: Path = ()) -> list[tuple[Path, Type]]:
    """The primitive columns, also below structs."""
    found: list[tuple[Path, Type]] = []
    for each in columns:
        path = (*above, each.name)
        if each.type.name == "STRUCT":
            found += leaves(each.type.fields, path)
        elif not each.type.parts:
            found.append((path, each.type))
    return found


def edited(
    columns: tuple[Column, ...],
    path: Path,
    edit: Callable[[tuple[Column, ...]], tuple[Column, ...]],
) -> tuple[Column, ...]:
    """The columns with those below a path changed; the empty path is the table's own."""
    if not path:
        return edit(columns)
    return tuple(
        replace(each, type=replace(each.type, fields=edited(each.type.fields, path[1:], edit)))
        if each.name == path[0]
        else each
        for each in columns
    )


# ------------------------------------------------------------------ statements


@dataclass(frozen=True)
class Statement:
    """Texts to run one after another, and what the table has become when they have run.

    ``branch`` is where it writes rows; ``kind`` is a word for reports.
    """

    kind: str
    texts: tuple[str, ...]
    then: Callable[[], None] = lambda: None
    branch: str = "main"


@dataclass
class Table:
    """What is known of the twins, and the chance that draws statements about them."""

    chance: random.Random
    version: int = 2
    columns: tuple[Column, ...] = ()
    spec: list[tuple[str, Path]] = field(default_factory=list)
    sources: set[Path] = field(default_factory=set)
    branches: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    appended: str = ""
    dynamic: bool = False
    ordered: set[Path] = field(default_factory=set)
    rows: int = 0
    names: int = 0

    # -------------------------------------------------------------- values

    def literal(self, kind: Type, nullable: bool = True) -> str:
        chance = self.chance
        if nullable and chance.random() < 0.15:
            return f"CAST(NULL AS {kind.sql})"
        match kind.name:
            case "STRUCT":
                inner = ", ".join(
                    f"'{each.name}', {self.literal(each.type)}" for each in kind.fields
                )
                return f"CAST(named_struct({inner}) AS {kind.sql})"
            case "ARRAY":
                inner = ", ".join(self.literal(kind.parts[0]) for _ in range(chance.randint(0, 3)))
                return f"CAST(array({inner}) AS {kind.sql})"
            case "MAP":
                keys = chance.sample(["'k'", "'l'", "''"], chance.randint(1, 2))
                inner = ", ".join(f"{key}, {self.literal(kind.parts[1])}" for key in keys)
                return f"CAST(map({inner}) AS {kind.sql})"
        value = chance.choice(_VALUES[kind.stem])
        if kind.stem in ("BOOLEAN", "STRING", "BINARY"):
            return value
        return f"CAST({value} AS {kind.sql})"

    def value(self, column: Column) -> str:
        if column.name == "id":
            return f"CAST({self.chance.randint(0, 29)} AS BIGINT)"
        return self.literal(column.type, not column.required or self.chance.random() < 0.03)

    def row(self, columns: tuple[Column, ...] | None = None) -> str:
        return f"({', '.join(self.value(each) for each in columns or self.columns)})"

    def asked(self, kind: Type) -> str:
        """A value to compare with; no zero of floats, whose files Java skips where -0.0 is."""
        found = self.literal(kind, False)
        while kind.name in ("FLOAT", "DOUBLE") and "CAST(0" in found.replace("'-0.0'", "0"):
            found = self.literal(kind, False)
        return found

    def condition(self, owner: str = "") -> str:
        """None that compares a partition source which is NULL: Java's DELETE takes it for true."""
        chance = self.chance
        path, kind = chance.choice([*leaves(self.columns), (("id",), Type("BIGINT"))])
        name, low = owner + ".".join(path), chance.randint(0, 28)
        single: list[Callable[[], str]] = [
            lambda: f"{owner}id BETWEEN {low} AND {low + chance.randint(0, 9)}",
            lambda: f"{owner}id % {chance.randint(2, 5)} = {chance.randint(0, 1)}",
            lambda: f"{owner}id IN ({low}, {chance.randint(0, 29)}, {chance.randint(0, 29)})",
            lambda: f"{name} IS NULL",
            lambda: f"{name} = {self.asked(kind)}",
            lambda: f"{name} {chance.choice(['>', '>='])} {self.asked(kind)}",
            lambda: f"{name} IN ({self.asked(kind)}, {self.asked(kind)})",
        ]
        if kind.name == "STRING":
            single.append(lambda: f"{name} LIKE '{chance.choice(['a', 'b', 'é'])}%'")
        if path not in self.sources:
            single.append(lambda: f"NOT ({name} <=> {self.asked(kind)})")
            single.append(lambda: f"{name} IS NOT NULL")
            single.append(lambda: f"{name} {chance.choice(['<', '<='])} {self.asked(kind)}")

        def one() -> str:
            found = chance.choice(single)()
            known = path in self.sources and name in found and "NULL" not in found
            return f"({found} AND {name} IS NOT NULL)" if known else found

        found = one()
        for _ in range(2):
            if chance.random() < 0.25:
                found = f"({found} {chance.choice(['AND', 'OR'])} {one()})"
        return found

    def new_name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    # -------------------------------------------------------------- definitions

    def random_type(self, depth: int = 2) -> Type:
        chance = self.chance
        drawn = chance.random()
        if depth and drawn < 0.15:
            fields = (
                Column(self.new_name("f"), self.random_type(depth - 1))
                for _ in range(chance.randint(1, 3))
            )
            return Type("STRUCT", tuple(fields))
        if depth and drawn < 0.22:
            return Type("ARRAY", parts=(self.random_type(depth - 1),))
        if depth and drawn < 0.28:
            return Type("MAP", parts=(Type("STRING"), self.random_type(depth - 1)))
        return Type(chance.choice(PRIMITIVES))

    def create(self) -> Statement:
        chance = self.chance
        self.version = chance.choice((1, 2, 2, 3, 3, 3))
        columns = [Column("id", Type("BIGINT"), required=chance.random() < 0.5)]
        columns.append(Column(self.new_name("c"), Type("STRING")))
        columns += [
            Column(self.new_name("c"), self.random_type(), required=chance.random() < 0.1)
            for _ in range(chance.randint(1, 5))
        ]
        self.columns = tuple(columns)
        parts: list[str] = []
        for _ in range(chance.choice((0, 1, 1, 2))):
            drawn = self.random_transform()
            if drawn is not None and drawn[1] not in {path for _, path in self.spec}:
                parts.append(drawn[0])
                self.spec.append(drawn)
                self.sources.add(drawn[1])
        modes = {
            f"write.{each}.mode": chance.choice(_MODES) for each in ("delete", "update", "merge")
        }
        given = {"format-version": str(self.version), **(modes if self.version > 1 else {})}
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        inner = ", ".join(each.ddl for each in self.columns)
        partitioned = f"PARTITIONED BY ({', '.join(parts)}) " if parts else ""
        text = (
            f"CREATE TABLE {{t}} ({inner}) USING iceberg {partitioned}TBLPROPERTIES ({properties})"
        )
        return Statement("create", (text,))

    def random_transform(self) -> tuple[str, Path] | None:
        found = leaves(self.columns)
        path, kind = self.chance.choice(found)
        form = self.chance.choice(_TRANSFORMS[kind.stem])
        if form == "{}" and len(path) > 1:
            return None  # where no other part of the struct is in a file, Java loses its NULLs
        return form.format(".".join(path)), path

    # -------------------------------------------------------------- drawing

    def draw(self) -> Statement:
        """The next statement; ``then`` is called when both have run it."""
        from tests.campaigns.twin_drawing import DRAWN

        while True:
            (name,) = self.chance.choices(list(DRAWN), [weight for _, weight in DRAWN.values()])
            found: Statement | None = DRAWN[name][0](self)
            if found is not None:
                return found
