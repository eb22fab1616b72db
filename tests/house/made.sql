CREATE SCHEMA m;
CREATE TABLE m.t (a BIGINT, b VARCHAR, ts TIMESTAMP) PARTITIONED BY (b) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read');
INSERT INTO m.t SELECT 0 * 10 + i, 'p' || (i % 3), TIMESTAMP '2026-01-01' FROM range(9) r(i);
INSERT INTO m.t SELECT 1 * 10 + i, 'p' || (i % 3), TIMESTAMP '2026-01-01' FROM range(9) r(i);
INSERT INTO m.t SELECT 2 * 10 + i, 'p' || (i % 3), TIMESTAMP '2026-01-01' FROM range(9) r(i);
INSERT INTO m.t SELECT 3 * 10 + i, 'p' || (i % 3), TIMESTAMP '2026-01-01' FROM range(9) r(i);
INSERT INTO m.t SELECT 4 * 10 + i, 'p' || (i % 3), TIMESTAMP '2026-01-01' FROM range(9) r(i);
INSERT INTO m.t SELECT 5 * 10 + i, 'p' || (i % 3), TIMESTAMP '2026-01-01' FROM range(9) r(i);
DELETE FROM m.t WHERE a % 10 = 1
