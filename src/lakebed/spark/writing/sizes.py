"""How large a frame is, as far as that can be told without running it.

Spark estimates the bytes of each plan. After joins that is far too much, which does no harm
here; where rows are multiplied by code that Spark cannot look into it is too little, so such
plans count as unknown. Files are compressed, so their rows are larger than they are.
"""

import re
from typing import TYPE_CHECKING, Any

from lakebed.spark.places import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Measured on 2 shared cores, rows of 4 columns that Spark takes for 24 bytes each:
#   rows             1,000    100,000   500,000    2,000,000
#   over the driver   64 ms    0.26 s    0.85 s     4.0 s
#   by executors     172 ms    0.45 s    1.16 s     4.7 s
# The driver wins for longer than that, but its memory is everybody's, and executors are mostly
# more than two.
DRIVER_SIZE_BYTES_MAX = 8 << 20

_FILE_RATIO = 8  # bytes of rows per byte of a file, guessed high
_MULTIPLIERS = re.compile(
    r"^[\s:+|-]*(?:Generate|MapIn|MapPartitions|FlatMap|MapGroups|CoGroup|Script|SerializeFrom"
    r"|AppendColumns|MapElements|PythonMapIn|FlatMapGroupsIn|FlatMapCoGroupsIn|AttachDistributed"
    r"|Expand|LogicalRDD|ExternalRDD|PythonDataSource|RelationV2|DataSourceV2)",
    re.MULTILINE,
)
_FILES = re.compile(r"^[\s:+|-]*(?:Relation |HiveTableRelation|InMemoryRelation)", re.MULTILINE)


def estimated_bytes(frame: "DataFrame") -> int | None:
    """At most about so many bytes; None if nobody knows, as always with Spark Connect."""
    if is_connect(frame.sparkSession):
        return None
    jvm_frame: Any = frame._jdf
    plan = jvm_frame.queryExecution().optimizedPlan()
    text = str(plan.treeString())
    if _MULTIPLIERS.search(text):
        return None
    size = int(plan.stats().sizeInBytes())
    return size * _FILE_RATIO if _FILES.search(text) else size


def is_small(frame: "DataFrame") -> bool:
    """Whether the driver had better write the frame by itself."""
    size = estimated_bytes(frame)
    return size is not None and size <= DRIVER_SIZE_BYTES_MAX


__all__ = ["DRIVER_SIZE_BYTES_MAX", "estimated_bytes", "is_small"]
