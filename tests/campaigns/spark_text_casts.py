"""CAST and TRY_CAST of drawn texts, PySpark the judge.

    python tests/campaigns spark_text_casts judge [--count 2000] [--seed 1] > answers.tsv
    python tests/campaigns spark_text_casts compare answers.tsv [--constants 200]

``judge`` draws texts and writes one line for each text and type: the zone, the type, the text in
JSON, and what PySpark makes of it as text, or ``null``. ``compare`` asks icesql the same in dialect
"spark", of a column for all lines, and of constants for as many. Texts of the forms that casts.py calls
an error of icesql's own are to end by it, and are counted apart.
Answers are of one day: a time of day as TIMESTAMP is one of today.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Literal

TYPES = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE",
         "DECIMAL(10,2)", "DECIMAL(38,10)", "BOOLEAN")  # fmt: skip
ZONE = "America/New_York"
_BLANKS = ("",) * 11 + (" ", "  ", "\t", "\n", "\u00a0", "\u3000", "\x00", "\x1f", "\r", "\v")
_ZONES = ("", "", "", "Z", "z", "UTC", "GMT", "UT", "+00:00", "-08:00", "+5", "+05", "+0530", "+5:30",
          "+05:3", "-18:00", "+18:01", "+19:00", "+01:02:03", "+010203", "UTC+3", "GMT-5", "UT+01:30",
          "America/New_York", "america/new_york", "Europe/Warsaw", "EST", "PST", "CET", "Etc/GMT+3",
          "Mars/Olympus", " UTC", " Z", " +01:00", " Europe/Warsaw", "+24:00", "-0", "+", "-")  # fmt: skip
_NUMBERS = ("0", "00", "1", "7", "12", "007", "127", "128", "-128", "2147483647", "2147483648",
            "9223372036854775807", "9223372036854775808", "99999999.995", "1.5", "1.", ".5", ".", "1e3",
            "1E3", "1e-3", "1e", "e5", "1e400", "1e-400", "4e38", "1.005", "2.675", "0.1", "-0", "-0.0",
            "inf", "Infinity", "-inf", "+Infinity", "nan", "NaN", "-nan", "infinit", "1f", "1d", "1L",
            "1.5D", "1_000", "1,000", "0x1F", "0x1p3", "1e+3", "1 000", "\u0661", "１２", "",
            "123456789012345678901234567890.12345", "0.000000000049", "1e37", "5e-11", "true", "T", "y",
            "yes", "no", "f", "N", "tru", "on", "off", "1.9", "-1.9", "127.9", "-129.1")  # fmt: skip


def drawn(source: random.Random) -> str:
    """A text, more often almost right than not."""
    body = _number(source) if source.random() < 0.35 else _moment(source)
    text = source.choice(_BLANKS) + body + source.choice(_BLANKS)
    if source.random() < 0.06 and text:
        at = source.randrange(len(text))
        text = (
            text[:at] + source.choice(["", " ", "x", "-", ":", ".", "T", "0", "é"]) + text[at + 1 :]
        )
    return text


def _number(source: random.Random) -> str:
    return source.choice(["", "", "", "+", "-", "--", "- "]) + source.choice(_NUMBERS)


def _moment(source: random.Random) -> str:
    year = source.choice(["2020", "2019", "1900", "0001", "0000", "9999", "1582", "99", "12020", "020",
                          "-0001", "+2020", "294246", "2024", "2021", "1999", "1970"])  # fmt: skip
    month = source.choice(
        ["1", "02", "2", "12", "10", "11", "3", "03", "07", "4", "13", "0", "012"]
    )
    day = source.choice(["1", "01", "9", "28", "29", "15", "8", "08", "30", "31", "32", "00"])
    date = source.choice([f"{year}-{month}-{day}"] * 7 + [f"{year}-{month}", year, f"{year}/{month}/{day}",
                         f"{year}-{month}-", ""])  # fmt: skip
    if source.random() < 0.25:
        return date + source.choice(["", "", "T", " ", " x", "Tx", "x"])
    hour = source.choice(["0", "00", "1", "02", "2", "12", "23", "7", "13", "24", "007"])
    minute = source.choice(["0", "00", "30", "59", "45", "5", "08", "60"])
    second = source.choice(["0", "00", "30", "59", "5", "59", "60"])
    fraction = source.choice(["", "", ".", ".1", ".12", ".123456", ".1234567", ".123456789", ".000001",
                              ".9999999", ".1234567891", ",5", ". 5"])  # fmt: skip
    clock = source.choice([f"{hour}:{minute}:{second}{fraction}"] * 6 + [f"{hour}:{minute}", hour,
                          f"{hour}:{minute}:", f"{hour}{minute}", f"{hour}:{minute}{fraction}"])  # fmt: skip
    between = source.choice([" "] * 6 + ["T"] * 6 + ["t", "  ", "_", ""])
    return date + between + clock + source.choice(_ZONES)


def _shown(kind: str) -> str:
    """An expression of the value that tells neighbours apart."""
    if kind == "DATE":
        return "CAST(datediff(v, DATE '1970-01-01') AS STRING)"
    if kind == "TIMESTAMP_NTZ":
        day = "datediff(CAST(v AS DATE), DATE '1970-01-01')"
        clock = "':', hour(v), minute(v), extract(SECOND FROM v)"
        return f"CASE WHEN v IS NOT NULL THEN CONCAT({day}, ' ', CONCAT_WS({clock})) END"
    if kind == "TIMESTAMP":
        return "CAST(unix_micros(v) AS STRING)"
    if kind in ("FLOAT", "DOUBLE"):
        return "CAST(CAST(v AS DOUBLE) AS STRING)"
    return "CAST(v AS STRING)"


def judge(texts: list[str]) -> None:
    """Print what PySpark gives."""
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.session.timeZone", ZONE)
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    frame = spark.createDataFrame([(at, text) for at, text in enumerate(texts)], "id INT, s STRING")
    frame.createOrReplaceTempView("texts")
    for kind in TYPES:
        # In ANSI mode CAST fails exactly where TRY_CAST gives NULL of what is not NULL.
        rows = spark.sql(
            f"SELECT id, {_shown(kind)} FROM (SELECT id, TRY_CAST(s AS {kind}) AS v FROM texts)"
        ).collect()
        for at, value in sorted(map(tuple, rows)):
            print(kind, json.dumps(texts[at]), json.dumps(value), sep="\t")


def compare(lines: list[str], constants: int) -> int:
    """Ask icesql the same; the number of differences."""
    import icesql

    asked = [(kind, json.loads(text), json.loads(value)) for kind, text, value in
             (line.rstrip("\n").split("\t") for line in lines)]  # fmt: skip
    counts: Counter[str] = Counter()
    with icesql.connect(
        warehouse=tempfile.mkdtemp(prefix="casts-"), dialect="spark", timezone=ZONE
    ) as connection:
        connection.execute("CREATE SCHEMA n").close()
        connection.execute("CREATE TABLE n.t (id INT, s STRING)").close()
        for kind in dict.fromkeys(kind for kind, _, _ in asked):
            told = {text: value for each, text, value in asked if each == kind}
            refused = _refused(kind, list(told))
            counts[f"refused {kind}"] = len(refused)
            _ask_of_column(connection, kind, told, refused, counts)
        for kind, text, value in random.Random(1).sample(asked, min(constants, len(asked))):
            refused = _refused(kind, [text])
            for word in ("CAST", "TRY_CAST"):
                escaped = text.replace("\\", "\\\\").replace("'", "\\'")
                sql = f"SELECT {_shown(kind)} FROM (SELECT {word}('{escaped}' AS {kind}) AS v)"
                got: Any
                try:
                    ((got,),) = connection.execute(sql).fetchall()
                except icesql.DataError as error:
                    # CAST fails where TRY_CAST is NULL.
                    got = error if refused or word == "TRY_CAST" else None
                right = isinstance(got, icesql.DataError) if refused else got == value
                _count(counts, right, kind, word, text, value, got)
    print(dict(counts))
    return counts["different"]


def _ask_of_column(
    connection: Any, kind: str, told: dict[str, Any], refused: set[str], counts: Counter[str]
) -> None:
    """All texts as one column, in two statements; of the refused ones a few alone."""
    import pyarrow as pa

    import icesql

    texts = [each for each in told if each not in refused]
    rows = pa.table({"id": pa.array(range(len(texts)), pa.int32()), "s": texts})
    connection.execute("INSERT OVERWRITE n.t SELECT * FROM given", tables={"given": rows}).close()
    sql = f"SELECT id, {_shown(kind)} FROM (SELECT id, {{}}(s AS {kind}) AS v FROM n.t)"
    found = dict(connection.execute(sql.format("TRY_CAST")).fetchall())
    for at, text in enumerate(texts):
        _count(counts, found[at] == told[text], kind, "column", text, told[text], found[at])
    good = ", ".join(str(at) for at, text in enumerate(texts) if told[text] is not None)
    cast = dict(connection.execute(f"{sql.format('CAST')} WHERE id IN ({good})").fetchall())
    for at, got in cast.items():
        _count(counts, got == told[texts[at]], kind, "CAST", texts[at], told[texts[at]], got)
    for text in sorted(refused)[:3]:
        connection.execute("INSERT OVERWRITE n.t VALUES (0, ?)", [text]).close()
        try:
            got = connection.execute(f"SELECT TRY_CAST(s AS {kind}) FROM n.t").fetchall()
        except icesql.DataError as error:
            got = error
        _count(counts, isinstance(got, Exception), kind, "refused", text, told[text], got)


def _refused(kind: str, texts: list[str]) -> set[str]:
    """The texts that casts.py says it cannot compute."""
    import duckdb
    from sqlglot import exp

    from icesql.query.dialects.spark import casts
    from icesql.query.dialects.types import of_cast

    to = of_cast(exp.DataType.build(kind, dialect="spark"))
    assert to is not None
    forms = casts.forms(to, kind, "CAST")
    first = " ".join(f"WHEN regexp_full_match(t, '{form}') THEN {value.startswith('error')}"
                     for form, value in forms)  # fmt: skip
    trimmed = casts._TRIMMED.replace("$1", "x")
    rows = duckdb.connect().execute(
        f"SELECT x FROM (SELECT x, {trimmed} AS t FROM (SELECT unnest($1::VARCHAR[]) AS x)) "
        f"WHERE CASE {first} END", [texts],
    ).fetchall()  # fmt: skip
    return {text for (text,) in rows}


def _count(
    counts: Counter[str], right: bool, kind: str, where: str, text: str, value: Any, got: Any
) -> None:
    counts["same" if right else "different"] += 1
    if not right:
        print(f"{kind} of {text!r} ({where}): Spark {value!r}, icesql {got!r}", flush=True)


def main(
    what: Literal["judge", "compare"], answers: str = "", *, count: int = 2_000, seed: int = 1,
    constants: int = 200,
) -> int:  # fmt: skip
    """Let PySpark judge drawn texts, or compare its answers; how many differ."""
    if what == "judge":
        source = random.Random(seed)
        judge(list(dict.fromkeys(drawn(source) for _ in range(count))))
        return 0
    return compare(Path(answers).read_text(encoding="utf-8").splitlines(), constants)
