"""The memory outside of the JVM for a Spark task: its executor's memory for Python, divided by
the number of tasks that run at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

from icesql.config import available_memory, parse_bytes
from icesql.frozen import Frozen

# Memory of a Python worker with Arrow, DuckDB's code and batches; the rest is DuckDB's limit.
_PYTHON: Final = 256 << 20
_LEAST: Final = 256 << 20
_MIB: Final = 1 << 20
# The part of a machine's memory for tasks, if Spark does not divide it.
_PART: Final = 0.6
_OVERHEAD: Final = "spark.executor.memoryOverhead"
_PYSPARK: Final = "spark.executor.pyspark.memory"
_known: WeakKeyDictionary[Any, TaskMemory] = WeakKeyDictionary()


class TaskMemory(Frozen):
    """Bytes outside of the JVM for ``slots`` tasks at once.

    ``total`` is None if Spark sets no limit: each machine then uses its own memory. ``slots`` is
    None if as many tasks run as it has cores. ``note`` warns the user that the memory is too small.
    """

    total: int | None = None
    slots: int | None = None
    note: str | None = None

    def limit(self) -> int:
        """The bytes that DuckDB, or a buffer in its place, may use. Call it in the task."""
        slots = self.slots or os.cpu_count() or 1
        here = int(available_memory() * _PART)
        total = here if self.total is None else min(self.total, here)
        return max(_LEAST, min(total // slots, _address_space()) - _PYTHON)


def task_memory(session: Any) -> TaskMemory:
    """The memory of a session's tasks, from the configuration of its Spark; cached."""
    if session not in _known:
        _known[session] = memory_of(lambda name: session.conf.get(name, None))
    return _known[session]


def memory_of(setting: Callable[[str], str | None]) -> TaskMemory:
    """The memory of tasks from the configuration; ``setting`` returns None for a missing key."""
    master = setting("spark.master") or ""
    cpus = int(setting("spark.task.cpus") or 1)
    if master.startswith("local"):
        # The JVM and all workers share the memory of this machine.
        heap = _size(setting("spark.driver.memory") or "1g")
        rest = max(_LEAST, int(available_memory() * _PART) - heap)
        return TaskMemory(rest, max(1, local_slots(master) // cpus))
    managed = master.startswith(("yarn", "k8s"))
    cores = setting("spark.executor.cores") or ("1" if managed else None)
    slots = None if cores is None else max(1, int(cores) // cpus)
    name, total = _PYSPARK, _size(setting(_PYSPARK) or "0")
    if not total:
        name, total = _OVERHEAD, _size(setting(_OVERHEAD) or "0")
    if not total and managed:
        total = _usual_overhead(setting, kubernetes=master.startswith("k8s"))
    return TaskMemory(total or None, slots, _note(name, total, slots) if total else None)


def local_slots(master: str) -> int:
    """The threads of a local master."""
    inside = master.partition("[")[2].rstrip("]").split(",")[0]
    return int(inside) if inside.isdigit() else (os.cpu_count() or 1) if inside == "*" else 1


def _usual_overhead(setting: Callable[[str], str | None], *, kubernetes: bool) -> int:
    """The overhead that Spark requests by default."""
    factor = setting("spark.executor.memoryOverheadFactor")
    if kubernetes:
        factor = factor or setting("spark.kubernetes.memoryOverheadFactor") or "0.4"
    heap = _size(setting("spark.executor.memory") or "1g")
    return max(384 * _MIB, int(float(factor or "0.1") * heap))


def _note(name: str, total: int, slots: int | None) -> str | None:
    share, needed = total // (slots or 1), _PYTHON + _LEAST
    if share >= needed:
        return None
    return (
        f"each Spark task has {share // _MIB} MiB outside of the JVM ({name}, divided by "
        f"{slots or 1} tasks at once) and icesql takes up to {needed // _MIB}: executors may be "
        f"ended for it; set {_PYSPARK} to {(slots or 1) * 1024}m"
    )


def _size(text: str) -> int:
    """Bytes of a size in Spark's configuration, where a number without a unit is in MiB."""
    return parse_bytes(f"{text}m" if text.strip().isdigit() else text)


def _address_space() -> int:
    """Bytes that the process may still map: ``_PYSPARK`` limits the workers' address space."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most == resource.RLIM_INFINITY:
            return 1 << 62
        with open("/proc/self/statm", "rb") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return 1 << 62
    return max(0, most - mapped) + _PYTHON
