"""What people filter by, and how many of eight files with clear bounds each form reads.

    python tests/campaigns/filter_forms.py [--all]

Two tables: ``t``, by PyIceberg, without a partition, its bounds in the manifest, and ``p``,
partitioned and without column metrics. Each form must give the same rows with pruning on and off.
``needed`` are the files that hold a row, ``kept`` those that the plan keeps. Prints the forms that
keep more than they need (``--all``: every form) and the totals; ends with code 1 on other rows, or
where fewer forms than ``LEAST_TIGHT`` keep just the files that they need.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import icesql
from tests.writer.partition_values import apply
from tests.writer.table import TableWriter

FILES, ROWS = 8, 1_000
# Forms that kept just the files they need when this was last looked at; fewer is a step back.
LEAST_TIGHT = 380
_NOW = datetime.now(UTC).replace(microsecond=0, tzinfo=None)

# One condition a line, of the columns of ``t``: file k (0 to 7) holds ids 125 k to 125 k + 124, days
# of month k + 1 of 2026, year 2019 + k, texts that begin with "abc", "bcd" … and the moments of
# ``recent`` from 40 - 5 k to 36 - 5 k days before now.
CONDITIONS = """
id = 205
id < 100
id <= 124
id > 900
id >= 875
id <> 205
NOT (id = 205)
NOT id < 875
id BETWEEN 200 AND 210
id NOT BETWEEN 100 AND 2000
id IN (1, 2, 300)
id NOT IN (1, 2)
205 = id
100 > id
id = 205 OR id = 900
id < 10 OR id > 990
id > 200 AND id < 240
(id = 205) IS TRUE
(id = 205) IS NOT FALSE
(id > 750) = true
id = 205 AND s LIKE 'b%'
id = 205 OR s = 'abc001'
id + 1 = 206
id - 5 > 900
1 + id < 20
10 - id > 0
id * 2 > 1800
id * 2 + 1 = 411
-id < -900
id / 10 > 90
id // 10 = 20
id % 1000 = 205
abs(id) = 205
id::BIGINT = 205
id::INTEGER = 205
CAST(id AS DECIMAL(10,2)) = 205.00
CAST(id AS DOUBLE) = 205
id::VARCHAR = '205'
id = '205'
id = 205.0
id > 900.5
id = ANY([205, 206])
list_contains([205, 206], id)
id IS NOT DISTINCT FROM 205
id IS DISTINCT FROM 205
id IS NOT NULL
id IS NULL
(id, mon) = (205, 2)
(id, mon) IN ((205, 2), (206, 3))
(id, mon) > (750, 0)
greatest(id, 500) = 205
greatest(id, 0) = 205
least(id, 100) = 99
id = greatest(5, 205)
id = 200 + 5
id = length('a') + 204
id = coalesce(NULL, 205)
id = (SELECT 205)
id = (SELECT max(id) FROM small)
id IN (SELECT id FROM small)
id IN (VALUES (205), (206))
EXISTS (SELECT 1 FROM small WHERE small.id = t.id)
id > ALL (SELECT id FROM small)
CASE WHEN id > 750 THEN 1 ELSE 0 END = 1
CASE id WHEN 205 THEN true ELSE false END
if(id > 750, 1, 0) = 1
coalesce(id, 0) = 205
coalesce(n, 0) > 750
ifnull(n, 0) > 750
nullif(n, 0) > 750
n > 750
n = 205
n IS NULL
n IS NOT NULL AND n < 100
n <> 205 AND n < 100
(n > 750) IS TRUE
(n > 750) IS NOT TRUE
NOT (n <= 750)
n IN (205, NULL)
n NOT IN (205, 206) AND n < 20
n IS NOT DISTINCT FROM 205
n IS NOT DISTINCT FROM NULL
f > 75
f < 10
f = 20.5
f >= 75 AND f <= 76
f BETWEEN 20 AND 21
f * 2 > 150
f + 1 < 5
round(f) = 20
floor(f) = 20
ceil(f) = 20
f::INTEGER = 20
isnan(f)
f < 'NaN'::DOUBLE AND f > 90
r > 75
r < 10
dec = 20.50
dec > 75.25
dec > '75.25'
dec < 10
dec BETWEEN 20 AND 21
dec * 2 > 150
dec * 1.1 > 90
dec + 1 < 5
dec - 0.5 > 90
dec::INTEGER = 20
round(dec) = 20
round(dec, 1) = 20.5
floor(dec) = 20
trunc(dec) = 20
dec IN (20.50, 20.60)
dec = 20.5::DOUBLE
yr = 2020
yr >= 2025
yr * 100 + mon >= 202600
make_date(yr, mon, 1) >= DATE '2026-01-01'
mon = 2
flag
NOT flag
flag = true
flag = false
flag IS TRUE
flag IS NOT TRUE
flag IS FALSE
d = DATE '2026-02-03'
d = '2026-02-03'
d >= DATE '2026-08-01'
d >= '2026-08-01'
d < DATE '2026-02-01'
d BETWEEN DATE '2026-03-01' AND DATE '2026-03-31'
d BETWEEN '2026-03-01' AND '2026-03-31'
d IN (DATE '2026-02-03', DATE '2026-02-04')
d > DATE '2026-07-31' + 1
d > DATE '2026-07-30' + INTERVAL 2 DAY
d >= DATE '2026-08-10' - INTERVAL '1 week'
d + 1 > DATE '2026-08-10'
d + INTERVAL 1 DAY > DATE '2026-08-10'
d - INTERVAL 1 MONTH > DATE '2026-07-02'
d = make_date(2026, 2, 3)
d = CAST('2026-02-03' AS DATE)
d = TIMESTAMP '2026-02-03 00:00:00'
d = strptime('2026-02-03', '%Y-%m-%d')::DATE
d < TIMESTAMP '2026-02-01 00:00:00'
date_diff('day', d, DATE '2026-08-28') < 20
DATE '2026-08-28' - d < 20
d - DATE '2026-01-01' < 20
year(d) = 2026 AND month(d) = 2
year(d) = 2025
month(d) = 2
quarter(d) = 3
monthname(d) = 'March'
dayofyear(d) < 20
last_day(d) = DATE '2026-02-28'
date_trunc('month', d) = DATE '2026-02-01'
date_trunc('quarter', d) = DATE '2026-07-01'
extract(year FROM d) = 2026 AND d < DATE '2026-02-01'
extract(month FROM d) = 3
date_part('month', d) = 3
date_part('year', d) < 2026
strftime(d, '%Y-%m') = '2026-02'
d::VARCHAR = '2026-02-03'
d::VARCHAR LIKE '2026-02%'
CAST(d AS TIMESTAMP) < TIMESTAMP '2026-02-01 00:00:00'
d::TIMESTAMP >= '2026-08-01'
time_bucket(INTERVAL '1 month', d) = DATE '2026-02-01'
ts >= TIMESTAMP '2026-08-01 00:00:00'
ts >= '2026-08-01'
ts >= '2026-08-01 12:00:00'
ts < DATE '2026-02-01'
ts BETWEEN '2026-03-01' AND '2026-03-31'
ts >= TIMESTAMP '2026-03-01' AND ts < TIMESTAMP '2026-04-01'
ts > TIMESTAMP '2026-07-30' + INTERVAL 2 DAY
ts + INTERVAL 1 DAY > TIMESTAMP '2026-08-10'
ts + INTERVAL '1 hour' < TIMESTAMP '2026-01-10'
ts - INTERVAL 1 MONTH > TIMESTAMP '2026-07-05'
date_add(ts, INTERVAL 1 DAY) > TIMESTAMP '2026-08-10'
ts::DATE = '2026-02-03'
ts::DATE = DATE '2026-02-03'
ts::DATE >= DATE '2026-08-01'
ts::DATE BETWEEN '2026-03-01' AND '2026-03-05'
ts::DATE IN ('2026-02-03', '2026-02-04')
CAST(ts AS DATE) = DATE '2026-02-03'
CAST(ts AS DATE) < DATE '2026-02-01'
date(ts) = '2026-02-03'
date(ts) > '2026-08-01'
date_trunc('day', ts) = DATE '2026-02-03'
date_trunc('day', ts) = TIMESTAMP '2026-02-03 00:00:00'
date_trunc('month', ts) = DATE '2026-02-01'
date_trunc('month', ts) >= '2026-08-01'
date_trunc('year', ts) = DATE '2026-01-01' AND id < 10
date_trunc('hour', ts) = TIMESTAMP '2026-02-03 05:00:00'
date_trunc('week', ts) = DATE '2026-03-02'
date_trunc('quarter', ts) = DATE '2026-07-01'
year(ts) = 2025
year(ts) = 2026 AND month(ts) = 5
extract(year FROM ts) < 2026
EXTRACT(YEAR FROM ts) = 2026 AND id < 10
date_part('year', ts) = 2027
month(ts) = 5
extract(month FROM ts) = 5
date_part('month', ts) = 5
day(ts) = 29
dayofyear(ts) < 20
quarter(ts) = 3
monthname(ts) = 'May'
last_day(ts) = DATE '2026-02-28'
strftime(ts, '%Y-%m') = '2026-05'
strftime(ts, '%Y-%m-%d') = '2026-05-03'
ts::VARCHAR LIKE '2026-05%'
ts::VARCHAR >= '2026-08'
time_bucket(INTERVAL '1 day', ts) = TIMESTAMP '2026-02-03'
date_diff('day', ts, TIMESTAMP '2026-08-28') < 20
date_sub('day', ts, TIMESTAMP '2026-08-28') < 20
TIMESTAMP '2026-08-28' - ts < INTERVAL 20 DAY
age(TIMESTAMP '2026-08-28', ts) < INTERVAL 20 DAY
epoch(ts) >= 1785542400
epoch_ms(ts) >= 1785542400000
epoch(ts) < epoch(TIMESTAMP '2026-02-01')
ts > make_timestamp(2026, 8, 1, 0, 0, 0)
ts > strptime('2026-08-01', '%Y-%m-%d')
ts > to_timestamp(1785542400)::TIMESTAMP
ts >= TIMESTAMP '2026-08-01 02:00:00+02:00'
ts = TIMESTAMP '2026-02-03 05:00:00'
tstz >= TIMESTAMPTZ '2026-08-01 00:00:00+00'
tstz >= TIMESTAMPTZ '2026-08-01 02:00:00+02:00'
tstz >= '2026-08-01 00:00:00+00'
tstz >= '2026-08-01'
tstz < '2026-02-01'
tstz >= DATE '2026-08-01'
tstz::DATE = '2026-02-03'
date_trunc('day', tstz) = '2026-02-03'
date_trunc('month', tstz) = '2026-02-01'
year(tstz) = 2025
tstz > to_timestamp(1785542400)
tstz > TIMESTAMP '2026-08-01 00:00:00' AT TIME ZONE 'Europe/Berlin'
(tstz AT TIME ZONE 'Europe/Berlin')::DATE = DATE '2026-02-03'
tstz AT TIME ZONE 'UTC' >= TIMESTAMP '2026-08-01'
tstz + INTERVAL 1 DAY > TIMESTAMPTZ '2026-08-10 00:00:00+00'
ms >= 1785542400000
epoch_ms(ms) >= TIMESTAMP '2026-08-01'
to_timestamp(ms / 1000) >= TIMESTAMPTZ '2026-08-01 00:00:00+00'
make_timestamp(ms * 1000) >= TIMESTAMP '2026-08-01'
recent > now() - INTERVAL 7 DAY
recent > now() - INTERVAL '7 days'
recent > current_timestamp - INTERVAL 7 DAY
recent > current_date - 7
recent > current_date - INTERVAL 7 DAY
recent::DATE > current_date - 7
recent >= date_trunc('day', now()) - INTERVAL 3 DAY
date_trunc('day', recent) >= current_date - 3
recent < now() - INTERVAL 30 DAY
date_diff('day', recent, now()::TIMESTAMP) < 5
current_date - recent::DATE < 5
now() - recent < INTERVAL 5 DAY
age(recent) < INTERVAL 5 DAY
recent BETWEEN now() - INTERVAL 10 DAY AND now()
recent > today() - 7
ds = '2026-02-03'
ds >= '2026-08-01'
ds < '2026-02'
ds BETWEEN '2026-03-01' AND '2026-03-31'
ds LIKE '2026-05%'
ds LIKE '2026-05-%'
ds IN ('2026-02-03', '2026-02-04')
ds::DATE >= DATE '2026-08-01'
ds::DATE = '2026-02-03'
CAST(ds AS DATE) < DATE '2026-02-01'
date(ds) = '2026-02-03'
strptime(ds, '%Y-%m-%d') >= TIMESTAMP '2026-08-01'
ds = strftime(DATE '2026-02-03', '%Y-%m-%d')
ds = (DATE '2026-02-03')::VARCHAR
ds = concat('2026', '-02-03')
ds = '2026' || '-02-03'
ds[1:7] = '2026-02'
left(ds, 7) = '2026-02'
substr(ds, 1, 7) = '2026-02'
substring(ds, 1, 7) >= '2026-08'
substring(ds FROM 1 FOR 7) = '2026-02'
replace(ds, '-', '') >= '20260801'
s = 'bcd205'
s > 'h'
s < 'b'
s LIKE 'abc%'
s LIKE 'bcd2%'
s LIKE 'bcd%5'
s LIKE 'bcd205'
s LIKE 'bcd_05'
s NOT LIKE 'abc%'
NOT s LIKE 'abc%'
s LIKE '%205'
s ILIKE 'ABC%'
s ILIKE 'abc%'
starts_with(s, 'abc')
prefix(s, 'abc')
s ^@ 'abc'
left(s, 3) = 'abc'
substr(s, 1, 3) = 'abc'
substring(s, 1, 1) = 'a'
s[1] = 'a'
s[1:3] = 'abc'
lower(s) = 'bcd205'
upper(s) = 'BCD205'
upper(s) LIKE 'ABC%'
lower(up) = 'bcd205'
s ~ '^abc.*'
s ~ 'abc.*'
regexp_matches(s, '^abc')
regexp_full_match(s, 'abc.*')
s SIMILAR TO 'abc.*'
s GLOB 'abc*'
position('abc' IN s) = 1
instr(s, 'abc') = 1
strpos(s, 'abc') = 1
contains(s, 'abc')
trim(s) = 'bcd205'
s || '' = 'bcd205'
concat(s, 'x') = 'bcd205x'
length(s) = 6 AND s < 'b'
s IN ('abc001', 'bcd205')
s IN ('abc001', NULL)
s BETWEEN 'abc' AND 'abd'
s >= 'abc' AND s < 'abd'
s = lower('BCD205')
s = md5('x')
reverse(s) = '502dcb'
s COLLATE NOCASE = 'BCD205'
s IS NOT NULL AND s < 'b'
clock < TIME '02:00:00'
clock >= '21:00:00'
clock BETWEEN TIME '03:00:00' AND TIME '03:30:00'
key = '00000000-0000-0000-0000-0000000000cd'
key < '00000000-0000-0000-0000-000000000010'
bytes = 'bcd205'::BLOB
bytes < 'b'::BLOB
st.a = 205
st.a > 900
st['a'] = 205
struct_extract(st, 'a') = 205
st.b LIKE 'abc%'
len(tags) = 1 AND id < 10
tags[1] = 'bcd205'
list_contains(tags, 'bcd205')
id = 205 AND (f > 0 OR s IS NULL)
(id = 205 AND f > 0) OR (id = 206 AND f > 0)
(id < 50 OR s > 'h') AND d < DATE '2026-02-01'
NOT (id >= 100 AND s >= 'a')
NOT (id < 875 OR s < 'a')
id < 100 AND true
id < 100 OR false
false
NULL
id < 100 AND random() >= 0
"""

# Whole queries, one a line.
QUERIES = """
SELECT t.id FROM t JOIN small ON small.id = t.id
SELECT t.id FROM t JOIN small USING (id)
SELECT t.id FROM t, small WHERE small.id = t.id
SELECT t.id FROM t JOIN (VALUES (205), (206)) v(x) ON v.x = t.id
SELECT x.id FROM small x JOIN t ON x.id = t.id AND x.id = 205
SELECT x.id FROM small x JOIN t ON x.id = t.id WHERE x.id = 205
SELECT x.id FROM small x LEFT JOIN t ON x.id = t.id AND t.id = 205
SELECT id FROM t SEMI JOIN small USING (id)
SELECT k FROM (SELECT id AS k FROM t) WHERE k = 205
SELECT k FROM (SELECT id + 1 AS k FROM t) WHERE k = 206
WITH c AS (SELECT * FROM t) SELECT id FROM c WHERE id = 205
WITH c AS (SELECT id, ts::DATE AS day FROM t) SELECT id FROM c WHERE day = '2026-02-03'
SELECT id, ts::DATE AS day FROM t WHERE day = '2026-02-03'
SELECT id AS k FROM t WHERE k = 205
WITH c AS (SELECT * FROM t) SELECT a.id FROM c a, c b WHERE a.id = 205 AND b.id = 206
SELECT id FROM t WHERE id = 205 UNION ALL SELECT id FROM t WHERE id = 206
SELECT * FROM (SELECT id FROM t UNION ALL SELECT id FROM t) WHERE id = 205
SELECT id, count(*) FROM t GROUP BY id HAVING id = 205
SELECT * FROM (SELECT id, count(*) AS c FROM t GROUP BY id) WHERE id = 205
SELECT * FROM (SELECT DISTINCT id FROM t) WHERE id = 205
SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY id) AS r FROM t) WHERE id = 205
SELECT id FROM t WHERE id = 205 QUALIFY row_number() OVER (ORDER BY id) = 1
SELECT id FROM t WHERE ts = (SELECT max(ts) FROM t)
SELECT max(id) FROM t
SELECT min(ts), max(ts) FROM t
SELECT id FROM t ORDER BY ts DESC LIMIT 1
SELECT id FROM t WHERE id > 990 ORDER BY id LIMIT 3
SELECT count(*) FROM t WHERE id < 100
SELECT count(*) FILTER (WHERE id = 205) FROM t WHERE id < 250
SELECT id FROM t a WHERE a.id = 205
SELECT x.id FROM (SELECT * FROM t WHERE d < DATE '2026-02-01') x WHERE x.id < 20
SELECT id FROM (SELECT * FROM t ORDER BY id LIMIT 20) WHERE id = 5
FROM t SELECT id WHERE id = 205
"""

# Conditions of ``p``: one file of each day of 2026-01, two categories in turn, ids 0 to 7 in buckets.
PARTITIONED = """
day = DATE '2026-01-03'
day >= DATE '2026-01-07'
day BETWEEN '2026-01-02' AND '2026-01-03'
ts >= TIMESTAMP '2026-01-07 00:00:00'
ts::DATE = '2026-01-03'
date(ts) >= '2026-01-07'
date_trunc('day', ts) = DATE '2026-01-03'
date_trunc('month', ts) = DATE '2026-02-01'
year(ts) = 2025
ts > '2026-01-07 12:00:00'
ts < TIMESTAMP '2026-01-02 00:00:00'
cat = 'odd'
cat <> 'odd'
cat IN ('odd', 'none')
cat NOT IN ('odd')
cat LIKE 'o%'
cat NOT LIKE 'o%'
cat IS NULL
cat IS NOT NULL
cat IS NOT DISTINCT FROM 'odd'
cat > 'n'
cat BETWEEN 'o' AND 'p'
upper(cat) = 'ODD'
lower(cat) = 'odd'
cat ILIKE 'ODD'
length(cat) = 3
coalesce(cat, '') = 'odd'
cat || 'x' = 'oddx'
cat = 'odd' AND day < DATE '2026-01-04'
cat = 'odd' OR day = DATE '2026-01-02'
NOT (cat = 'odd')
ds = '2026-01-03'
ds >= '2026-01-07'
ds LIKE '2026-01-0%'
ds::DATE >= DATE '2026-01-07'
CAST(ds AS DATE) = DATE '2026-01-03'
replace(ds, '-', '') >= '20260107'
substr(ds, 1, 10) = '2026-01-03'
strptime(ds, '%Y-%m-%d') < TIMESTAMP '2026-01-02'
id = 3
id IN (3, 4)
id BETWEEN 5 AND 5
id = 3 AND cat = 'odd'
word = 'delta'
word LIKE 'de%'
word >= 'c' AND word < 'd'
starts_with(word, 'de')
word > 'g'
"""


@dataclass(frozen=True)
class Outcome:
    """A form: files that hold a row, files kept, and whether the rows are those without pruning."""

    form: str
    needed: int
    kept: int
    same: bool


def forms(text: str) -> list[str]:
    """The forms of one of the lists above."""
    return [line for line in text.splitlines() if line.strip()]


def outcomes(connection: icesql.Connection) -> Iterator[Outcome]:
    """What comes of every form."""
    for table, text in (("t", CONDITIONS), ("p", PARTITIONED)):
        for condition in forms(text):
            sql = f"SELECT id FROM {table} WHERE {condition}"
            files = f"SELECT count(DISTINCT _file) FROM {table} WHERE {condition}"
            yield outcome(connection, table, condition, sql, files)
    for sql in forms(QUERIES):
        yield outcome(connection, "t", sql, sql, None)


def outcome(
    connection: icesql.Connection, table: str, form: str, sql: str, files: str | None
) -> Outcome:
    """What comes of one form; ``files`` is SQL for the number of files with a row."""
    connection.execute("SET prune = off")
    rows = sorted(connection.execute(sql).fetchall(), key=repr)
    needed = 1
    if files is not None:
        needed = connection.execute(files).fetchone()[0]
    connection.execute("SET prune = on")
    cursor = connection.execute(sql)
    found = sorted(cursor.fetchall(), key=repr)
    kept = max(
        (r.result_data_files for r in cursor.scan_reports if r.table_name.endswith(f".{table}")),
        default=0,
    )
    return Outcome(form, needed, kept, rows == found)


# ------------------------------------------------------------ the tables


def write_tables(folder: Path) -> str:
    """Write ``t``, ``p`` and ``small`` in namespace ``f``; the URI of their catalog."""
    from pyiceberg.catalog.sql import SqlCatalog

    uri = f"sqlite:///{folder}/catalog.db"
    catalog = SqlCatalog("forms", uri=uri, warehouse=f"file://{folder}")
    catalog.create_namespace("f")
    files = [_rows(range(k * ROWS // FILES, (k + 1) * ROWS // FILES)) for k in range(FILES)]
    table = catalog.create_table("f.t", files[0].schema)
    for rows in files:
        table.append(rows)
    catalog.register_table("f.p", _write_partitioned(folder))
    small = _rows(range(205, 208)).select(["id", "d"])
    catalog.create_table("f.small", small.schema).append(small)
    return uri


def _rows(ids: range) -> Any:
    import pyarrow as pa

    def moment(i: int) -> datetime:
        k, at = divmod(i, ROWS // FILES)
        return datetime(2026, k + 1, 1 + at * 28 * FILES // ROWS, i % 24, i % 60)

    def text(i: int) -> str:
        k = i * FILES // ROWS
        return "abcdefghij"[k : k + 3] + f"{i:03}"

    moments, texts = [moment(i) for i in ids], [text(i) for i in ids]
    columns: dict[str, tuple[Any, list[Any]]] = {
        "id": (pa.int64(), list(ids)),
        "n": (pa.int64(), [None if i % 10 == 3 else i for i in ids]),
        "f": (pa.float64(), [i / 10 for i in ids]),
        "r": (pa.float32(), [i / 10 for i in ids]),
        "dec": (pa.decimal128(10, 2), [Decimal(i) / 10 for i in ids]),
        "yr": (pa.int32(), [2019 + i * FILES // ROWS for i in ids]),
        "mon": (pa.int32(), [i % 12 + 1 for i in ids]),
        "flag": (pa.bool_(), [i >= ROWS // 2 for i in ids]),
        "d": (pa.date32(), [each.date() for each in moments]),
        "ts": (pa.timestamp("us"), moments),
        "tstz": (pa.timestamp("us", "UTC"), [each.replace(tzinfo=UTC) for each in moments]),
        "ms": (pa.int64(), [int(m.replace(tzinfo=UTC).timestamp() * 1000) for m in moments]),
        "recent": (
            pa.timestamp("us"),
            [_NOW - timedelta(days=40 - i * 40 / ROWS, hours=1) for i in ids],
        ),
        "ds": (pa.string(), [str(each.date()) for each in moments]),
        "s": (pa.string(), texts),
        "up": (pa.string(), [each.upper() for each in texts]),
        "clock": (
            pa.time64("us"),
            [(datetime.min + timedelta(seconds=i * 86)).time() for i in ids],
        ),
        "bytes": (pa.binary(), [each.encode() for each in texts]),
        "tags": (pa.list_(pa.string()), [[each] for each in texts]),
        "st": (
            pa.struct([("a", pa.int64()), ("b", pa.string())]),
            [{"a": i, "b": each} for i, each in zip(ids, texts, strict=True)],
        ),
    }
    arrays = {name: pa.array(values, kind) for name, (kind, values) in columns.items()}
    keys = pa.array([i.to_bytes(16, "big") for i in ids], pa.binary(16))
    arrays["key"] = pa.ExtensionArray.from_storage(pa.uuid(), keys)
    return pa.table(arrays)


def _write_partitioned(folder: Path) -> str:
    kinds = {
        "id": ("long", "bucket[16]"),
        "day": ("date", "identity"),
        "ts": ("timestamp", "day"),
        "cat": ("string", "identity"),
        "ds": ("string", "identity"),
        "word": ("string", "truncate[1]"),
    }
    fields = [
        {"id": at, "name": name, "required": False, "type": kind}
        for at, (name, (kind, _)) in enumerate(kinds.items(), start=1)
    ]
    spec = [
        {"source-id": at, "field-id": 999 + at, "name": f"{name}_{at}", "transform": transform}
        for at, (name, (_, transform)) in enumerate(kinds.items(), start=1)
    ]
    table = TableWriter(folder / "p", fields, spec)
    words = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel")
    files = []
    for k in range(FILES):
        day = date(2026, 1, k + 1)
        rows = [
            {"id": k, "day": day, "ts": datetime(2026, 1, k + 1, hour), "cat": ("even", "odd")[k % 2],
             "ds": str(day), "word": words[k]}
            for hour in range(24)
        ]  # fmt: skip
        partition = [apply(way, kind, rows[0][name]) for name, (kind, way) in kinds.items()]
        files.append(table.data_file(rows, partition=partition, stats=False))
    table.commit(files)
    return str(table.metadata_path)


def main(arguments: list[str]) -> int:
    """Ask every form and print the table; 1 when a form gave other rows."""
    with (
        tempfile.TemporaryDirectory() as folder,
        icesql.connect(uri=write_tables(Path(folder))) as connection,
    ):
        connection.execute("USE f")
        found = []
        for each in outcomes(connection):
            found.append(each)
            if "--all" in arguments or each.kept > each.needed or not each.same:
                print(f"{each.needed} {each.kept} {'' if each.same else 'WRONG '}{each.form}")
    prunable = [each for each in found if each.needed < FILES]
    tight = sum(each.kept <= each.needed for each in prunable)
    if tight < LEAST_TIGHT:
        print(f"fewer than {LEAST_TIGHT} forms keep just what they need")
    whole = sum(each.kept >= FILES for each in prunable)
    wrong = sum(not each.same for each in found)
    print(
        f"{len(found)} forms, {wrong} with other rows; {len(prunable)} need fewer than {FILES} "
        f"files: {tight} keep just those, {whole} keep all"
    )
    return 1 if wrong or tight < LEAST_TIGHT else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
