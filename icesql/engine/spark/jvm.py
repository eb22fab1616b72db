"""Options of a local JVM that make it start cheaply, which is most of a small query's cost.

Seconds of CPU on two cores, from the start to the rows of five small queries: 19.3 with the
defaults of Java and Spark, 11.7 with these options, 6.5 with the archive of classes, too.
Long queries are faster as well: TPC-H SF1 Q1 and Q9 warm 6.8 and 6.6 before, 5.2 and 4.5 after.
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

# Code is optimised (C2) after ten times as many calls: code that runs for seconds still is, but not
# the code that only starts Spark, whose compilation takes more than it saves. G1's barriers pay off
# only in heaps that are larger than a local master's.
OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UseParallelGC",
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
# A JVM writes its warnings to stdout, which is for rows.
SILENT: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
# Found in the command lines of workers, and of the process that forks them.
_WORKERS: Final = "-m pyspark.daemon"
# Spark's launcher and the shell would need quotes for an option with a blank or quote.
_PLAIN_PATH: Final = re.compile(r"[\w/.+-]+")
# The path of a socket has at most 104 characters on macOS; Spark's name for it takes 43.
_LONGEST_SOCKET_FOLDER: Final = 60
LOG_OPTION: Final = "-Dlog4j2.configurationFile"
# Variables with a user's JVM options; a JVM with two collectors does not start.
_CHOSEN_BY: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS",
                     "PYSPARK_SUBMIT_ARGS")  # fmt: skip


def java_options() -> str:
    """Options for the JVM of a local master, "" if the environment sets options of its own."""
    if any("-XX:" in os.environ.get(name, "") for name in _CHOSEN_BY):
        return ""
    return " ".join((*OPTIONS, *_archive_options(), *_log_options()))


def _archive_options() -> tuple[str, ...]:
    """Options that map the classes from an earlier JVM, or that archive them at the end.

    The archive is in the user's cache (160 MB; ``ICESQL_JVM_ARCHIVE=off`` disables it). A JVM
    ignores an archive that does not match it or is damaged.
    """
    path = _archive_path()
    if path is None:
        return ()
    if _is_whole(path):
        return (f"-XX:SharedArchiveFile={path}", *SILENT)
    _forget_older(path)
    return (f"-XX:ArchiveClassesAtExit={path}", *SILENT)


def _forget_older(made: Path) -> None:
    """Delete all other archives except the newest, for users of two environments."""
    others = [each for each in made.parent.glob("spark-*.jsa") if each != made]
    try:
        for each in sorted(others, key=lambda other: other.stat().st_mtime_ns)[:-1]:
            # A running JVM keeps the file that it has mapped.
            each.unlink(missing_ok=True)
    except OSError:
        return


def _archive_path() -> Path | None:
    """The path of the archive for this Java and Spark; None if none is possible."""
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
    """Disable log lines from the start: Spark's own setting comes after a dozen lines on stderr.

    Empty if Spark is configured, or if the option would need quotes.
    """
    path = Path(__file__).with_name("log4j2.properties")
    usable = not _is_configured() and _PLAIN_PATH.fullmatch(str(path))
    return (f"{LOG_OPTION}={path}",) if usable else ()


def _configuration() -> Path:
    return Path(os.environ.get("SPARK_CONF_DIR") or _spark_home() / "conf")


def _is_configured() -> bool:
    folder = _configuration()
    return folder.is_dir() and any(folder.iterdir())


def _spark_home() -> Path:
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def _is_whole(path: Path) -> bool:
    """True if an archive was written completely: Java writes its head last."""
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
    """A folder for the sockets of Python workers; "" if the system has no suitable one.

    It is removed when this process ends, with the sockets that Spark leaves in it.
    """
    if os.name != "posix":
        return ""
    folder = _sockets().name
    return folder if len(folder) <= _LONGEST_SOCKET_FOLDER else ""


def end_workers(context: Any) -> None:
    """End the Python workers of a local master before the JVM that they read from.

    A JVM that ends closes their sockets first and ends them later: a worker that is still writing
    the end of its task then prints a traceback about a broken pipe to stderr, or part of one.
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
        # The JVM is ending already.
        return


def spark_defaults() -> frozenset[str]:
    """The names that the user's ``spark-defaults.conf`` sets, which only spark-submit reads."""
    try:
        text = (_configuration() / "spark-defaults.conf").read_text(
            encoding="utf-8", errors="replace"
        )
    except OSError:
        return frozenset()
    lines = (line.strip() for line in text.splitlines())
    return frozenset(
        line.replace("=", " ").split()[0] for line in lines if line and not line.startswith("#")
    )
