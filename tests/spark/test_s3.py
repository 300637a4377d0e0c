"""Tables on S3 are read and written by Python workers, and nobody is shown their keys."""

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.ids import SystemIds
from lakebed.spark.reading.read import read
from lakebed.spark.writing.write import write
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table
from lakebed.testing.servers import S3Server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.s3]

COLUMNS = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])
ROWS = 3_000
STEP_US = 86_400_000  # a thousand rows a day


@pytest.fixture(params=["store", "sqlite"])
def catalog(
    request: pytest.FixtureRequest, s3_server: S3Server, tmp_path: Path
) -> Iterator[Catalog]:
    """No database at all, or one beside the driver: workers need neither."""
    place, keys = f"{s3_server.uri}/{SystemIds().new()}", s3_server.storage_options
    if request.param == "store":
        opened = lakebed.connect(place, storage_options=keys)
    else:
        database = f"sqlite:///{tmp_path}/catalog.db"
        opened = lakebed.connect(database, warehouse=place, storage_options=keys)
    with opened:
        yield opened


@pytest.fixture
def table(catalog: Catalog) -> Table:
    made = catalog.create_table("plant.readings", COLUMNS, ["day(ts)"])
    times = pa.array(range(0, ROWS * STEP_US, STEP_US), COLUMNS.field("ts").type)
    made.append(pa.table([times, pa.array(range(ROWS))], schema=COLUMNS))
    return made


def values(table: Table) -> list[int]:
    return sorted(table.scan(columns=["v"]).to_arrow().column("v").to_pylist())


def more(spark: "SparkSession") -> "DataFrame":
    times = f"timestamp_micros(id * {STEP_US}) as ts"
    return spark.range(ROWS, 2 * ROWS, 1, 2).selectExpr(times, "id as v")


def shown(frame: "DataFrame") -> str:
    """All that Spark tells of a frame to people and to its logs."""
    text = io.StringIO()
    with redirect_stdout(text):
        for mode in ("extended", "formatted", "cost", "codegen"):
            frame.explain(mode=mode)
    execution: Any = frame._jdf.queryExecution()  # type: ignore[attr-defined, unused-ignore]
    parts = [text.getvalue(), execution.toString(), execution.executedPlan().treeString()]
    return "\n".join([*parts, execution.analyzed().toJSON(), execution.optimizedPlan().toJSON()])


@contextmanager
def jvm_log(spark: "SparkSession", file: Path) -> Iterator[None]:
    """All that the JVM logs, into a file: its own streams were given to it when it started."""
    jvm: Any = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    layout = log4j.core.layout.PatternLayout.newBuilder().withPattern("%p %c: %m%n%xEx").build()
    builder = log4j.core.appender.FileAppender.newBuilder().withFileName(str(file))
    appender = builder.setName("test").setLayout(layout).build()
    appender.start()
    root = context.getConfiguration().getRootLogger()
    level = root.getLevel()
    root.addAppender(appender, None, None)
    spark.sparkContext.setLogLevel("INFO")
    try:
        yield
    finally:
        spark.sparkContext.setLogLevel(level.name())
        root.removeAppender("test")
        context.updateLoggers()
        appender.stop()


def test_a_table_on_s3_is_read_by_workers(spark: "SparkSession", table: Table) -> None:
    frame = read(spark, table, where="ts >= '1970-01-02' AND v < 2500")
    assert "MapInArrow" in shown(frame)
    assert sorted(row.v for row in frame.collect()) == list(range(1_000, 2_500))


def test_a_table_on_s3_is_written_by_workers(spark: "SparkSession", table: Table) -> None:
    before = table.version
    commit = write(more(spark), table, via="executors")
    assert commit.added_rows == ROWS
    assert table.version == before + 1
    assert values(table) == list(range(2 * ROWS))


def test_the_format_reads_and_writes_s3(
    spark: "SparkSession", table: Table, s3_server: S3Server
) -> None:
    place = table.connection
    options = {f"storage.{key}": value for key, value in s3_server.storage_options.items()}
    options |= {"catalog": place.uri}
    if place.warehouse is not None:
        options["warehouse"] = place.warehouse
    more(spark).write.format("lakebed").options(**options).mode("append").save(table.name)
    assert values(table) == list(range(2 * ROWS))
    frame = spark.read.format("lakebed").options(**options).load(table.name)
    assert frame.count() == 2 * ROWS
    assert_hides_the_keys(shown(frame), s3_server)


def test_no_key_is_shown_by_plans_errors_or_logs(
    spark: "SparkSession", table: Table, s3_server: S3Server, tmp_path: Path
) -> None:
    texts = [repr(table), repr(table.connection), repr(table.place)]
    with jvm_log(spark, tmp_path / "log"):
        frame = read(spark, table, where="v >= 10")
        assert frame.count() == ROWS - 10
        write(more(spark), table, via="executors")
        texts += [shown(frame)]
        broken = read(spark, table)
        table.place.open().delete(table.scan().plan.files[0].path)
        with pytest.raises(Exception, match="ObjectMissingError") as missing:
            broken.collect()
    texts += [str(missing.value), repr(missing.value), (tmp_path / "log").read_text()]
    assert "Lost task" in texts[-1], "the log is the one of the JVM"
    assert_hides_the_keys("\n".join(texts), s3_server)


def test_a_wrong_key_is_one_clear_error(
    spark: "SparkSession", table: Table, s3_server: S3Server
) -> None:
    wrong = dict(s3_server.storage_options, AWS_SECRET_ACCESS_KEY="not-the-key-of-anybody")
    options = {f"storage.{key}": value for key, value in wrong.items()}
    reader = spark.read.format("lakebed").options(**options)
    reader = reader.option("catalog", f"{s3_server.uri}/elsewhere")
    with pytest.raises(Exception, match=r"lakebed\.errors\.") as refused:
        reader.load(table.name)
    assert "not-the-key-of-anybody" not in str(refused.value)
    assert_hides_the_keys(str(refused.value), s3_server)


def test_the_jvms_own_reader_is_refused_where_it_cannot_go(
    spark: "SparkSession", table: Table
) -> None:
    with pytest.raises(lakebed.RequestError, match="Spark's own reader cannot reach s3://"):
        read(spark, table, via="native")


def assert_hides_the_keys(text: str, server: S3Server) -> None:
    assert text
    assert server.secret_key not in text
    assert server.access_key not in text
