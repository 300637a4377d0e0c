"""What docs/guide/spark.md says can be done as it stands there, block by block."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "spark.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_blocks_of_the_guide_run_in_their_order(spark: "SparkSession", tmp_path: Path) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for match in BLOCK.finditer(text):
        line = text[: match.start(1)].count("\n")
        # The JVM of the shared session has a working directory of its own.
        block = match[1].replace("warehouse/", f"{tmp_path}/warehouse/")
        code = compile("\n" * line + block, str(GUIDE), "exec")
        exec(code, names)
    assert names["spark"] is spark, "session() gives the session that runs"
    table = names["table"]
    assert table.scan("sensor_id = 'sensor-13'").count() == 0  # type: ignore[attr-defined]
    assert table.scan("ts = '2026-02-01'").count() == 1  # type: ignore[attr-defined]
    spark.catalog.dropTempView("readings")
