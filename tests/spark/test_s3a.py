"""Where hadoop-aws is among Spark's jars, the JVM reads and writes a table on S3 by itself.

The jars are fetched by Spark, 17 MB the first time, so this is asked for by name:
`LAKEBED_TEST_S3A=1 pytest -m s3a`. Without that these tests are deselected, not skipped.
"""

import pytest
from tests.spark.driving import Drive, drive

from lakebed.ids import SystemIds
from lakebed.testing.servers import S3Server
from lakebed.testing.spark_cluster import JAVA_OPTIONS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.s3,
    pytest.mark.s3a,
    pytest.mark.slow,
    pytest.mark.xdist_group("spark-cluster"),
    pytest.mark.timeout(600),
]

SDK = "2.29.52"
PACKAGES = (
    "org.apache.hadoop:hadoop-aws:3.4.2",  # as pyspark's own Hadoop
    f"software.amazon.awssdk:s3:{SDK}",
    f"software.amazon.awssdk:s3-transfer-manager:{SDK}",
)
BUNDLE = "software.amazon.awssdk:bundle"  # the whole SDK: 640 MB, of which 17 are needed


@pytest.fixture(scope="module")
def driven(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Drive:
    place = tmp_path_factory.mktemp("s3a")
    argument = {
        "catalog": f"{s3_server.uri}/{SystemIds().new()}",
        "storage options": s3_server.storage_options,
        "settings": {
            "spark.jars.packages": ",".join(PACKAGES),
            "spark.jars.excludes": BUNDLE,
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            "spark.local.dir": str(place / "local"),
        },
    }
    return drive("drive_s3a", argument, place / "driver")


def test_the_jvm_goes_to_s3_by_itself(driven: Drive) -> None:
    assert driven["place"]["prefix"].startswith("s3a://")


def test_sparks_own_writer_writes_the_files(driven: Drive) -> None:
    assert driven["write"]["rows"] == 3_000
    assert driven["write"]["values"] == list(range(3_000))
    assert driven["write"]["makers"] == ["parquet-mr"]


def test_sparks_own_reader_reads_them(driven: Drive) -> None:
    assert driven["read"]["values"] == list(range(1_000, 2_500))
    assert "FileScan parquet" in driven["read"]["shown"]


def test_its_plans_hide_the_keys(driven: Drive, s3_server: S3Server) -> None:
    assert s3_server.secret_key not in driven["read"]["shown"]
    assert s3_server.access_key not in driven["read"]["shown"]
