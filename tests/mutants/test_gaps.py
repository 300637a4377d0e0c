"""A planted bug that no other test noticed has one here: footers of others, deletes that read."""

import io
import math
import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.around import interrupted
from tests.table.samples import NAME, SCHEMA, readings

from lakebed.errors import CommitConflictError
from lakebed.files.column_stats import footer_stats
from lakebed.format.datafile import ColumnStats
from lakebed.format.types import Field, Kind, Primitive
from lakebed.table.catalog import Catalog

DOUBLE = Primitive(Kind.DOUBLE)
MARK = 1234.5678  # its bytes are nowhere else in a footer


def foreign_footer(values: list[float]) -> Any:
    """A footer whose statistics say NaN for MARK, as some writers do and pyarrow never does."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": pa.array(values)}), sink, row_group_size=1)
    data = sink.getvalue()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:].replace(struct.pack("<d", MARK), struct.pack("<d", math.nan))
    return pq.ParquetFile(io.BytesIO(data[:start] + footer)).metadata


@pytest.mark.parametrize("values", [[MARK], [1.5, MARK], [MARK, 1.5]], ids=str)
def test_nan_in_the_footer_of_a_foreign_file_makes_the_bounds_unknown(values: list[float]) -> None:
    footer = foreign_footer(values)
    group = footer.row_group(values.index(MARK)).column(0).statistics
    assert group.has_min_max
    assert math.isnan(group.min_raw)
    found = footer_stats(footer, [(Field(1, "c", DOUBLE), DOUBLE)], {"c": 0})
    assert found == {1: ColumnStats(0)}


def test_a_delete_conflicts_with_rows_that_came_into_its_range(memory: Catalog) -> None:
    strict = {"commit.isolation-level": "serializable"}
    table = memory.create_table(NAME, SCHEMA, ["day(ts)"], properties=strict)
    table.append(readings(0))
    slow = interrupted(memory, lambda: table.append(readings(0, count=1, first=9))).table(NAME)
    with pytest.raises(CommitConflictError) as raised:
        slow.delete("ts < '2026-01-02'")
    assert raised.value.fields["verdict"] == "READ_WAS_ADDED_TO"
    assert table.version == 2
