"""SQLAlchemy reads Iceberg tables: URLs, reflection, statements, tables as they were."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas
import pytest
from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    Column,
    Computed,
    Engine,
    ForeignKey,
    Identity,
    MetaData,
    Table,
    bindparam,
    cast,
    create_engine,
    exc,
    func,
    inspect,
    literal,
    select,
    text,
    types,
)
from sqlalchemy.dialects import registry
from sqlalchemy.engine import make_url

import icesql
from icesql.sqlalchemy.compiler import as_of, with_version
from icesql.sqlalchemy.dialect import IcesqlDialect
from icesql.sqlalchemy.reflected import IcebergType, type_of
from tests.tables import read_table

# Done by the entry point if icesql is installed.
registry.register("icesql", "icesql.sqlalchemy.dialect", "IcesqlDialect")


@pytest.fixture
def engine(warehouse: Path) -> Iterator[Engine]:
    made = create_engine(f"icesql:///{warehouse}")
    yield made
    made.dispose()


@pytest.fixture
def orders(engine: Engine) -> Table:
    return Table("orders", MetaData(), schema="shop", autoload_with=engine)


@pytest.mark.parametrize(("url", "arguments"), read_table(__file__, "urls.tsv"))
def test_a_url_says_what_to_connect_to(url: str, arguments: str) -> None:
    expected = (), ast.literal_eval(arguments)
    assert IcesqlDialect().create_connect_args(make_url(url)) == expected


@pytest.mark.parametrize(("url", "message"), read_table(__file__, "refused_urls.tsv"))
def test_a_url_that_cannot_be_meant_is_refused(url: str, message: str) -> None:
    with pytest.raises(exc.ArgumentError, match=message):
        IcesqlDialect().create_connect_args(make_url(url))


@pytest.mark.parametrize(
    "url",
    [
        "icesql://?uri=http://c.example&token=hush",
        "icesql://?uri=http://c.example&credential=id:hush",
        "icesql://?uri=http://c.example&s3.secret-access-key=hush&type=rest",
        "icesql://?uri=postgresql%3A%2F%2Fme%3Ahush%40localhost%2Fdb",
        "icesql://token:hush@prod/sales",
    ],
)
def test_secrets_of_a_url_are_not_shown(url: str) -> None:
    engine = create_engine(url)
    assert "hush" not in repr(engine) + repr(engine.url) + repr(engine.execution_options(a=1))
    assert "***" in repr(engine.url)
    assert engine.url == make_url(url)
    assert "hush" in engine.url.render_as_string(hide_password=False)


def test_a_namespace_of_the_url_is_the_current_one(warehouse: Path) -> None:
    engine = create_engine(f"icesql:///{warehouse}?namespace=shop")
    with engine.connect() as connection:
        assert connection.dialect.default_schema_name == "shop"
        assert connection.execute(text("SELECT count(*) FROM customers")).scalar() == 4
    assert inspect(engine).has_table("customers")
    engine.dispose()


def test_schemas_tables_and_columns_are_reflected(engine: Engine) -> None:
    inspector = inspect(engine)
    assert inspector.get_schema_names() == ["shop"]
    assert inspector.get_table_names("shop") == ["customers", "orders", "types"]
    assert inspector.get_table_names() == []
    assert inspector.get_view_names("shop") == []
    assert inspector.has_table("orders", schema="shop")
    assert not inspector.has_table("nothing", schema="shop")
    columns = {column["name"]: column for column in inspector.get_columns("orders", "shop")}
    assert not columns["id"]["nullable"]
    assert isinstance(columns["id"]["type"], types.BIGINT)
    amount: Any = columns["amount"]["type"]
    assert (amount.precision, amount.scale) == (10, 2)
    ordered: Any = columns["ordered_at"]["type"]
    assert ordered.timezone
    assert inspector.get_pk_constraint("orders", "shop")["constrained_columns"] == []
    assert inspector.get_foreign_keys("orders", "shop") == []
    assert inspector.get_indexes("orders", "shop") == []
    assert inspector.get_table_comment("orders", "shop") == {"text": None}
    with pytest.raises(exc.NoSuchTableError):
        inspector.get_columns("nothing", "shop")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int", types.INTEGER),
        ("fixed[16]", types.BLOB),
        ("timestamptz_ns", types.TIMESTAMP),
        ("struct<a: int>", IcebergType),
        ("map<string, int>", IcebergType),
        ("variant", IcebergType),
    ],
)
def test_each_type_has_one(text: str, expected: type[Any]) -> None:
    assert isinstance(type_of(text), expected)


def test_lists_of_lists_are_one_array() -> None:
    made = type_of("list<list<decimal(9, 2)>>")
    assert isinstance(made, ARRAY)
    assert made.dimensions == 2
    assert isinstance(made.item_type, types.DECIMAL)


def test_statements_run_with_parameters(engine: Engine, orders: Table) -> None:
    query = (
        select(orders.c.region, func.count().label("n"), func.sum(orders.c.amount))
        .where(orders.c.id.in_([0, 2, 3]), orders.c.ordered_on == date(2026, 1, 1))
        .group_by(orders.c.region)
        .order_by(orders.c.region)
    )
    with engine.connect() as connection:
        rows = connection.execute(query).all()
    assert [tuple(row) for row in rows] == [("eu", 2, Decimal("3.00")), (None, 1, Decimal("2.00"))]


def test_limits_and_offsets_of_every_kind(engine: Engine, orders: Table) -> None:
    ordered = select(orders.c.id).order_by(orders.c.id)
    with engine.connect() as connection:
        ids = connection.scalars(ordered).all()
        assert connection.scalars(ordered.limit(3)).all() == ids[:3]
        assert connection.scalars(ordered.offset(55)).all() == ids[55:]
        assert connection.scalars(ordered.limit(2).offset(3)).all() == ids[3:5]
        assert connection.scalars(ordered.limit(0)).all() == []


def test_what_is_spelled_otherwise_elsewhere(engine: Engine, orders: Table) -> None:
    region, identity = orders.c.region, orders.c.id
    with engine.connect() as connection:

        def count(*conditions: Any) -> Any:
            return connection.scalar(select(func.count()).select_from(orders).where(*conditions))

        assert count(identity.in_([])) == 0
        assert count(~identity.in_([])) == count()
        assert count(region.ilike("EU")) == count(region == "eu")
        assert count(region.regexp_match("^e")) == count(region == "eu")
        assert count(~region.regexp_match("^E", flags="i")) == count(region == "us")
        assert count(region.is_distinct_from(None)) == count(region.is_not(None))
        assert count(identity % 2 == 1) + count(identity % 2 == 0) == count()
        assert count(region.concat("x") == "eux") == count(region == "eu")
        assert count(cast(identity, types.String) == "6") == 1
        assert count(identity == bindparam("wanted", 6)) == 1


def test_values_come_back_as_what_they_were(engine: Engine) -> None:
    instant = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    with engine.connect() as connection:
        row = connection.execute(
            select(
                literal(instant, types.TIMESTAMP(timezone=True)),
                literal(Decimal("1.50")),
                literal(True),
                literal(b"\x00\xff"),
                cast(literal("9"), types.Float),
            )
        ).one()
    assert tuple(row) == (instant, Decimal("1.50"), True, b"\x00\xff", 9.0)


def test_a_table_as_it_was(engine: Engine, orders: Table) -> None:
    opening = with_version(orders, "opening", name="was")
    now = select(func.count()).select_from(orders)
    with engine.connect() as connection:
        was = connection.scalar(select(func.count()).select_from(opening))
        assert connection.scalar(now) > was > 0
        added = (
            select(orders.c.id)
            .outerjoin(opening, orders.c.id == opening.c.id)
            .where(opening.c.id.is_(None))
        )
        ids = set(connection.scalars(select(orders.c.id)))
        ids_then = set(connection.scalars(select(opening.c.id)))
        assert set(connection.scalars(added)) == ids - ids_then
        snapshot, committed = connection.execute(
            text("SELECT snapshot_id, committed_at FROM shop.orders.snapshots ORDER BY 2 LIMIT 1")
        ).one()
        for first in (with_version(orders, snapshot), as_of(orders, committed)):
            assert connection.scalar(select(func.count()).select_from(first)) == was


def test_a_statement_as_of_a_time(engine: Engine, orders: Table) -> None:
    count = select(func.count()).select_from(orders)
    with engine.connect() as connection:
        now = connection.scalar(count)
        committed = connection.scalar(text("SELECT min(committed_at) FROM shop.orders.snapshots"))
        then = connection.execution_options(as_of=committed)
        assert then.scalar(count) == 20
        assert then.scalar(select(func.count()).select_from(with_version(orders, "main"))) == now
        with pytest.raises(exc.DBAPIError, match="2000-01-01"):
            connection.execution_options(as_of="2000-01-01").scalar(count)
        assert connection.execution_options(as_of=None).scalar(count) == now


def test_versions_of_one_table_are_no_one_statement(engine: Engine, orders: Table) -> None:
    with engine.connect() as connection:
        counts = [
            connection.scalar(select(func.count()).select_from(with_version(orders, version)))
            for version in ("opening", "main", "opening")
        ]
    assert counts[0] == counts[2] < counts[1]


def test_a_version_is_a_text_and_no_sql(engine: Engine, orders: Table) -> None:
    with engine.connect() as connection, pytest.raises(exc.DBAPIError, match="not found in table"):
        connection.execute(select(with_version(orders, "x' OR 'a' = 'a")))


def test_errors_are_of_the_driver(engine: Engine) -> None:
    with engine.connect() as connection, pytest.raises(exc.ProgrammingError) as raised:
        connection.execute(text("SELECT nothing FROM shop.orders"))
    assert isinstance(raised.value.orig, icesql.ColumnNotFoundError)


def test_a_ping_asks_the_catalog(engine: Engine, tmp_path: Path) -> None:
    for _ in range(2):
        with engine.connect() as connection:
            assert engine.dialect.do_ping(connection.connection)
    wrong = create_engine(f"icesql:///{tmp_path}/nothing")
    with pytest.raises(icesql.CatalogError, match="does not exist"):
        engine.dialect.do_ping(wrong.raw_connection())
    assert engine.dialect.do_ping(create_engine("icesql://").raw_connection())


def test_transactions_of_a_pool_are_harmless(engine: Engine, orders: Table) -> None:
    for _ in range(3):
        with engine.begin() as connection:
            assert connection.scalar(select(func.max(orders.c.id))) is not None
    with engine.connect() as connection:
        connection.execute(select(orders.c.id).limit(1))
        connection.rollback()


@pytest.mark.filterwarnings("error")
def test_pandas_reads_through_it(engine: Engine) -> None:
    frame = pandas.read_sql("SELECT id, region FROM shop.orders ORDER BY id LIMIT 2", engine)
    assert list(frame.columns) == ["id", "region"]
    with engine.connect() as connection:
        assert len(pandas.read_sql_table("customers", connection, schema="shop")) == 4


# ------------------------------------------------------------------ writing


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Engine]:
    """An engine on a new warehouse folder, whose dropped tables lose their files."""
    with icesql.connect(warehouse=tmp_path) as connection:
        connection.execute("CREATE SCHEMA web")
    made = create_engine(f"icesql:///{tmp_path}?namespace=web&purge=true")
    yield made
    made.dispose()


def test_a_table_is_made_filled_and_dropped(lake: Engine) -> None:
    metadata = MetaData()
    other = Table("other", metadata, Column("id", types.Integer, primary_key=True))
    table = Table(
        "visits",
        metadata,
        Column("id", types.BigInteger, primary_key=True, autoincrement=False, comment="it's a key"),
        Column("page", types.String(20), index=True, unique=True),
        Column("at", types.DateTime),
        Column("other", types.Integer, ForeignKey(other.c.id)),
        CheckConstraint("id > 0"),
        comment="who came",
        icesql_partitioned_by=["days(at)", "bucket(4, id)"],
        icesql_properties={"write.parquet.compression-codec": "gzip"},
    )
    with lake.begin() as connection:
        metadata.create_all(connection)
        added = connection.execute(
            table.insert(), [{"id": 1, "page": "/"}, {"id": 2, "page": "/a"}]
        )
        assert added.rowcount == 2
        assert not added.returns_rows
        connection.execute(table.update().where(table.c.id == 2).values(page="/b"))
        assert connection.execute(table.delete().where(table.c.id == 1)).rowcount == 1
        assert connection.execute(select(table.c.id, table.c.page)).all() == [(2, "/b")]
        # The rows of each statement are one commit.
        commits = text("SELECT count(*) FROM visits.snapshots")
        assert connection.scalar(commits) == 3
        spec = connection.execute(text("SHOW CREATE TABLE visits")).scalar_one()
        assert "PARTITIONED BY (days(`at`), bucket(4, id))" in spec
        assert "'write.parquet.compression-codec' = 'gzip'" in spec
        inspector = inspect(connection)
        assert inspector.get_table_comment("visits") == {"text": "who came"}
        first = inspector.get_columns("visits")[0]
        assert (first["comment"], first["nullable"]) == ("it's a key", False)
        metadata.drop_all(connection)
        assert inspect(connection).get_table_names() == []
        metadata.create_all(connection)


def test_the_files_of_a_dropped_table_go_only_by_purge(tmp_path: Path) -> None:
    with icesql.connect(warehouse=tmp_path) as connection:
        connection.execute("CREATE SCHEMA web")
    engine = create_engine(f"icesql:///{tmp_path}?namespace=web")
    table = Table("t", MetaData(), Column("id", types.Integer))
    purged = Table("t", MetaData(), Column("id", types.Integer), icesql_purge=True)
    with engine.connect() as connection:
        table.create(connection)
        with pytest.raises(exc.DBAPIError, match="PURGE"):
            table.drop(connection)
        purged.drop(connection)
    engine.dispose()


@pytest.mark.parametrize(
    "column",
    [Column("a", types.Integer, Computed("b + 1")), Column("a", types.Integer, Identity())],
)
def test_what_would_make_values_is_refused(lake: Engine, column: Any) -> None:
    table = Table("t", MetaData(), Column("b", types.Integer), column)
    with lake.connect() as connection, pytest.raises(exc.CompileError, match="Iceberg has not"):
        table.create(connection)


def test_a_transaction_is_one_commit_or_none(lake: Engine) -> None:
    table = Table("t", MetaData(), Column("id", types.Integer))
    table.create(lake)
    snapshot = lake.execution_options(isolation_level="SNAPSHOT")
    with snapshot.connect() as connection:
        connection.execute(table.insert(), {"id": 1})
        connection.rollback()
    with snapshot.begin() as connection:
        connection.execute(table.insert(), {"id": 2})
        connection.execute(table.insert(), {"id": 3})
    with lake.connect() as connection:
        assert connection.get_isolation_level() == "AUTOCOMMIT"
        assert sorted(connection.scalars(select(table.c.id))) == [2, 3]
        versions = text("SELECT count(*) FROM t.metadata_log_entries")
        assert connection.scalar(versions) == 2  # the table made, and one commit


def test_operators_that_the_engine_spells_otherwise(lake: Engine) -> None:
    number: Any = literal(6, types.Integer)
    with lake.connect() as connection:
        assert connection.scalar(select(number.bitwise_xor(3))) == 5
        assert connection.scalar(select(number / literal(4))) == 1.5
        assert connection.scalar(select(number // literal(4))) == 1
        price: Any = literal(Decimal("5.52"), types.Numeric(10, 2))
        assert connection.scalar(select(price / literal(Decimal("2.4")))) == Decimal("2.3")
        swapped = literal("abcb").regexp_replace("b", "x", flags="g")
        assert connection.scalar(select(swapped)) == "axcx"


def test_json_lies_in_a_text(lake: Engine) -> None:
    value = {"a b": [1, {'it\'s "x"': "é"}], "n": 1.5, "t": True, "z": None}
    table = Table("t", MetaData(), Column("id", types.Integer), Column("j", types.JSON))
    with lake.begin() as connection:
        table.create(connection)
        connection.execute(table.insert(), [{"id": 1, "j": value}, {"id": 2, "j": None}])

        def got(expression: Any) -> Any:
            return connection.scalar(select(expression).where(table.c.id == 1))

        assert got(table.c.j) == value
        assert got(table.c.j["a b"]) == value["a b"]
        assert got(table.c.j["a b"][0].as_integer()) == 1
        assert got(table.c.j["a b", 1, 'it\'s "x"'].as_string()) == "é"
        assert got(table.c.j["n"].as_float()) == 1.5
        assert got(table.c.j["t"].as_boolean()) is True
        assert got(table.c.j["nothing"]) is None
        wanted = select(table.c.id).where(table.c.j["a b", 1, 'it\'s "x"'].as_string() == "é")
        assert connection.scalars(wanted).all() == [1]
        literals = {"literal_binds": True}
        text_of = str(select(table.c.j["it's"]).compile(lake, compile_kwargs=literals))
        assert "'$.\"it''s\"'" in text_of


@pytest.mark.filterwarnings("error")
def test_pandas_writes_through_it(lake: Engine) -> None:
    frame = pandas.DataFrame({"id": [1, 2], "page": ["/", None], "price": [1.5, 2.0]})
    assert frame.to_sql("t", lake) == 2  # with its index, which SQLAlchemy would index
    frame.to_sql("t", lake, if_exists="append")
    frame.to_sql("t", lake, if_exists="replace", index=False, method="multi")
    read = pandas.read_sql_table("t", lake)
    assert list(read.columns) == ["id", "page", "price"]
    assert read["price"].tolist() == [1.5, 2.0]
    assert read["page"].isna().tolist() == [False, True]


def test_rollback_names_what_it_cannot_undo(lake: Engine) -> None:
    table = Table("t", MetaData(), Column("id", types.Integer))
    table.create(lake)
    change = table.insert().values(id=1)
    with lake.connect() as connection:
        connection.execute(change)
        with pytest.warns(icesql.Warning, match=r"INSERT INTO t was committed.*SNAPSHOT"):
            connection.rollback()
        connection.rollback()  # nothing since
        connection.execute(table.insert(), [{"id": 2}, {"id": 3}])
        with pytest.warns(icesql.Warning, match="INSERT INTO t was committed"):
            connection.rollback()
        connection.execute(change)
        connection.commit()
        connection.rollback()
        assert connection.scalar(select(func.count()).select_from(table)) == 4
    # Explicit AUTOCOMMIT does not warn, and a rollback with SNAPSHOT undoes the change.
    for level, rows in (("AUTOCOMMIT", 5), ("SNAPSHOT", 5)):
        with lake.connect().execution_options(isolation_level=level) as connection:
            connection.execute(change)
            connection.rollback()
            assert connection.scalar(select(func.count()).select_from(table)) == rows
    with lake.connect() as connection:
        connection.execute(change)
        with pytest.warns(icesql.Warning, match="INSERT"):
            connection.rollback()


def test_to_sql_and_drop_all_say_how_the_url_allows_purge(tmp_path: Path) -> None:
    engine = create_engine(f"icesql:///{tmp_path}")
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA app"))
    table = Table("t", MetaData(), Column("id", types.Integer), schema="app")
    table.create(engine)
    frame = pandas.DataFrame({"id": [1]})
    for run in (
        lambda: table.metadata.drop_all(engine),
        lambda: frame.to_sql("t", engine, schema="app", index=False, if_exists="replace"),
    ):
        with pytest.raises(exc.NotSupportedError, match=r"\?purge=true of the URL"):
            run()
    engine = create_engine(f"icesql:///{tmp_path}?purge=true")
    frame.to_sql("t", engine, schema="app", index=False, if_exists="replace")
    assert pandas.read_sql("SELECT id FROM app.t", engine)["id"].to_list() == [1]
