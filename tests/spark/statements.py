"""Statements with the same rows on both engines: each was, or almost was, a silent difference."""

from __future__ import annotations

EXPRESSIONS = """
i / big
i / 0
i / (7)
i / -7
i / (-7)
d / 0
-d / 0
dec / 3
dec / i
f / f
dec * 2.5
dec + i
i // 2
i // 1
i % 4
-7 % 4
d % 2
big + 1
CAST(dec AS INT)
CAST(d AS BIGINT) FILTERED
CAST(2.5 AS INT)
CAST(-2.5 AS INT)
CAST(3.5::DOUBLE AS INT)
CAST(2.5::DOUBLE AS INT)
TRY_CAST(s AS INT)
CAST(dec AS VARCHAR)
CAST(i AS VARCHAR)
CAST(dt AS VARCHAR)
CAST(ts AS VARCHAR)
CAST(tz AS VARCHAR)
CAST(flag AS VARCHAR)
CAST(flag AS INT)
CAST(dec AS DECIMAL(12, 1))
CAST(d AS DECIMAL(12, 1)) FILTERED
CAST(u AS VARCHAR)
CAST(ts AS DATE)
CAST(dt AS TIMESTAMP)
CAST(dt AS TIMESTAMPTZ)
CAST(tz AS TIMESTAMP)
CAST(ts AS TIMESTAMPTZ)
CAST(tz AS DATE)
f = 0.1
f > 0.1
f IN (0.1, 1.5)
f BETWEEN 0.1 AND 1.5
f = 16777217
d > 1
d = 'nan'::DOUBLE
d < 'nan'::DOUBLE
isnan(d)
isinf(d)
isfinite(d)
round(d, 1)
round(dec, 1)
round(2.675::DOUBLE, 2)
l[1]
l[-1]
l[0]
l[10]
l[i]
l[1:2]
l
m['a']
m['zz']
m
st
st.x
st['x']
st.at
len(l)
list_contains(l, 3)
list_sum(l)
'\\xFF'::BLOB
bin
u
t
u = '00000000-0000-0000-0000-000000000005'
t = TIME '12:30:00.000005'
t > '12:00:00'
tz > '2024-07-01 00:00:00-04'
s LIKE 'a\\_%'
s LIKE 'a\\%'
s LIKE '%l_o'
s LIKE 'a_!_b' ESCAPE '!'
s ILIKE 'HELLO'
s || '-' || i
concat(s, NULL, 'x')
concat_ws('-', s, NULL, 'x')
substr(s, 0, 3)
substr(s, 2)
substr(s, -2)
substr(s, 2, 2)
left(s, -2)
left(s, 2)
right(s, -2)
right(s, 2)
length(s)
upper(s)
replace(s, 'l', '\\')
regexp_replace(s, 'l', 'L')
regexp_replace(s, 'l', 'L', 'g')
regexp_replace(s, '(h)(e)', '\\2\\1')
regexp_replace(s, 'x*', '-')
regexp_extract(s, 'l+')
regexp_extract(s, '(h)(e)', 2)
regexp_matches(s, '^h')
regexp_full_match(s, 'h.*')
split_part(s, 'l', 2)
string_split(s, 'l')
strpos(s, 'l')
s = 'a\\_b'
lpad(s, 7, '*')
trim(s)
reverse(s)
ascii(s)
dt + INTERVAL 1 DAY
dt - INTERVAL 1 MONTH
dt + INTERVAL '3 months'
dt + INTERVAL (i) DAY
ts + INTERVAL 90 MINUTE
tz + INTERVAL 1 DAY
tz + INTERVAL 1 HOUR
dt + 5
dt - 5
dt - DATE '2024-02-29'
ts - TIMESTAMP '2024-02-29 00:00:00'
date_diff('day', dt, DATE '2026-03-01')
date_diff('month', dt, DATE '2026-03-01')
date_diff('year', dt, DATE '2026-03-01')
date_diff('quarter', dt, DATE '2026-03-01')
date_diff('week', dt, DATE '2026-03-01')
date_diff('hour', ts, TIMESTAMP '2026-03-01 00:00:00')
date_diff('minute', ts, TIMESTAMP '2026-03-01 00:00:00')
date_diff('second', ts, TIMESTAMP '2026-03-01 00:00:00')
extract(year FROM dt)
extract(dow FROM dt)
dayofweek(dt)
isodow(dt)
isoyear(dt)
extract(week FROM dt)
extract(doy FROM ts)
extract(second FROM ts)
extract(millisecond FROM ts)
extract(microsecond FROM ts)
extract(hour FROM tz)
extract(epoch FROM ts)
epoch(tz)
epoch(dt)
dayname(dt)
monthname(dt)
date_trunc('month', dt)
date_trunc('week', dt)
date_trunc('quarter', ts)
date_trunc('day', ts)
date_trunc('hour', ts)
date_trunc('hour', tz)
date_trunc('day', tz)
date_trunc('month', tz)
strftime(ts, '%Y-%m-%d %H:%M:%S')
last_day(dt)
make_date(2026, 2, i % 20 + 4)
ts AT TIME ZONE 'America/New_York'
ts AT TIME ZONE 'Asia/Kolkata'
tz AT TIME ZONE 'America/New_York'
tz AT TIME ZONE 'Asia/Kolkata'
tz = ts
dt = ts
coalesce(i, big)
nullif(i, 7)
greatest(i, big)
least(i, NULL, big)
CASE WHEN i > 0 THEN s ELSE 'no' END
if(flag, 1, 2)
i IS DISTINCT FROM NULL
i IN (7, NULL)
i NOT IN (7, NULL)
{'a': i, 'b': s}
[i, 2]
abs(i)
ceil(dec)
floor(d)
sign(dec)
sqrt(abs(i))
ln(abs(big) + 1)
log(100)
log2(8)
pow(i, 2)
1e20
0.1 + 0.2
i / f
i + f
f - 0.1
f % i
d % 0
-wide
abs(wide)
u LIKE '0000%5'
u ILIKE '80%'
wide + i
CASE WHEN id > 1 THEN wide * dec END
ceil(big)
sign(f)
sign(d)
ln(i)
log(2, d)
log10(dec)
isfinite(big)
round(d * 1e20::DOUBLE, 2)
round(1.7e308::DOUBLE, 2)
TRY_CAST(d AS FLOAT)
TRY_CAST(d AS DECIMAL(10, 2))
CAST(1.005::DOUBLE AS DECIMAL(10, 2))
TRY_CAST('1.5e3' AS INT)
TRY_CAST('2.5' AS BIGINT)
TRY_CAST(s AS DATE)
TRY_CAST(s AS DOUBLE)
CAST('2025-01-01 00:00:00+00:00' AS TIMESTAMP)
TIMESTAMP '2025-01-01T01:02:03.5Z'
CAST('2025-01-01 23:00:00+00' AS DATE)
CAST('2025-01-01 00:00:00+05' AS TIMESTAMPTZ)
TRY_CAST(s || ' 2025-01-01 00:00:00Z' AS TIMESTAMP)
TRY_CAST(concat('2025-01-0', id, 'T00:00:00Z') AS TIMESTAMP)
concat(i, dec, flag, dt)
i < 9223372036854775808
i BETWEEN -9223372036854775809 AND 9223372036854775808
upper('straße ŉ ᾳ ﬁ')
lower('ΑΣ İ')
substr(s, 3, -2)
substr(s, i, -1)
left(s, i)
split_part(s, 'l', 0)
string_split(s, '.')
regexp_matches(s, '[[:alpha:]]$')
regexp_matches('a' || chr(10), 'a$')
regexp_full_match('a' || chr(10), '.*')
regexp_replace(s, '\\bh', '$')
regexp_matches('É', '(?i)é')
list_concat(l, [1])
strftime(dt, 'on %-d %B %y, %%')
strftime(ts, '%I %p %f %j %a %b')
ts - dt
abs(dec - i)
-(dec - i)
sign(d - i)
right(s, i % 3 - 1)
left(s, i % 3 - 1)
substr(s, i % 3 - 1)
round(d - i, 1)
bin = '\\x00\\xFF'
bin <> '\\x00\\xFF'
bin IN ('\\x00\\xff', 'zz')
bin > '\\x00\\x80'
bin = x'00ff'
'\\x00\\xff' IN (bin)
bin BETWEEN '\\x00\\x00' AND '\\x00\\xff'
bin IS DISTINCT FROM '\\x00\\xff'
CASE bin WHEN '\\x00\\xff' THEN 1 END
CASE WHEN id = 1 THEN bin ELSE '\\x01' END
if(flag, bin, '\\x01')
coalesce(bin, '\\x01')
greatest(bin, '\\x80')
nullif(bin, '\\x00\\xff')
list_contains([bin], '\\x00\\xff')
[bin, '\\x01']
lag(bin, 1, '\\x01') OVER (ORDER BY id)
u IN ('{00000000-0000-0000-0000-000000000005}')
CASE u WHEN '00000000000000000000000000000005' THEN 1 END
nullif(u, '{00000000-0000-0000-0000-000000000005}')
coalesce(u, '{00000000-0000-0000-0000-00000000000A}')
list_contains([u], '{00000000-0000-0000-0000-000000000005}')
nullif(t.t, '12:30:00.000005')
coalesce(t.t, '12:30:00.000005')
CASE t.t WHEN '00:00:00' THEN 1 END
coalesce(dt, '2024-01-01')
greatest(ts, '2024-01-01 00:00:00')
'2024-02-29' IN (dt)
""".strip().splitlines()  # fmt: skip

QUERIES = """
SELECT id FROM t WHERE bin = '\\x00\\xff'
SELECT a.id, b.id FROM t a JOIN t b ON a.bin = b.bin AND a.u = b.u ORDER BY 1
SELECT a.id, bin FROM t a JOIN (SELECT '\\x00\\xff'::BLOB AS bin) USING (bin)
SELECT bin, count(*), max(u) FROM t GROUP BY bin ORDER BY bin
SELECT DISTINCT u, bin FROM t ORDER BY u DESC, bin
SELECT bin FROM t UNION SELECT '\\x01'::BLOB ORDER BY 1 DESC
SELECT first(bin) FROM t WHERE id = 1 HAVING first(bin) = '\\x00\\xff'
SELECT x FROM (SELECT arg_max(bin, -id) AS x FROM t) WHERE x = '\\x00\\xff'
SELECT map(['a'], [bin])['a'] = '\\x00\\xff', {'x': bin}['x'] = '\\x00\\xff' FROM t WHERE id = 1
SELECT id FROM t WHERE '\\x00\\xff' IN (SELECT bin FROM t) ORDER BY id
SELECT min(bin), max(bin), count(DISTINCT bin), list(bin ORDER BY bin) FROM t
SELECT CAST(id AS VARCHAR) FROM t ORDER BY id DESC LIMIT 3
SELECT a.id, -b.id AS id FROM t a JOIN t b ON a.id = b.id ORDER BY id
SELECT id, -id AS id FROM t ORDER BY id LIMIT 3
SELECT -id AS id, i AS id FROM t ORDER BY id NULLS LAST, t.id
SELECT DISTINCT 1 AS id, -id AS id FROM t ORDER BY id
SELECT i AS id, -id AS id FROM t ORDER BY 2
SELECT i AS id, id FROM t ORDER BY 2
SELECT DISTINCT ON (id) -id AS id, i AS id FROM t ORDER BY id, t.id
SELECT i AS id, * REPLACE (-id AS id) FROM (SELECT id, i FROM t) ORDER BY id
SELECT CAST(id AS VARCHAR), count(*) FROM t GROUP BY id ORDER BY id
SELECT DISTINCT CAST(id AS VARCHAR) FROM t ORDER BY id
SELECT * FROM (SELECT q.st.id FROM (SELECT id, {'id': -id} AS st FROM t) q ORDER BY id LIMIT 2) ORDER BY id
SELECT q.st.id, count(*) FROM (SELECT {'id': -id} AS st FROM t) q GROUP BY q.st.id ORDER BY q.st.id
SELECT * REPLACE (CAST(id AS VARCHAR) AS id) FROM (SELECT id FROM t) ORDER BY id
WITH c AS (SELECT CAST(id AS VARCHAR) AS x FROM t) SELECT CAST(x AS INT) FROM c ORDER BY x LIMIT 2
SELECT -id AS id FROM t ORDER BY id + 0
SELECT CAST(id AS VARCHAR) FROM t QUALIFY row_number() OVER (ORDER BY id DESC) < 3 ORDER BY id
SELECT * FROM (SELECT count(*), count(*), CAST(max(id) AS VARCHAR) FROM t)
SELECT avg(dec), avg(i), avg(big), avg(f) FILTER (WHERE id = 1) FROM t
SELECT sum(dec), sum(i), sum(big), sum(d) FILTER (WHERE id IN (1, 6)) FROM t
SELECT count(*), count(s), count(DISTINCT s) FROM t
SELECT min(d), max(d), min(f), max(f), min(t), max(t), min(u), max(u), min(tz), max(dt) FROM t
SELECT sum(i), avg(dec), max(s), count(*) FROM t WHERE false
SELECT s, sum(i), count(*) FROM t WHERE false GROUP BY s
SELECT list(i ORDER BY id DESC), list(s ORDER BY i NULLS FIRST, id) FROM t
SELECT list(i ORDER BY id) FROM t WHERE i > 100
SELECT string_agg(s, ',' ORDER BY id) FROM t
SELECT arg_max(s, i), arg_min(u, id), arg_max(flag, id) FROM t
SELECT median(i), quantile_cont(i, 0.3), quantile_disc(i, 0.5), stddev(i), var_pop(i) FROM t
SELECT bool_and(flag), bool_or(flag), count_if(flag), any_value(s) FROM t WHERE id <= 2
SELECT i, count_if(NULL::BOOLEAN), count_if(flag) FILTER (WHERE id > 3) FROM t GROUP BY ROLLUP (i) ORDER BY ALL
SELECT id, count_if(flag) OVER (PARTITION BY i) FROM t ORDER BY id
SELECT flag, count(*) FROM t GROUP BY ALL ORDER BY ALL
SELECT s, count(*) AS n FROM t GROUP BY s HAVING n > 1
SELECT f, count(*) FROM t GROUP BY f ORDER BY f
SELECT u, t, count(*) FROM t GROUP BY u, t ORDER BY u, t
SELECT id, i AS k, k + 1 AS k1 FROM t WHERE k > 0 ORDER BY id
SELECT id FROM t ORDER BY i, id
SELECT id FROM t ORDER BY i DESC, id
SELECT id FROM t ORDER BY d, id
SELECT id FROM t ORDER BY d DESC, id DESC
SELECT id FROM t ORDER BY s NULLS FIRST, id
SELECT id, row_number() OVER (ORDER BY i, id), lag(i) OVER (ORDER BY id), sum(i) OVER (PARTITION BY s ORDER BY id) FROM t ORDER BY id
SELECT id, rank() OVER (ORDER BY i), first_value(s) OVER (ORDER BY id), last_value(i) OVER (ORDER BY id) FROM t ORDER BY id
SELECT id, i FROM t QUALIFY row_number() OVER (PARTITION BY s ORDER BY id) = 1 ORDER BY id
SELECT DISTINCT i FROM t ORDER BY i
SELECT DISTINCT x.s AS name, x.i FROM t AS x ORDER BY x.s, x.i DESC
SELECT * EXCLUDE (l, m, st) FROM t ORDER BY id
SELECT * FROM t ORDER BY id
SELECT id FROM t ORDER BY id LIMIT 2 OFFSET 1
SELECT a.id, b.id FROM t a JOIN t b ON a.i = b.i ORDER BY 1, 2
SELECT a.id, b.s FROM t a LEFT JOIN t b ON a.big = b.id ORDER BY 1
SELECT id, s FROM t JOIN (SELECT s, max(id) AS top FROM t GROUP BY s) USING (s) ORDER BY id
SELECT id FROM t WHERE i IN (SELECT big FROM t) ORDER BY id
SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.i = a.big) ORDER BY id
SELECT id FROM t a WHERE i = (SELECT max(i) FROM t b WHERE b.s = a.s) ORDER BY id
SELECT id FROM t SEMI JOIN (SELECT 7 AS i) x USING (i) ORDER BY id
SELECT id FROM t ANTI JOIN (SELECT 7 AS i) x USING (i) ORDER BY id
SELECT i FROM t UNION SELECT big FROM t ORDER BY 1
SELECT i FROM t EXCEPT SELECT 7 ORDER BY 1
SELECT s FROM t INTERSECT SELECT s FROM t ORDER BY 1
WITH x AS (SELECT id, i FROM t), y AS (SELECT max(id) AS id FROM x) SELECT x.* FROM x JOIN y USING (id)
SELECT s, flag, sum(i) FROM t GROUP BY ROLLUP (s, flag) ORDER BY ALL
SELECT count(*), max(n) FROM (SELECT s, sum(i) AS n FROM t GROUP BY ROLLUP (s)) AS x
WITH y AS (SELECT * FROM t WHERE id < 5), x AS (SELECT s, sum(i) AS n FROM y GROUP BY CUBE (s)) SELECT n FROM x WHERE s IS NULL
SELECT s, count(*) FROM t WHERE id > 1 GROUP BY ROLLUP (s) HAVING count(*) > 1 ORDER BY ALL
SELECT t.id, x.n FROM t JOIN (SELECT a.id, sum(b.i) AS n FROM t AS a JOIN t AS b ON a.id = b.id WHERE b.id < 4 GROUP BY GROUPING SETS ((a.id), ())) AS x ON x.id IS NOT DISTINCT FROM t.id ORDER BY ALL
SELECT id, unnest(l) AS e FROM t ORDER BY id, e
SELECT id, x FROM t, LATERAL (SELECT i + 1 AS x) ORDER BY id
SELECT x FROM (VALUES (1), (NULL), (3)) AS v(x) ORDER BY x
SELECT t1.id FROM t AS t1 WHERE t1.st.x = 1
SELECT 1 AS one
SELECT NULL AS nothing, id FROM t ORDER BY id
SELECT _file IS NOT NULL, _pos FROM t ORDER BY id
SELECT count(*) FROM t WHERE s = 'hello' AND i + 1 = 8
SELECT i, i FROM t ORDER BY id
SELECT DISTINCT ON (s) s, id FROM t ORDER BY s, id DESC
SELECT DISTINCT ON (flag, s) id, i FROM t ORDER BY flag, s, id
SELECT DISTINCT ON (f) id FROM t ORDER BY f, id LIMIT 2
SELECT DISTINCT ON (s) s, count(*) AS n FROM t GROUP BY s, flag ORDER BY s, n
SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY s ORDER BY id) = 1 ORDER BY id LIMIT 2
SELECT i + 1 AS id FROM t QUALIFY row_number() OVER (ORDER BY t.id DESC) < 4 ORDER BY t.id
SELECT flag, count(*) AS n FROM t GROUP BY flag QUALIFY rank() OVER (ORDER BY count(*)) = 1 ORDER BY ALL
SELECT DISTINCT s FROM t QUALIFY row_number() OVER (ORDER BY id) < 9 ORDER BY s
SELECT corr(i, i), corr(i, 1), corr(i, dec) FROM t WHERE id IN (1, 4, 6)
SELECT corr(i, dec) FROM t WHERE false
SELECT id, avg(big) OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING) FROM t ORDER BY id
SELECT avg(i) FILTER (WHERE id > 2), avg(dec) FILTER (WHERE id > 4) FROM t
SELECT id, last(i IGNORE NULLS) OVER (ORDER BY id) AS c, avg(dec) FILTER (WHERE i > 0) OVER (ORDER BY id) AS a FROM t ORDER BY id
SELECT s, count(*) AS n FROM t WHERE false GROUP BY GROUPING SETS ((s)) ORDER BY s
SELECT flag, s, grouping(flag), grouping(s), sum(i) FROM t GROUP BY ROLLUP (flag, s) ORDER BY ALL
SELECT flag, grouping(flag), sum(i) FROM t GROUP BY flag ORDER BY ALL
SELECT s, avg(sum(dec)) OVER (PARTITION BY flag) AS a, abs(sum(dec) - a), -(sum(dec) - a) FROM t WHERE id < 7 GROUP BY s, flag ORDER BY ALL
SELECT id FROM t WHERE i < 9223372036854775808 ORDER BY id
SELECT id FROM t WHERE dt = '1582-10-10' OR dt < '1582-10-05' ORDER BY id
SELECT id FROM t WHERE NOT (i IN (SELECT 7)) ORDER BY id
SELECT d, count(*) FROM t GROUP BY d ORDER BY d
SELECT a.id, b.id FROM t a JOIN t b ON a.d = b.f ORDER BY 1, 2
SELECT d FROM (SELECT d FROM t UNION SELECT -d FROM t) ORDER BY d
""".strip().splitlines()  # fmt: skip
