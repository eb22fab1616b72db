"""Superset and icesql in one environment: databases, SQL Lab, charts, estimates, stops.

    python tests/campaigns/in_superset.py [--keep FOLDER]

Makes a fresh environment by ``pip install apache-superset`` and this checkout with its extra
sqlalchemy, without overrides, and in it a Superset with a SQLite database of its own, which is then
used through its REST API. Needs a package index. Prints a line for each thing that was checked, and
ends with 1 where one is wrong. ``--keep``: the folder stays, and the environment in it is used again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Superset 6.1 does not start with the arguments that newer releases of it pass.
PACKAGES = ("apache-superset==6.1.0", "flask-caching<2.4", f"{ROOT}[sqlalchemy]")
SLOW = "SELECT count(*) FROM range(400_000) a, range(400_000) b WHERE hash(a.range, b.range) = 0"
CONFIG = """
SECRET_KEY = "a key that is long enough for a test of one machine"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
FEATURE_FLAGS = {{"ESTIMATE_QUERY_COST": True}}
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
SQLLAB_TIMEOUT = 60
LOG_LEVEL = "ERROR"
"""


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--inside"]:
        return inside(Path(arguments[1]))
    if arguments[:1] == ["--keep"]:
        Path(arguments[1]).mkdir(parents=True, exist_ok=True)
        return outside(Path(arguments[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        return outside(Path(folder))


def outside(folder: Path) -> int:
    """Make the environment, and run the rest in it."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, env=clean)
        install = [python, "-m", "pip", "install", "-q", *PACKAGES]
        subprocess.run(install, check=True, env=clean, cwd=folder)
    subprocess.run([python, "-m", "pip", "check"], env=clean, check=False)
    (folder / "superset_config.py").write_text(CONFIG.format(folder=folder), encoding="utf-8")
    clean["SUPERSET_CONFIG_PATH"] = str(folder / "superset_config.py")
    made = (folder / "superset.db").exists()
    for command in () if made else (["db", "upgrade"], ["init"]):
        superset = [python.with_name("superset"), *command]
        with (folder / "superset.log").open("a") as log:
            subprocess.run(superset, check=True, env=clean, cwd=folder, stdout=log, stderr=log)
    with (folder / "superset.log").open("a") as log:
        done = subprocess.run(
            [python, __file__, "--inside", folder], env=clean, cwd=folder, stderr=log, check=False
        )
    if done.returncode:
        print((folder / "superset.log").read_text(encoding="utf-8")[-4000:])
    return done.returncode


def inside(folder: Path) -> int:
    """The checks, where Superset is installed."""
    from superset.app import create_app

    import icesql
    from icesql.demo import build

    lake = folder / f"lake-{os.getpid()}"
    build(lake)
    app = create_app()
    app.config["SESSION_COOKIE_SECURE"] = False
    wrong = 0

    def check(what: str, holds: Any, told: object = "") -> None:
        nonlocal wrong
        wrong += not holds
        print(f"{'ok   ' if holds else 'WRONG'} {what}{'' if holds else f': {told}'}", flush=True)

    with app.app_context():
        from superset.db_engine_specs import get_engine_spec
        from superset.extensions import security_manager

        found = get_engine_spec("icesql")
        check("the entry point gives the spec", found.__name__ == "IcesqlEngineSpec", found)
        if security_manager.find_user("admin") is None:
            role = security_manager.find_role("Admin")
            security_manager.add_user("admin", "A", "B", "a@example.org", role, password="pw")
    client = Client(app)
    database = Database(client, f"icesql:///{lake}?read_only=true", lake)
    check("a database is made", database.number, database.made)
    names(database, check)
    sql_lab(database, check)
    estimates(database, check)
    errors(database, client, check, lake)
    charts(database, check)
    stops(database, check, app)
    with icesql.connect(warehouse=lake) as connection:
        left = connection.execute("SELECT count(*) FROM demo.trips").fetchall()
    check("nothing was changed", left == [(4000,)], left)
    return int(wrong > 0)


class Client:
    """Superset's REST API, as the user admin."""

    def __init__(self, app: Any) -> None:
        self.app = app
        login = {"username": "admin", "password": "pw", "provider": "db"}
        answer = app.test_client().post("/api/v1/security/login", json=login)
        self.headers = {"Authorization": f"Bearer {answer.json['access_token']}"}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = self.app.test_client().open(
            f"/api/v1/{path}", method=method, json=body, headers=self.headers
        )
        return answer.status_code, answer.get_json(silent=True)


class Database:
    """A database of Superset's."""

    def __init__(self, client: Client, url: str, lake: Path) -> None:
        self.client, self.lake = client, lake
        body = {
            "database_name": f"lake {os.getpid()} {time.time()}",
            "sqlalchemy_uri": url,
            "expose_in_sqllab": True,
            "allow_dml": True,
        }
        code, self.made = client.ask("POST", "database/", body)
        self.number = self.made.get("id") if code == 201 else None

    def get(self, path: str) -> Any:
        return self.client.ask("GET", f"database/{self.number}/{path}")[1]

    def run(self, sql: str, **more: Any) -> tuple[int, Any]:
        body = {"database_id": self.number, "sql": sql, "schema": "demo", "queryLimit": 100, **more}
        return self.client.ask("POST", "sqllab/execute/", body)

    def estimate(self, sql: str) -> tuple[int, Any]:
        body = {"database_id": self.number, "sql": sql, "schema": "demo"}
        return self.client.ask("POST", "sqllab/estimate/", body)


def names(database: Database, check: Any) -> None:
    schemas = database.get("schemas/")
    check("schemas are listed", schemas.get("result") == ["demo"], schemas)
    tables = database.get("tables/?q=(schema_name:demo,force:!t)")
    check("tables are listed", "trips" in str(tables.get("result")), tables)
    table = database.get("table_metadata/?name=trips&schema=demo")
    columns = {each["name"]: each["longType"] for each in table.get("columns", [])}
    check("columns are listed", columns.get("fare") == "DECIMAL(8, 2)", table)
    check("with comments", "since the third week" in json.dumps(table), table)
    select = str(table.get("selectStar"))
    check("SELECT * is suggested", "FROM demo.trips" in select, select)


def sql_lab(database: Database, check: Any) -> None:
    code, told = database.run("SELECT city, count(*) AS n FROM trips GROUP BY 1 ORDER BY 1")
    check("a query runs, its tables found in the schema", code == 200, told)
    check("its rows come", told.get("data", [{}])[0] == {"city": "Athens", "n": 800}, told)
    types = {each["name"]: each["type"] for each in told.get("columns", [])}
    check("with types", types == {"city": "STRING", "n": "BIGINT"} or "n" in types, types)
    code, told = database.run("SELECT * FROM demo.trips")
    check("rows are limited", code == 200 and len(told["data"]) == 100, told)
    travel = "SELECT count(*) AS n FROM demo.trips FOR VERSION AS OF 'two-weeks'"
    code, told = database.run(travel)
    check("time travel", code == 200 and told["data"] == [{"n": 2800}], told)
    nested = "SELECT {'a': 1, 'b': [1, 2]} AS s, [1, 2] AS l, map {'k': 1} AS m, 1.50 AS d"
    code, told = database.run(nested)
    check("nested values come", code == 200 and "k" in json.dumps(told["data"]), told)
    code, told = database.run("SELECT 1 AS a; SELECT 2 AS b")
    check("several statements give the last rows", code == 200 and told["data"] == [{"b": 2}], told)
    code, told = database.run("DELETE FROM demo.trips WHERE id < 300")
    check("a read-only URL refuses a change", code >= 400 and "read_only" in json.dumps(told), told)


def estimates(database: Database, check: Any) -> None:
    code, told = database.estimate("SELECT id FROM demo.trips WHERE pickup_at < DATE '2026-01-03'")
    rows = told.get("result", [{}]) if code == 200 else [{}]
    check("an estimate reads metadata", rows[0].get("Data files") == "1", told)
    for sql in (
        f"ANALYZE {SLOW}",
        f"EXPLAIN ANALYZE {SLOW}",
        f"/* a /* b */ c */ ANALYZE {SLOW}",
        f"(/**/ANALYZE) {SLOW}",
        f"(ANALYZE) {SLOW}",
        f"-- x\n  ANALYZE {SLOW}",
        f"SELECT 1; ANALYZE {SLOW}",
    ):
        began = time.monotonic()
        code, told = database.estimate(sql)
        took = time.monotonic() - began
        check(f"no estimate runs {sql[:24]!r} ({code})", code >= 400 and took < 30, (took, told))
    code, told = database.estimate(SLOW)
    check("a slow query is estimated, not run", code == 200, told)


def errors(database: Database, client: Client, check: Any, lake: Path) -> None:
    for sql, kind, words in (
        ("SELECT nothing FROM demo.trips", "COLUMN_DOES_NOT_EXIST_ERROR", "nothing"),
        ("SELECT * FROM demo.trip", "TABLE_DOES_NOT_EXIST_ERROR", "demo.trip"),
        ("SELECT count(* FROM demo.trips", "", "pars"),
        ("SELECT 1 + FROM demo.trips", "", ""),
    ):
        code, told = database.run(sql)
        text = json.dumps(told)
        check(f"an error is told: {sql}", code >= 400 and words in text and kind in text, told)
    for url, words in (
        (f"icesql:///{lake}/nothing", "does not exist"),
        ("icesql://nowhere", "no catalog"),
        (f"icesql:///{lake}?token=hush-hush&read_only=maybe", "true or false"),
    ):
        body = {"sqlalchemy_uri": url, "database_name": "bad"}
        code, told = client.ask("POST", "database/test_connection/", body)
        text = json.dumps(told)
        check(f"a wrong URL is refused: {words}", code >= 400, told)
        check("without a secret", "hush-hush" not in text, told)


def charts(database: Database, check: Any) -> None:
    body = {"database": database.number, "schema": "demo", "table_name": "trips"}
    code, made = database.client.ask("POST", "dataset/", body)
    check("a dataset is made", code == 201, made)
    if code != 201:
        return
    _, seen = database.client.ask("GET", f"dataset/{made['id']}")
    columns = {each["column_name"]: each for each in seen["result"]["columns"]}
    check("its time column is one", columns["pickup_at"]["is_dttm"], columns["pickup_at"])
    from superset.db_engine_specs import get_engine_spec

    with database.client.app.app_context():
        grains = [each for each in get_engine_spec("icesql").get_time_grain_expressions() if each]
    for grain in grains:
        query = {
            "columns": [
                {
                    "columnType": "BASE_AXIS",
                    "sqlExpression": "pickup_at",
                    "label": "pickup_at",
                    "expressionType": "SQL",
                    "timeGrain": grain,
                }
            ],
            "metrics": [{"expressionType": "SQL", "sqlExpression": "sum(fare)", "label": "fares"}],
            "filters": [
                {"col": "pickup_at", "op": "TEMPORAL_RANGE", "val": "2026-01-03 : 2026-01-10"},
                {"col": "city", "op": "IN", "val": ["Athens", "it's"]},
            ],
            "row_limit": 10,
        }
        chart = {
            "datasource": {"id": made["id"], "type": "table"},
            "queries": [query],
            "result_format": "json",
            "result_type": "full",
            "force": True,
        }
        code, told = database.client.ask("POST", "chart/data", chart)
        rows = told["result"][0].get("data") if code == 200 else None
        check(f"a chart by {grain}", rows and "fares" in rows[0], told)
    database.client.ask("DELETE", f"dataset/{made['id']}")


def stops(database: Database, check: Any, app: Any) -> None:
    name = "stopped00"
    answers: list[tuple[int, Any]] = []

    def run() -> None:
        answers.append(database.run(SLOW, client_id=name, runAsync=False))

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(5)
    began = time.monotonic()
    code, told = database.client.ask("POST", "query/stop", {"client_id": name})
    check("a stop is taken", code == 200, told)
    thread.join(20)
    took = time.monotonic() - began
    check(f"a stopped query ends ({took:.1f} s later)", not thread.is_alive() and took < 5, answers)
    code, told = database.run("SELECT 1 AS one")
    check("the next one runs", code == 200 and told["data"] == [{"one": 1}], told)
    watching = [each for each in threading.enumerate() if "_cancel_when_stopped" in each.name]
    time.sleep(2)
    check("no thread is left", not [each for each in watching if each.is_alive()], watching)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
