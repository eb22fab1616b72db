"""Spark keeps plans, descriptions and errors in its event log and UI: no credential is in them."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

from tests.spark.processes import run

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]

SECRET = "hush-hush-4711"
PROGRAM = """
    import pathlib, sys
    import icesql
    from icesql.datasource import read, source
    from icesql.engine.spark import scans, worker
    from tests.writer.table import TableWriter

    folder, secret = pathlib.Path(sys.argv[1]), sys.argv[2]
    blobs, packed = [], worker.pack

    def pack(value):
        blobs.append(packed(value))
        return blobs[-1]

    scans.pack = read.pack = worker.pack = pack
    fields = [{"id": 1, "name": "x", "required": False, "type": "long"}]
    wrong = []
    for name in ("good", "bad"):
        table = TableWriter(folder / "wh" / "db" / name, fields)
        for start in (0, 10):
            file = table.data_file([{"x": start + n} for n in range(5)])
            table.commit([file])
        if name == "bad":
            pathlib.Path(file.record["file_path"]).write_bytes(b"damaged " * 40)
    properties = {
        "s3.access-key-id": "AKIA" + secret, "s3.secret-access-key": secret,
        "s3.session-token": secret, "header.X-Api-Key": secret, "credential": "id:" + secret,
        "s3.endpoint": "http://127.0.0.1:1", "token": secret, "gcs.oauth2.token": secret,
    }
    connected = dict(warehouse=str(folder / "wh"), properties=properties)
    with icesql.connect(engine="spark", master="local[1]", **connected) as connection:
        for sql in (
            "SELECT * FROM db.good", "SELECT sum(x) FROM db.good", "SELECT x FROM db.good WHERE x > 1",
            "SELECT a.x FROM db.good a JOIN db.good b ON a.x = b.x ORDER BY 1",
            "SELECT CAST(x || 'a' AS INT) FROM db.good", "SELECT * FROM db.bad",
            "SELECT sum(x) FROM db.bad WHERE x > 1", "SELECT * FROM db.missing",
        ):
            try:
                print(sql, connection.execute(sql).fetchall())
            except icesql.Error as error:
                print(sql, repr(error), error.__cause__)
        from pyspark.sql import SparkSession
        session = SparkSession.builder.getOrCreate().newSession()
        icesql.register_spark(session, **connected)
        for name in ("good", "bad", "missing"):
            try:
                frame = session.read.format("icesql").load("db." + name)
                frame.createOrReplaceTempView("v")
                frame.explain("extended")
                print(session.sql("SELECT sum(x) FROM v").toArrow().to_pylist())
            except Exception as error:
                print(error)
        frame = session.readStream.format("icesql").load("db.good")
        query = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "point"))
        query = query.trigger(availableNow=True).start()
        query.awaitTermination()
        print(query.lastProgress)
        session.sparkContext.stop()
    for number, blob in enumerate(blobs):
        (folder / f"{number}.blob").write_bytes(blob)
"""


def spellings(data: bytes) -> list[str]:
    """Spellings of bytes in a log: hexadecimal, base64 at any offset, numbers, escaped."""
    encoded = [base64.b64encode(data[at:])[:12].decode() for at in range(3)]
    signed = [each - 256 if each > 127 else each for each in data[:12]]
    numbers = [", ".join(map(str, data[:12])), ",".join(map(str, signed))]
    return [data[:16].hex(), data[:16].hex().upper(), *encoded, *numbers, repr(data[:16])[2:-1]]


def test_no_credential_reaches_the_event_log(spark_here: None, tmp_path: Path) -> None:
    log = tmp_path / "events"
    log.mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{log}",
        "spark.eventLog.compress": "false",
        "spark.log.level": "INFO",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.faulthandler.enabled": "true",
    }
    options = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    done = run(
        PROGRAM,
        str(tmp_path),
        SECRET,
        PYSPARK_SUBMIT_ARGS=f"{options} pyspark-shell",
        PYSPARK_PYTHON=sys.executable,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "CorruptFileError" in done.stdout, "no worker failed, so nothing is proved of errors"
    events = "".join(each.read_text("utf-8") for each in log.rglob("*") if each.is_file())
    assert "SparkListenerSQLExecutionStart" in events
    assert "MapInArrow" in events
    assert "SparkListenerTaskEnd" in events
    checkpoint = tmp_path / "point"
    kept = "".join(each.read_text("utf-8", "replace") for each in checkpoint.rglob("*")
                   if each.is_file())  # fmt: skip
    assert "snapshot_id" in kept, "the stream wrote no checkpoint"
    blobs = [each.read_bytes() for each in tmp_path.glob("*.blob")]
    assert blobs
    for name, text in {
        "events": events, "stdout": done.stdout, "stderr": done.stderr, "checkpoint": kept,
    }.items():  # fmt: skip
        assert SECRET not in text, name
        assert not any(each in text for each in spellings(SECRET.encode())), name
        for blob in blobs:
            # Past the head, which all of them share.
            assert not any(each in text for each in spellings(blob[8:])), name
