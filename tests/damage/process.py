"""A worker process that is started again after a crash or a hang."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
from pathlib import Path

SECONDS = 60


class Process:
    """Asks ``tests.damage.worker`` one job after the other."""

    def __init__(self):
        self.process = None

    def ask(self, job):
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.damage.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=Path(__file__).parents[2],
                text=True,
            )
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            ready = selector.select(SECONDS)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        verdict = "crash" if ready else "hang"
        self.close()
        return {"damage": str(job), "results": [[verdict, f"exit code {self.code}", "", ""]]}

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.kill()
            self.code = self.process.wait()
            self.process.stdout.close()
            self.process = None
