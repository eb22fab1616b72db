"""How icesql finds Spark, and the errors if it cannot."""

from __future__ import annotations

import os

import pytest

from tests import warm
from tests.spark.conftest import needs

# Modules are hidden before PySpark is imported, so each case has a separate process.
PROGRAM = """
import sys, warnings
warnings.simplefilter("error")
for name in sys.argv[2:]:
    sys.modules[name] = None
if "py4j" in sys.argv:
    __file__ = "program.py"  # without, PySpark believes that it runs its own doctests
import icesql
try:
    with icesql.connect(engine="spark", **eval(sys.argv[1])) as connection:
        connection.execute("SELECT 1").fetchall()
except icesql.Error as error:
    print(type(error).__name__, error)
"""
REMOTE = "{'remote': 'sc://127.0.0.1:1/;token=hush-hush'}"


def said(source: str, *missing: str, **environment: str) -> str:
    env = {**os.environ, **environment}
    done = warm.python(PROGRAM, source, *missing, env=env, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "hush-hush" not in done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("{}", "pyspark"),
        ("{}", "pandas"),
        (REMOTE, "pyspark"),
        (REMOTE, "pandas"),
        (REMOTE, "grpc"),
        (REMOTE, "grpc_status"),
        pytest.param(
            REMOTE,
            "zstandard",
            marks=needs("4.1", why="compressed messages of Spark Connect"),
        ),
    ],
)
def test_what_is_missing_names_the_extra(spark_here: None, source: str, missing: str) -> None:
    text = said(source, missing)
    assert text.startswith("MissingExtraError")
    assert "pip install '.[spark]'" in text


@needs("4.0", why="a package for clients of Spark Connect alone")
def test_a_pyspark_that_is_only_a_client_starts_no_spark(spark_here: None) -> None:
    text = said("{'master': 'local[1]'}", "py4j", SPARK_SKIP_CONNECT_COMPAT_TESTS="1")
    assert text.startswith("MissingExtraError")
    assert "remote=" in text


def test_a_connect_server_that_is_not_there_is_told_in_seconds(spark_here: None) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpc: pip install '.[spark]'")
    text = said(REMOTE)
    assert text.startswith("OperationalError cannot connect to Spark at sc://127.0.0.1:1: ")
