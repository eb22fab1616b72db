"""Nanoseconds and UUIDs with other types: values computed by Python integers, on both readers."""

from __future__ import annotations

import operator
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest

import icesql
from icesql import Timestamp
from tests.tables import read_cases
from tests.writer.fields import fields
from tests.writer.table import TableWriter

NANOS = [
    -(2**63) + 1,
    -1,
    0,
    1,
    999,
    1_000,
    1_577_836_800_000_000_000,
    1_577_836_800_000_000_001,
    1_577_923_199_999_999_999,
    2**63 - 1,
    None,
]
UUIDS = ["00000000-0000-0000-0000-000000000001", "12345678-1234-1234-1234-1234567890ab",
         "fedcba98-0000-4000-8000-000000000000", None]  # fmt: skip
FIELDS = fields("id int, nz timestamptz_ns, n timestamp_ns, z timestamptz, u uuid, f fixed[4]")
FIXED = [b"\x00\x00\x00\x00", b"\x0a\x0b\x00\x00", b"\x0a\x0b\xff\xff", None]
COMPARE = {"<": operator.lt, "<=": operator.le, "=": operator.eq, ">": operator.gt,
           ">=": operator.ge, "<>": operator.ne}  # fmt: skip


@pytest.fixture(scope="module", params=["auto", "arrow"])
def connection(request, tmp_path_factory):
    table = TableWriter(tmp_path_factory.mktemp("finer"), FIELDS, version=3)
    rows = [
        {
            "id": index,
            "nz": value,
            "n": value,
            "z": None if value is None else value // 1000,
            "u": UUIDS[index] and UUID(UUIDS[index]).bytes if index < 4 else None,
            "f": FIXED[index] if index < 4 else None,
        }
        for index, value in enumerate(NANOS)
    ]
    table.commit([table.data_file(rows[:6]), table.data_file(rows[6:])])
    with icesql.connect(settings={"local_reader": request.param}) as opened:
        opened.register_table("t", table.metadata_path)
        yield opened


def ids(connection, condition, **parameters):
    sql = f"SELECT id FROM t WHERE {condition} ORDER BY id"
    return [row[0] for row in connection.execute(sql, parameters or None).fetchall()]


def expected(test):
    return [index for index, value in enumerate(NANOS) if value is not None and test(value)]


INSTANTS = dict(read_cases(__file__, "instants.tsv", 1))


@pytest.mark.parametrize("column", ["nz", "n"])
@pytest.mark.parametrize("literal", INSTANTS)
def test_comparisons_are_exact(connection, column, literal):
    instant = INSTANTS[literal]
    for condition, test in (
        (f"{column} < {literal}", operator.lt),
        (f"{literal} <= {column}", operator.ge),
    ):
        assert ids(connection, condition) == expected(lambda value, test=test: test(value, instant))
    signs = ", ".join(f"{column} {sign} {literal}" for sign in COMPARE)
    rows = connection.execute(f"SELECT {signs} FROM t ORDER BY id").fetchall()
    assert rows == [
        tuple(None if value is None else test(value, instant) for test in COMPARE.values())
        for value in NANOS
    ]


@pytest.mark.parametrize(("condition", "found"), read_cases(__file__, "conditions.tsv", 1))
def test_conditions_find_their_rows(connection, condition, found):
    for prune in ("on", "off"):
        connection.execute(f"SET prune = {prune}")
        assert ids(connection, condition) == found
    connection.execute("RESET prune")


def test_a_parameter_is_compared_with_nanoseconds(connection):
    at = datetime(2020, 1, 1, tzinfo=UTC)
    assert ids(connection, "nz < $at", at=at) == [0, 1, 2, 3, 4, 5]


def test_joins_and_derived_tables(connection):
    sql = "SELECT a.id, b.id FROM t a JOIN t b ON a.nz = b.z ORDER BY 1, 2"
    assert connection.execute(sql).fetchall() == [(2, 2), (2, 3), (2, 4), (5, 5), (6, 6), (6, 7)]
    sql = "WITH a AS (SELECT *, nz AS m FROM t) SELECT max(id) FROM a WHERE m < now() - INTERVAL 1 DAY"
    assert connection.execute(sql).fetchall() == [(8,)]
    sql = "SELECT count(*) FROM (SELECT max(nz) AS x FROM t) WHERE x > TIMESTAMPTZ '2200-01-01'"
    assert connection.execute(sql).fetchall() == [(1,)]


def test_functions_see_the_microsecond_that_a_time_lies_in(connection):
    sql = (
        "SELECT year(nz), year(n), extract(day FROM nz), date_trunc('day', nz), nz::DATE, "
        "CAST(nz AS TIMESTAMP), CAST(n AS TIMESTAMP), nz::TIME, date_part('hour', nz) "
        "FROM t WHERE id = 1"
    )
    cursor = connection.execute(sql)
    assert [each[0] for each in cursor.description][:2] == ['"year"(nz)', '"year"(n)']
    last = datetime(1969, 12, 31, 23, 59, 59, 999_999)
    day = datetime(1969, 12, 31, tzinfo=UTC)
    assert cursor.fetchall() == [(1969, 1969, 31, day, day.date(), last, last, last.time(), 23)]


@pytest.mark.parametrize(
    "columns",
    ["n + INTERVAL 1 DAY, CAST(n AS VARCHAR), n > '2020-01-01', max(n) OVER ()",
     "(SELECT max(n) FROM t), id IN (SELECT id FROM t WHERE n::DATE = '2020-01-01')",
     "n::DATE, CASE WHEN n IS NULL THEN 1 END, [n], {'a': n}, year(n)",
     "EXISTS (SELECT 1 FROM t AS x WHERE x.n = t.n AND x.id IN (1, 2)), (SELECT (SELECT min(n) FROM t))"],
)  # fmt: skip
def test_columns_have_the_names_of_the_text_that_was_written(connection, columns):
    sql = f"SELECT {columns} FROM t"
    found = [each[0] for each in connection.execute(sql).description]
    with duckdb.connect() as plain:
        plain.execute("CREATE TABLE t (id BIGINT, n TIMESTAMP_NS)")
        assert found == [each[0] for each in plain.execute(sql).description]


def test_sums_with_intervals_keep_nanoseconds(connection):
    sql = "SELECT nz + INTERVAL 1 MONTH, n - INTERVAL 1 DAY, nz - z, INTERVAL 1 HOUR + nz FROM t WHERE id = 7"
    ((zoned, local, between, later),) = connection.execute(sql).fetchall()
    assert str(zoned) == "2020-02-01 00:00:00.000000001+00:00"
    assert str(local) == "2019-12-31 00:00:00.000000001"
    assert between == timedelta(0)
    assert str(later) == "2020-01-01 01:00:00.000000001+00:00"
    assert ids(
        connection,
        "nz + INTERVAL 1 DAY > TIMESTAMPTZ '2020-01-02 00:00:00+00' AND id > 5 AND id < 9",
    ) == [7, 8]
    with pytest.raises(icesql.DataError):
        connection.execute("SELECT nz + INTERVAL 1 DAY FROM t WHERE id = 9").fetchall()


@pytest.mark.parametrize("column", ["nz", "n"])
def test_sums_of_many_steps_are_as_long_as_they_are_written(connection, column):
    """DuckDB adds the same steps to whole microseconds; the nanoseconds stay as they were."""
    steps = " + INTERVAL 1 MONTH - INTERVAL 40 DAY + INTERVAL '90 minutes'"
    sql = "SELECT epoch_ns({}) FROM t WHERE id BETWEEN 1 AND 8 ORDER BY id"
    for times in (1, 2, 20):
        written = f"(INTERVAL 1 HOUR + ({column}{steps * times})) - INTERVAL 1 HOUR"
        found = [each for (each,) in connection.execute(sql.format(written)).fetchall()]
        with duckdb.connect() as plain:
            plain.execute("SET TimeZone = 'UTC'")
            moments = [
                plain.execute(
                    f"SELECT epoch_us(make_timestamp({value // 1000}){steps * times})"
                ).fetchone()[0]
                for value in NANOS[1:9]
            ]
        assert found == [
            each * 1000 + value % 1000 for each, value in zip(moments, NANOS[1:9], strict=True)
        ]


def test_days_are_steps_on_the_calendar_of_the_session(tmp_path):
    with icesql.connect(settings={"timezone": "Europe/Vienna"}) as connection:
        sql = "SELECT TIMESTAMPTZ_NS '2026-03-28 12:00:00.000000007+01' + INTERVAL 1 DAY"
        ((later,),) = connection.execute(sql).fetchall()
    assert later == Timestamp(2026, 3, 29, 12, tzinfo=ZoneInfo("Europe/Vienna")).replace(
        nanosecond=7
    )


def test_instants_of_two_precisions_unite(connection):
    sql = (
        "SELECT coalesce(nz, z), CASE WHEN id = 7 THEN nz ELSE z END, greatest(nz, z), "
        "if(id = 8, z, nz) FROM t WHERE id = 7"
    )
    ((*found,),) = connection.execute(sql).fetchall()
    assert [each.nanosecond for each in found] == [1, 1, 1, 1]


def test_literals_of_nanoseconds(connection):
    sql = "SELECT TIMESTAMPTZ_NS '2020-01-01 00:00:00.000000001+00', TIMESTAMP_NS '2020-01-01 00:00:00.123456789'"
    ((zoned, local),) = connection.execute(sql).fetchall()
    assert (zoned.nanosecond, zoned.tzinfo, local.nanosecond) == (1, UTC, 789)


# ------------------------------------------------------------------ uuid


def test_a_malformed_uuid_is_an_error_that_names_it(connection):
    with pytest.raises(icesql.DataError, match="malformed"):
        connection.execute("SELECT id FROM t WHERE u = 'malformed'").fetchall()


# ------------------------------------------------------------------ fixed


@pytest.mark.parametrize(
    "literal",
    [b"", b"\x0a", b"\x0a\x0b", b"\x0a\x0b\x00\x00", b"\x0a\x0b\x00\x00\x00", b"\xff" * 9],
)
def test_fixed_meets_bytes_of_any_length(connection, literal):
    text = "".join(f"\\x{each:02X}" for each in literal)
    for sign, test in COMPARE.items():
        found = [i for i, value in enumerate(FIXED) if value is not None and test(value, literal)]
        assert ids(connection, f"f {sign} '{text}'::BLOB") == found
    wanted = [i for i, value in enumerate(FIXED) if value in (literal, FIXED[0])]
    assert ids(connection, f"f IN ('{text}'::BLOB, '\\x00\\x00\\x00\\x00'::BLOB)") == [
        each for each in wanted if FIXED[each] is not None
    ]


# ------------------------------------------------------------------ moments without a Python value


@pytest.mark.parametrize(
    "value",
    [
        "'infinity'::DATE",
        "'-infinity'::TIMESTAMP",
        "'infinity'::TIMESTAMPTZ",
        "DATE '9999-12-31' + 1",
        "DATE '0001-01-01' - 1",
        "TIMESTAMP '9999-12-31' + INTERVAL 1 DAY",
    ],
)
def test_a_moment_that_python_lacks_is_an_error_and_never_another_moment(connection, value):
    for sql in (f"SELECT {value}", f"SELECT [{value}]", f"SELECT {{'a': {value}}}"):
        with pytest.raises(icesql.DataError, match="years 1 to 9999"):
            connection.execute(sql).fetchall()
    assert connection.execute(f"SELECT ({value})::VARCHAR").fetchall()
    assert connection.execute(f"SELECT {value}").arrow().num_rows == 1


def test_the_first_and_the_last_moments_are_values(connection):
    sql = (
        "SELECT DATE '9999-12-31', DATE '0001-01-01', TIMESTAMP '9999-12-31 23:59:59.999999', "
        "TIMESTAMP '0001-01-01 00:00:00', NULL::DATE, NULL::TIMESTAMP, NULL::TIMESTAMPTZ"
    )
    assert connection.execute(sql).fetchall() == [
        (
            datetime.max.date(),
            datetime.min.date(),
            datetime.max,
            datetime.min,
            None,
            None,
            None,
        )
    ]


@pytest.mark.parametrize("kind", ["TIMESTAMP_NS", "TIMESTAMPTZ_NS"])
@pytest.mark.parametrize("value", ["infinity", "-infinity"])
def test_infinite_times_stay_infinite(kind: str, value: str) -> None:
    plain = kind.removesuffix("_NS")
    sql = (
        "SELECT weekofyear(x), year(x), date_trunc('year', x), isinf(x) FROM (SELECT '{}'::{} AS x)"
    )
    with icesql.connect() as connection, duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        expected = database.sql(sql.format(value, plain)).to_arrow_table()
        found = connection.execute(sql.format(value, kind)).arrow()
    assert [column.cast(pa.int64()).to_pylist() for column in found.columns] == [
        column.cast(pa.int64()).to_pylist() for column in expected.columns
    ]


FORMS = [
    "year(/* of */ n -- column\n) + 1",
    "n.year(), u.upper(), t.n.year()",
    "CASE n WHEN NULL THEN 1 WHEN n::TIMESTAMP THEN 2 END",
    "jaro_winkler_similarity('CRATE', 'TRACE', 0.8), upper(u)",
    "list_transform([1, 2], x -> year(n) + x)",
    "{'a': year(n)}.a, (year(n)) * (2)",
    "upper(u) COLLATE NOCASE = 'x', u NOT LIKE '0%' ESCAPE '!'",
    "sum(id) FILTER (WHERE n::DATE = '2020-01-01') OVER (PARTITION BY year(n) ORDER BY id ROWS 1 PRECEDING EXCLUDE TIES)",
    "first_value(id IGNORE NULLS) OVER (ORDER BY n::DATE DESC NULLS FIRST, id)",
    "string_agg(DISTINCT upper(u), '-' ORDER BY upper(u) DESC) OVER ()",
    "(SELECT year(max(x.n)) FROM t AS x WHERE x.id < t.id AND year(x.n) > 1900)",
    "n NOT IN (SELECT x.n FROM t AS x WHERE year(x.n) = 2020)",
    "unnest([year(n), id])",
    "id BETWEEN year(n) - 2020 AND hour(n) AND NOT (year(n) = 2020)",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_word_beside_a_changed_expression_is_kept(connection, form):
    wanted = "SELECT id, n, u FROM t WHERE id BETWEEN 2 AND 7"
    rows = connection.execute(f"{wanted} ORDER BY id").arrow()
    sql = f"WITH t AS ({wanted}) SELECT {form} FROM t ORDER BY id"
    cursor = connection.execute(sql)
    with duckdb.connect() as plain:
        plain.execute("SET lambda_syntax = 'ENABLE_SINGLE_ARROW'")
        plain.register("rows", rows)
        plain.execute(
            "CREATE TABLE t AS SELECT id, n::TIMESTAMP_NS AS n, u::VARCHAR AS u FROM rows"
        )
        found = plain.execute(sql.partition(") ")[2])
        assert [each[0] for each in cursor.description] == [each[0] for each in found.description]
        assert cursor.fetchall() == found.fetchall()


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_long_chains_with_changed_terms_run(connection, word):
    chain = f" {word} ".join(f"(id <> {each} AND true)" for each in range(20, 220))
    assert ids(connection, f"year(n) = 2020 AND ({chain}) AND nz = z") == [6]


def test_what_is_nested_too_deep_is_refused_and_what_stands_around_it_is_not(connection):
    deep = "abs(" * 90 + "{}" + ")" * 90
    sql = f"SELECT {deep.format('year(n)')} AS x FROM t WHERE id = 7"
    assert connection.execute(sql).fetchall() == [(2020,)]
    sql = f"SELECT CASE n WHEN '2020-01-01' THEN {deep.format('id')} WHEN n::DATE THEN 2 END AS x FROM t"
    with pytest.raises(icesql.NotSupportedError, match="this expression over nanosecond times"):
        connection.execute(sql)


def test_recursion_with_aggregates_runs_beside_nanoseconds(connection):
    sql = (
        "WITH RECURSIVE r(k, v) USING KEY (k, max(v)) AS (SELECT 1, 0 UNION SELECT k, v + 1 FROM r "
        "WHERE v < 2) SELECT k, v, TIMESTAMPTZ_NS '2020-01-01 00:00:00.000000001+00' > "
        "TIMESTAMPTZ '2020-01-01 00:00:00+00', year(n) FROM r, t WHERE id = 7"
    )
    assert connection.execute(sql).fetchall() == [(1, 2, True, 2020)]


def test_errors_beside_a_changed_expression_are_at_their_place(connection):
    sql = "SELECT nz = z, year(n),\n  'ab'::INT FROM t"
    with pytest.raises(icesql.DataError, match="line 2, column 7"):
        connection.execute(sql).fetchall()


def test_long_lists_beside_nanoseconds(connection):
    fits = ", ".join(f"'2020-01-01 00:00:00.{each:09}'" for each in range(150))
    assert ids(connection, f"n IN ({fits})") == [6, 7]
    with pytest.raises(icesql.NotSupportedError, match="this long list"):
        ids(connection, f"n IN ({fits.replace('2020', '1500')})")


@pytest.mark.parametrize("kind", ["TIMESTAMP_NS", "TIMESTAMPTZ_NS"])
@pytest.mark.parametrize("target", ["DATE", "TIMESTAMP", "TIMESTAMPTZ"])
def test_what_is_cast_stays_infinite(kind: str, target: str) -> None:
    sql = f"SELECT '{{}}infinity'::{kind}::{target} = '{{}}infinity'"
    with icesql.connect() as opened:
        for sign in ("", "-"):
            assert opened.execute(sql.format(sign, sign)).fetchall() == [(True,)]
        taken = "SELECT TRY_CAST('infinity'::TIMESTAMP_NS AS TIME) IS NULL"
        assert opened.execute(taken).fetchall() == [(True,)]
