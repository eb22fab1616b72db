-- Variants, shredded ones included, stay what they are when rows change and files are rewritten.
-- Spark reads row by row: its vectorized reader refuses files with a list of variants.
--@for mode: copy-on-write | merge-on-read
--@by icesql
CREATE TABLE ns.t (id BIGINT, v VARIANT, l ARRAY<VARIANT>) TBLPROPERTIES ('format-version' = '3',
'read.parquet.vectorization.enabled' = 'false', 'write.delete.mode' = '{mode}', 'write.update.mode' = '{mode}',
'write.merge.mode' = '{mode}');
--@python
run("""INSERT INTO ns.t SELECT id, {'a': id, 'd': DATE '2020-02-29', 'n': 2.50, 'l': ['x', NULL], 'o': {'k': id % 3}},
['1', '"x"', NULL] FROM range(100) r(id)""");
--@by java
CREATE TABLE ns.shredded (id BIGINT, v VARIANT) USING iceberg TBLPROPERTIES ('format-version' = '3',
'read.parquet.vectorization.enabled' = 'false', 'write.parquet.shred-variants' = 'true');
--@by java
INSERT INTO ns.shredded SELECT id, to_variant_object(named_struct('a', id, 'd', date'2020-02-29', 's', concat('x', id),
'f', cast(1.5 AS double), 'n', cast(2.50 AS decimal(9, 2)))) FROM range(100);
UPDATE ns.t SET id = id + 5000 WHERE id < 10;
MERGE INTO ns.t t USING (SELECT 10 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 6000;
DELETE FROM ns.t WHERE id = 11;
CALL system.rewrite_data_files('ns.t', options => map('rewrite-all', 'true'));
UPDATE ns.shredded SET id = id + 5000 WHERE id < 10;
MERGE INTO ns.shredded t USING (SELECT 10 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 6000;
DELETE FROM ns.shredded WHERE id = 11;
CALL system.rewrite_data_files('ns.shredded', options => map('rewrite-all', 'true'));
SELECT count(*), sum(id) FROM ns.shredded;
