"""A purged table in a store takes no more commits, not even from one who has not heard of it."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import LakebedError

ROWS = pa.table({"x": [1]})


def test_a_writer_that_has_not_heard_of_the_purge_is_told(tmp_path: Path) -> None:
    mine, theirs = lakebed.connect(tmp_path), lakebed.connect(tmp_path)
    mine.create_table("t", ROWS.schema)
    mine.table("t").append(ROWS)
    stale = theirs.table("t")
    stale.append(ROWS)
    mine.table("t").append(ROWS)
    mine.drop_table("t", purge=True)
    with pytest.raises(LakebedError):
        stale.append(ROWS)
    assert lakebed.connect(tmp_path).tables() == []


def test_the_next_table_of_a_purged_name_begins_after_the_tombstone(tmp_path: Path) -> None:
    catalog = lakebed.connect(tmp_path)
    for _ in range(3):
        catalog.create_table("t", ROWS.schema)
        catalog.table("t").append(ROWS)
        catalog.drop_table("t", purge=True)
    catalog.create_table("t", ROWS.schema)
    catalog.table("t").append(ROWS)
    again = lakebed.connect(tmp_path).table("t")
    assert again.scan().to_arrow().num_rows == 1
    assert again.current_snapshot().version == 10
