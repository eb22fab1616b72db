"""Run a notebook against a kernel: the repr of a result, progress, Ctrl-C, jupysql.

``pip install nbclient ipykernel jupysql pandas`` first, then ``python tests/campaigns/notebook.py``.
It prints a line for each thing that was checked, and ends with 1 where one is wrong.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from icesql.demo import build

SLOW = "SELECT count(*) FROM range(400_000) a, range(400_000) b WHERE hash(a.range, b.range) = 0"


def main() -> int:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "lake"
        build(folder)
        notebook = nbformat.v4.new_notebook()
        client = NotebookClient(notebook, timeout=120, kernel_name="python3")
        wrong = 0
        with client.setup_kernel():

            def run(code: str) -> list[Any]:
                cell = nbformat.v4.new_code_cell(code)
                notebook.cells = [cell]
                client.execute_cell(cell, 0)
                return list(cell.outputs)

            def check(what: str, holds: bool) -> None:
                nonlocal wrong
                wrong += not holds
                print(f"{'ok   ' if holds else 'WRONG'} {what}")

            run(f"import icesql\ncon = icesql.connect(warehouse={str(folder)!r})")
            *_, shown = run("cur = con.execute('SELECT * FROM demo.trips')\ncur")
            page = shown.data.get("text/html", "")
            check("a result is a table", "<table>" in page and "the first 20 rows" in page)
            check("with its scan line", "demo.trips: manifests" in page)
            *_, count = run("len(cur.df())")
            check("and can still be read", count.data["text/plain"] == "4000")

            *_, process = run("import os\nos.getpid()")
            number = int(process.data["text/plain"])
            interrupted = threading.Timer(6, lambda: os.kill(number, signal.SIGINT))
            interrupted.start()
            began = time.monotonic()
            try:
                run(f"con.execute({SLOW!r}).fetchall()")
                check("a slow query is stopped", False)
            except CellExecutionError as error:
                took = time.monotonic() - began
                text = str(error)
                check(
                    f"Ctrl-C stops a query ({took - 6:.1f} s later)",
                    ("KeyboardInterrupt" in text or "QueryCancelledError" in text) and took < 9,
                )
            outputs = notebook.cells[0].outputs
            drawn = [each for each in outputs if each.output_type == "display_data"]
            check("progress was shown", bool(drawn))
            check("and taken away", all(each.data["text/html"] == "" for each in drawn))
            *_, one = run("con.execute('SELECT 1 AS one').fetchall()")
            check("the connection goes on", one.data["text/plain"] == "[(1,)]")

            run("%load_ext sql\n%config SqlMagic.displaylimit = 5")
            run(f"%sql icesql:///{folder}")
            outputs = run("%sql SELECT city, count(*) AS n FROM demo.trips GROUP BY 1 ORDER BY 1")
            check("jupysql's %sql", any("Athens" in str(each.get("data")) for each in outputs))
            outputs = run("%sqlcmd tables --schema demo")
            check("%sqlcmd tables", any("trips" in str(each.get("data")) for each in outputs))
            outputs = run("%sqlcmd columns --schema demo --table trips")
            check("%sqlcmd columns", any("pickup_at" in str(each.get("data")) for each in outputs))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
