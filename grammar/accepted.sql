-- Statements of the promised dialect: the grammar and the engine's parser both take them.

SELECT 1;
SELECT a, b AS c, t.* FROM t;
SELECT * FROM catalog.sales.orders AS o WHERE o.region = 'eu' AND o.amount > 10.5;
SELECT DISTINCT region FROM orders ORDER BY region DESC NULLS LAST LIMIT 10 OFFSET 5;
SELECT * EXCLUDE (secret) REPLACE (upper(name) AS name) FROM people;
SELECT region, count(*), sum(DISTINCT amount) FROM orders GROUP BY region HAVING count(*) > 2;
SELECT region, count(*) FROM orders GROUP BY ALL ORDER BY ALL;
SELECT a FROM t JOIN u ON t.id = u.id LEFT JOIN v USING (id, day);
SELECT a FROM t SEMI JOIN u USING (id);
SELECT a FROM t NATURAL JOIN u CROSS JOIN v, w;
SELECT a FROM t ASOF JOIN u ON t.ts >= u.ts;
SELECT * FROM (SELECT a FROM t) x(y) WHERE y IN (1, 2, 3) OR y IN (SELECT z FROM u);
SELECT * FROM (t JOIN u ON t.a = u.a) WHERE EXISTS (SELECT 1 FROM v WHERE v.a = t.a);
WITH x AS (SELECT a FROM t), y (b) AS (SELECT a FROM x) SELECT b FROM y;
WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n;
(SELECT a FROM t LIMIT 1) UNION ALL (SELECT a FROM u LIMIT 1) ORDER BY a;
SELECT a FROM t EXCEPT SELECT a FROM u INTERSECT SELECT a FROM v;
VALUES (1, 'a'), (2, NULL);
SELECT a FROM t WHERE a BETWEEN 1 AND 2 AND NOT b LIKE 'x\_%' ESCAPE '\' AND c IS NOT NULL;
SELECT a FROM t WHERE (a, b) IN ((1, 2), (3, 4)) AND c IS DISTINCT FROM d;
SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END, CASE a WHEN 1 THEN 2 END FROM t;
SELECT CAST(a AS DECIMAL(10, 2)), TRY_CAST(b AS INTEGER), c::VARCHAR[], d::DATE FROM t;
SELECT DATE '2026-01-31', TIMESTAMP '2026-01-31 12:00:00', INTERVAL '1 day', INTERVAL 3 MONTH;
SELECT ts - INTERVAL 1 HOUR, extract(year FROM ts), date(ts), date FROM t;
SELECT list[1], list[1:2], [1, 2, 3], {'a': 1, 'b': 'x'}, s.field.inner_field FROM t;
SELECT x'00FF', 1.5e3, 1_0, -a, +b, a || b, a // b, a % 2 FROM t;
SELECT sum(a) FILTER (WHERE b > 1) OVER (PARTITION BY c ORDER BY d ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t;
SELECT row_number() OVER w FROM t WINDOW w AS (ORDER BY a) QUALIFY row_number() OVER w = 1;
SELECT string_agg(name, ',' ORDER BY name), left(name, 2), replace(name, 'a', 'b') FROM t;
SELECT * FROM range(1, 10), generate_series(1, 3) g(i), LATERAL (SELECT i + 1) h;
SELECT u.x FROM t, unnest(t.list) u(x);
SELECT "Order", "select" FROM "My Namespace"."my table" AS "T";
SELECT a -- a comment
  FROM t /* and another */;

-- time travel
SELECT * FROM t VERSION AS OF 8954597067493422955;
SELECT * FROM t FOR VERSION AS OF 'audit-branch';
SELECT * FROM t VERSION AS OF main AS a;
SELECT * FROM t AS a FOR VERSION AS OF 12;
SELECT * FROM t FOR SYSTEM_VERSION AS OF 12;
SELECT * FROM t VERSION AS OF -1;
SELECT * FROM t FOR VERSION BEFORE 12;
SELECT * FROM t FOR SYSTEM_TIME BEFORE '2026-01-01';
SELECT * FROM t BEFORE (TIMESTAMP => '2026-01-01');
SELECT * FROM t AT (OFFSET => -60);
SELECT * FROM t AT TIMESTAMP '2026-01-01';
SELECT * FROM t TIMESTAMP AS OF '2026-01-31 12:00:00' x;
SELECT * FROM t FOR TIMESTAMP AS OF TIMESTAMP '2026-01-31 12:00:00.123 Europe/Vienna';
SELECT * FROM t FOR TIMESTAMP AS OF DATE '2026-01-31';
SELECT * FROM t FOR SYSTEM_TIME AS OF now() - INTERVAL 1 DAY - INTERVAL '2 hours';
SELECT * FROM t TIMESTAMP AS OF to_timestamp(1769860800);
SELECT * FROM t TIMESTAMP AS OF CAST('2026-01-31 12:00:00+02:00' AS TIMESTAMPTZ);
SELECT * FROM t AT (VERSION => 12) a;
SELECT * FROM t AT (TIMESTAMP => TIMESTAMP '2026-01-31 12:00:00');
SELECT * FROM t AT BRANCH audit;
SELECT * FROM t a AT TAG 'q1-2026';
SELECT * FROM t AT SNAPSHOT '12';
SELECT * FROM iceberg_scan('/data/t') FOR VERSION AS OF 12 AS s;
SELECT new.a FROM t AS new JOIN t VERSION AS OF 12 AS old ON new.id = old.id;
SELECT version, timestamp, date FROM t;

-- statements that are no queries
EXPLAIN SELECT * FROM t WHERE a = 1;
EXPLAIN ANALYZE SELECT * FROM t VERSION AS OF 12;
EXPLAIN (FORMAT JSON) SELECT 1;
SHOW TABLES;
SHOW TABLES FROM catalog.sales LIKE 'o%';
SHOW NAMESPACES;
SHOW SCHEMAS IN catalog;
SHOW SNAPSHOTS sales.orders;
SHOW SNAPSHOTS FROM iceberg_scan('/data/t');
SHOW REFS sales.orders;
DESCRIBE sales.orders;
DESCRIBE TABLE sales.orders VERSION AS OF 12;
SET local_reader = 'arrow';
SET threads TO 4;
SET TIME ZONE 'Europe/Vienna';
RESET threads;
RESET ALL;
USE sales
