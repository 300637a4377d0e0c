"""What a pointer leads to is believed only if it is what the pointer says."""

from dataclasses import replace

import msgspec
import pytest
from tests.table.samples import create, readings

from lakebed.commit.head import read_head
from lakebed.commit.rebase import commits_since
from lakebed.errors import BadMetadataError, ObjectMissingError
from lakebed.format.metadata import encode_metadata
from lakebed.format.pointer import Pointer
from lakebed.format.snapshot import encode_snapshot, make_snapshot_id
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table


@pytest.fixture
def table(memory: Catalog) -> Table:
    made = create(memory)
    made.append(readings(0))
    made.append(readings(1))
    return made


def test_a_head_is_the_version_that_the_pointer_names(table: Table) -> None:
    pointer = table.head().pointer
    head = read_head(table.files, pointer)
    assert (head.snapshot.version, head.metadata.table_id) == (2, pointer.table_id)
    assert head.definition.schema_id == head.snapshot.schema_id


WRONG = {
    "another table": {"table_id": "f" * 32},
    "another version": {"version": 1},
    "another commit": {"commit_id": "f" * 32},
    "another snapshot": {"snapshot_id": make_snapshot_id(2, 5)},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_pointer_to_something_else_is_not_followed(table: Table, what: str) -> None:
    pointer: Pointer = replace(table.head().pointer, **WRONG[what])  # type: ignore[arg-type]
    with pytest.raises(BadMetadataError, match="do not belong together"):
        read_head(table.files, pointer)


def test_a_pointer_to_a_file_that_is_gone_says_which(table: Table) -> None:
    pointer = replace(table.head().pointer, snapshot_path="metadata/snap-gone.json")
    with pytest.raises(ObjectMissingError, match="snap-gone"):
        read_head(table.files, pointer)


def test_the_definition_of_another_table_is_refused(table: Table, memory: Catalog) -> None:
    head = table.head()
    other = create(memory, "plant.other").metadata
    table.files.store.create("metadata/table-other.json", encode_metadata(other))
    snapshot = msgspec.structs.replace(head.snapshot, metadata_path="metadata/table-other.json")
    table.files.store.create("metadata/snap-odd.json", encode_snapshot(snapshot))
    with pytest.raises(BadMetadataError, match="belongs to another table"):
        read_head(table.files, replace(head.pointer, snapshot_path="metadata/snap-odd.json"))


def test_a_parent_that_is_not_the_parent_stops_the_walk_back(table: Table) -> None:
    newest, _, first = table.history()
    odd = msgspec.structs.replace(newest, parent_path=table.snapshot(1).parent_path)
    assert first.version == 0
    with pytest.raises(BadMetadataError, match="is not the parent of version 2"):
        list(commits_since(table.files, odd, -1))


def test_commits_since_a_version_are_those_after_it(table: Table) -> None:
    newest = table.current_snapshot()
    assert [s.version for s in commits_since(table.files, newest, 0)] == [2, 1]
    assert [s.version for s in commits_since(table.files, newest, 2)] == []
    assert [s.version for s in commits_since(table.files, newest, -1)] == [2, 1, 0]
