-- What random histories of statements leave, every snapshot of it, is what Java reads, too.
--@for seed: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12
--@python
from functools import partial
from pathlib import Path
from tests.campaigns.histories.alone import Alone
from tests.campaigns.histories.catalogs import Warehouse
from tests.campaigns.histories.judge import History

history = Alone(int(names["seed"]), Warehouse("sqlite", Path(names["warehouse"]).parent))
history._begin_with_files = partial(History._begin, history)  # of which Java does not read all
history.namespace = history.draw.namespace = "ns"
found = history.run(20)
assert not found.faults, found.faults
snapshots = run("SELECT snapshot_id FROM ns.t.snapshots ORDER BY committed_at")
names["first"], names["middle"] = (str(snapshots[len(snapshots) // each]["snapshot_id"]) for each in (len(snapshots) + 1, 2));

SELECT * FROM ns.t;
SELECT * FROM ns.t VERSION AS OF {first};
SELECT * FROM ns.t VERSION AS OF {middle};
SELECT * FROM ns.t.data_files;
