"""How the JVM of a local master is started: user settings stay, and no failure prevents it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from icesql.engine.spark import jvm
from tests.spark.conftest import has_release
from tests.spark.processes import run

MAGIC = b"\xa8\xab\x0b\xf0"


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spark_here: None) -> Path:
    """A user without settings and with an empty cache."""
    for name in (*jvm._CHOSEN_BY, "SPARK_CONF_DIR", "ICESQL_JVM_ARCHIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "icesql"


def archive(folder: Path, content: bytes) -> Path:
    """The archive for this Java and Spark, with ``content``."""
    path = jvm._archive_path()
    assert path is not None
    assert path.parent == folder
    path.write_bytes(content)
    return path


def test_classes_are_archived_once_and_then_mapped(empty: Path) -> None:
    assert f"-XX:ArchiveClassesAtExit={empty}/spark-" in jvm.java_options()
    path = archive(empty, MAGIC + bytes(4096))
    assert f"-XX:SharedArchiveFile={path}" in jvm.java_options()
    assert "AtExit" not in jvm.java_options()


def test_an_archive_that_was_not_finished_is_made_again(empty: Path) -> None:
    archive(empty, bytes(4096))
    assert "-XX:ArchiveClassesAtExit=" in jvm.java_options()


def test_archives_of_earlier_installations_do_not_pile_up(empty: Path) -> None:
    empty.mkdir(parents=True)
    for age in range(3):
        other = empty / f"spark-{age}.jsa"
        other.write_bytes(MAGIC)
        os.utime(other, (1_000 - age, 1_000 - age))
    assert "-XX:ArchiveClassesAtExit=" in jvm.java_options()
    assert [each.name for each in empty.iterdir()] == ["spark-0.jsa"]


@pytest.mark.parametrize("content", [MAGIC, MAGIC + b"\xff" * 4096, bytes(9)])
def test_java_starts_with_a_damaged_archive_and_prints_nothing(empty: Path, content: bytes) -> None:
    path = archive(empty, content)
    options = [*jvm.OPTIONS, f"-XX:SharedArchiveFile={path}", *jvm.SILENT]
    ran = subprocess.run(
        [str(jvm.java_binary()), *options, "-version"], capture_output=True, timeout=600
    )
    assert ran.returncode == 0
    assert ran.stdout == b""


@pytest.mark.parametrize("name", jvm._CHOSEN_BY)
def test_options_that_the_user_chose_stay_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "--driver-java-options -XX:+UseG1GC")
    assert jvm.java_options() == ""


def test_no_archive_is_kept_for_those_who_want_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICESQL_JVM_ARCHIVE", "off")
    assert jvm.java_options().startswith(" ".join(jvm.OPTIONS))
    assert "Archive" not in jvm.java_options()


def test_a_folder_of_configuration_allows_no_archive_and_has_its_own_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# chosen\nspark.driver.memory 3g\nspark.ui.enabled=true\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert jvm.java_options() == " ".join(jvm.OPTIONS)
    assert jvm.spark_defaults() == {"spark.driver.memory", "spark.ui.enabled"}


def test_what_spark_defaults_set_is_not_set_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.engine.spark.start_up import _defaults

    (tmp_path / "spark-defaults.conf").write_text("spark.driver.extraJavaOptions -Dx=1\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    # A JVM of other tests has everything set already.
    monkeypatch.setattr("pyspark.SparkContext._jvm", None)
    assert "spark.driver.extraJavaOptions" not in _defaults("local[2]")
    assert "spark.driver.memory" in _defaults("local[2]")


SOCKETS = """
    import os
    import icesql
    with icesql.connect(engine="spark", master="local[1]") as connection:
        print(connection.execute("SELECT count(*) FROM (VALUES (1), (2)) v(x)").fetchall())
        from pyspark import SparkContext
        context = SparkContext._active_spark_context
        print(context.parallelize([1], 1).map(lambda x: x + 1).collect())
        folder = context.getConf().get("spark.python.unix.domain.socket.dir", "")
        print(len(os.listdir(folder)) > 0, folder)
"""


@pytest.mark.cluster
def test_spark_is_silent_and_its_sockets_are_gone_with_the_process(spark_here: None) -> None:
    done = run(SOCKETS)
    rows, mapped, folder = done.stdout.splitlines()
    assert (rows, mapped) == ("[(2,)]", "[2]"), done.stderr[-3000:]
    # A line printed by Java itself cannot be avoided.
    told = [line for line in done.stderr.splitlines() if "incubator" not in line]
    assert told == [], done.stderr
    used, _, path = folder.partition(" ")
    # PySpark has such sockets from 4.1 on.
    assert used == str(has_release(4, 1))
    assert not Path(path).exists()


ENDING = """
    import atexit, os, time
    import icesql

    def daemons():
        started = context._jvm.java.lang.ProcessHandle.current().descendants().toArray()
        commands = [each.info().commandLine().orElse("") for each in started]
        return sum("pyspark.daemon" in each for each in commands)

    @atexit.register
    def check():
        # Registered first, it runs after what icesql does at the end.
        for _ in range(100):
            if not daemons():
                break
            time.sleep(0.05)
        print(daemons())

    with icesql.connect(engine="spark", master="local[1]") as connection:
        connection.execute("SELECT 1").fetchall()
        from pyspark import SparkContext
        context = SparkContext._active_spark_context
        context.parallelize([1], 1).map(lambda x: x + 1).collect()
        print(daemons() > 0)
"""


@pytest.mark.cluster
def test_workers_end_before_the_jvm_that_they_read_from(spark_here: None) -> None:
    """A worker that writes after its JVM has ended prints a broken pipe to stderr, 1 time in 10."""
    done = run(ENDING)
    assert done.stdout.splitlines() == ["True", "0"], done.stderr[-3000:]


def test_a_folder_too_long_for_a_socket_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "_LONGEST_SOCKET_FOLDER", 3)
    assert jvm.socket_folder() == ""
