"""How a JVM started here runs: cheap to start, which is most of what a small query costs.

Measured on two cores, from nothing to the rows of five small queries, in seconds of CPU:
as Java and Spark choose 19.3, with these options 11.7, with the archive of classes too 6.5.
Long queries win as well: TPC-H SF1 Q1 and Q9 warm 6.8 and 6.6 before, 5.2 and 4.5 after.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

# Code is optimised (C2) after ten times as many calls: what runs for seconds still is, what only
# starts Spark is not, where it took more than what it saved. G1's barriers cost what they save
# only in heaps that are larger than those of a local master.
OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UseParallelGC",
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
# A JVM writes its warnings to stdout, where rows go.
SILENT: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
# In the command lines of the process that forks the workers, and of the workers.
_WORKERS: Final = "-m pyspark.daemon"
# An option with a blank or quote would have to be quoted for Spark's launcher and the shell.
_PLAIN_PATH: Final = re.compile(r"[\w/.+-]+")
# The path of a socket has 104 characters on macOS, of which Spark's name for it takes 43.
_LONGEST_SOCKET_FOLDER: Final = 60
LOG_OPTION: Final = "-Dlog4j2.configurationFile"
# Where users give options to a JVM; two collectors chosen keep it from starting.
_CHOSEN_BY: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS",
                     "PYSPARK_SUBMIT_ARGS")  # fmt: skip


def java_options() -> str:
    """Options for the JVM of a local master, "" where the user chose some by the environment."""
    if any("-XX:" in os.environ.get(name, "") for name in _CHOSEN_BY):
        return ""
    return " ".join((*OPTIONS, *_archive_options(), *_log_options()))


def _archive_options() -> tuple[str, ...]:
    """Options to map the classes of an earlier JVM, or to leave them to the next one at the end.

    The archive is kept in the user's cache (160 MB; ``ICESQL_JVM_ARCHIVE=off`` does without). A
    JVM that does not match it, or finds it damaged, ignores it.
    """
    path = _archive_path()
    if path is None:
        return ()
    if _is_whole(path):
        return (f"-XX:SharedArchiveFile={path}", *SILENT)
    _forget_older(path)
    return (f"-XX:ArchiveClassesAtExit={path}", *SILENT)


def _forget_older(made: Path) -> None:
    """Delete all other archives but the newest, for users of two environments."""
    others = [each for each in made.parent.glob("spark-*.jsa") if each != made]
    try:
        for each in sorted(others, key=lambda other: other.stat().st_mtime_ns)[:-1]:
            # A JVM that runs with it keeps what it has mapped.
            each.unlink(missing_ok=True)
    except OSError:
        return


def _archive_path() -> Path | None:
    """Where the archive of this Java and Spark is kept; None where there can be none."""
    home, java = _spark_home(), java_binary()
    wanted = os.environ.get("ICESQL_JVM_ARCHIVE", "").lower() not in ("off", "0", "false", "no")
    # Java archives no classes if the class path contains a non-empty folder.
    if not wanted or java is None or _is_configured():
        return None
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "icesql"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = f"{java} {java.stat().st_mtime_ns} {home} {(home / 'jars').stat().st_mtime_ns}"
    except OSError:
        return None
    path = folder / f"spark-{hashlib.sha256(about.encode()).hexdigest()[:16]}.jsa"
    usable = os.access(folder, os.W_OK) and _PLAIN_PATH.fullmatch(str(path))
    return path if usable else None


def _log_options() -> tuple[str, ...]:
    """Silence from the first line on: Spark's own setting comes after a dozen lines on stderr.

    None where somebody configures Spark, or where the option would have to be quoted.
    """
    path = Path(__file__).with_name("log4j2.properties")
    usable = not _is_configured() and _PLAIN_PATH.fullmatch(str(path))
    return (f"{LOG_OPTION}={path}",) if usable else ()


def _is_configured() -> bool:
    folder = Path(os.environ.get("SPARK_CONF_DIR") or _spark_home() / "conf")
    return folder.is_dir() and any(folder.iterdir())


def _spark_home() -> Path:
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def _is_whole(path: Path) -> bool:
    """Whether an archive was written to its end: Java writes the head last."""
    try:
        with path.open("rb") as file:
            return file.read(4) in (b"\xa8\xab\x0b\xf0", b"\xf0\x0b\xab\xa8")
    except OSError:
        return False


def java_binary() -> Path | None:
    """The ``java`` that Spark's launcher will use; None without one."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return (Path(home) / "bin" / "java").resolve()
    found = shutil.which("java")
    return Path(found).resolve() if found else None


@functools.cache
def _sockets() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="icesql-")


def socket_folder() -> str:
    """A folder for the sockets of Python workers; "" where the system has none for it.

    It is removed when this process ends, with the sockets that Spark leaves in it.
    """
    if os.name != "posix":
        return ""
    folder = _sockets().name
    return folder if len(folder) <= _LONGEST_SOCKET_FOLDER else ""


def end_workers(context: Any) -> None:
    """End the Python workers of a local master, before the JVM that they read from.

    A JVM that ends closes their sockets first and ends them later: one that still writes the end
    of its task then puts a traceback about a broken pipe on stderr, or the beginning of one.
    """
    from icesql.engine.spark.errors import spark_exceptions

    process = getattr(context._gateway, "proc", None)
    if process is None or process.poll() is not None or context._jvm is None:
        return
    try:
        started = context._jvm.java.lang.ProcessHandle.current().descendants().toArray()
        for each in started:
            if _WORKERS in each.info().commandLine().orElse(""):
                each.destroy()
    except spark_exceptions():
        # The JVM is ending by itself.
        return


def spark_defaults() -> frozenset[str]:
    """The names set by the user's ``spark-defaults.conf``, which only spark-submit reads."""
    folder = os.environ.get("SPARK_CONF_DIR") or _spark_home() / "conf"
    try:
        text = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    lines = (line.strip() for line in text.splitlines())
    return frozenset(
        line.replace("=", " ").split()[0] for line in lines if line and not line.startswith("#")
    )
