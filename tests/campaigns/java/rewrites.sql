-- rewrite_data_files with its options, on a table with every kind of delete, equality deletes included.
--@for version partitioned: 2 no | 2 yes | 3 no | 3 yes
--@python
from pathlib import Path
from tests.maintain.rewrite.test_run import with_deletes

folder, partitioned = Path(names["warehouse"]).parent, names["partitioned"] == "yes"
names["metadata"] = str(with_deletes(folder, int(names["version"]), partitioned=partitioned).metadata_path);

--@by icesql
CALL system.register_table('ns.t', '{metadata}');

--@each
CALL system.rewrite_data_files('ns.t');
CALL system.rewrite_data_files(table => 'ns.t', options => map('rewrite-all', 'true'));
CALL system.rewrite_data_files(table => 'ns.t', where => 'p = "a"', options => map('rewrite-all', 'true'));
CALL system.rewrite_data_files(table => 'ns.t', where => 'id >= 14 AND x IS NULL', options => map('rewrite-all', 'true'));
--@answer: 0
CALL system.rewrite_data_files(table => 'ns.t', options => map('rewrite-all', 'true', 'max-file-group-size-bytes', '3000'));
CALL system.rewrite_data_files(table => 'ns.t', options => map('rewrite-all', 'true', 'max-file-group-input-files', '3'));
--@answer: 0
--@not: rows, new, snapshots, next-row-id
CALL system.rewrite_data_files(table => 'ns.t', options => map('rewrite-all', 'true', 'max-files-to-rewrite', '2'));
CALL system.rewrite_data_files(table => 'ns.t', options => map('min-file-size-bytes', '0', 'max-file-size-bytes', '1000000', 'target-file-size-bytes', '500000', 'delete-file-threshold', '1'));
CALL system.rewrite_data_files(table => 'ns.t', options => map('min-file-size-bytes', '0', 'max-file-size-bytes', '1000000', 'target-file-size-bytes', '500000', 'delete-ratio-threshold', '0.2'));
CALL system.rewrite_data_files(table => 'ns.t', options => map('rewrite-all', 'true', 'partial-progress.enabled', 'true', 'partial-progress.max-commits', '2'));
CALL system.rewrite_data_files(table => 'ns.t', options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'));
CALL system.rewrite_data_files(table => 'ns.t', options => map('rewrite-all', 'true', 'use-starting-sequence-number', 'false'));
CALL system.rewrite_data_files(table => 'ns.t', strategy => 'sort', sort_order => 'x DESC NULLS LAST, id', options => map('rewrite-all', 'true'));
CALL system.rewrite_data_files(table => 'ns.t', strategy => 'sort', sort_order => 'zorder(id, x)', options => map('rewrite-all', 'true'));
CALL system.rewrite_data_files(table => 'ns.t', options => map('no-such-option', 'true'));
