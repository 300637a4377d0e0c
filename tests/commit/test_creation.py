"""A table is created or dropped for certain, or the caller learns that it is not known."""

from pathlib import Path
from typing import Any, cast

import pytest
from tests.around import Around, through, watched
from tests.fix_catalogs import Opener
from tests.table.samples import NAME, SCHEMA, create, minutes, readings

import lakebed
from lakebed.commit.policy import RetryPolicy
from lakebed.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    LakebedError,
    NotFoundError,
    UnavailableError,
)
from lakebed.format.pointer import Move, Pointer
from lakebed.format.snapshot import Operation
from lakebed.table.catalog import Catalog
from lakebed.table.rebuild import rebuild_catalog

POLICY = RetryPolicy(answer_count_max=3)


class Unanswered(Around):
    """A backend whose `create` and `drop` get no answer, whether or not they took effect."""

    def __init__(self, inner: Any, *, lands: bool, blind: int = 0) -> None:
        super().__init__(inner)
        self._lands = lands
        self.blind = blind  # how many questions find the catalog unavailable
        self.find_count = 0

    def create(self, move: Move) -> None:
        self._lose(move, self.inner.create)

    def drop(self, move: Move) -> bool:
        self._lose(move, self.inner.drop)
        raise AssertionError("the answer is always lost")

    def find_commit(self, commit_id: str) -> list[Pointer]:
        self.find_count += 1
        if self.find_count <= self.blind:
            raise UnavailableError("not now")
        return cast(list[Pointer], self.inner.find_commit(commit_id))

    def _lose(self, move: Move, act: Any) -> None:
        if self._lands:
            act(move)
        raise CommitUnknownError("no answer", commit_id=move.new.commit_id, table=move.new.name)


@pytest.mark.parametrize("blind", [0, 2])
def test_a_creation_whose_answer_was_lost_is_found_out(memory: Catalog, blind: int) -> None:
    backend = Unanswered(memory._services.backend, lands=True, blind=blind)
    table = create(through(memory, backend, policy=POLICY))
    assert table.version == 0
    assert memory.tables() == [NAME]
    assert backend.find_count == blind + 1


@pytest.mark.parametrize("blind", [0, 3])
def test_a_creation_that_cannot_be_found_stays_unknown_and_keeps_its_files(
    memory: Catalog, blind: int
) -> None:
    """It may land yet, and then its files must be there."""
    backend = Unanswered(memory._services.backend, lands=False, blind=blind)
    with pytest.raises(CommitUnknownError) as raised:
        create(through(memory, backend, policy=POLICY))
    assert raised.value.commit_id
    assert backend.find_count == 3
    assert memory.tables() == []
    warehouse = memory._services.warehouse
    assert warehouse is not None
    assert len(list(warehouse.list())) == 2


def test_a_drop_whose_answer_was_lost_is_found_out(memory: Catalog) -> None:
    create(memory)
    backend = Unanswered(memory._services.backend, lands=True)
    through(memory, backend, policy=POLICY).drop_table(NAME)
    assert memory.tables() == []


def test_a_drop_that_cannot_be_found_is_unknown_and_purges_nothing(memory: Catalog) -> None:
    table = create(memory)
    table.append(readings())
    watch = watched(table)
    backend = Unanswered(memory._services.backend, lands=False)
    with pytest.raises(CommitUnknownError):
        through(memory, backend, policy=POLICY).drop_table(NAME, purge=True)
    assert watch.deleted == []
    assert minutes(table) == [0, 1, 2, 3]


class Late(Around):
    """A backend on which another commit gets ahead of each drop."""

    def __init__(self, inner: Any, act: Any) -> None:
        super().__init__(inner)
        self._act = act

    def drop(self, move: Move) -> bool:
        self._act()
        return cast(bool, self.inner.drop(move))


def test_a_drop_that_another_commit_came_before_changes_nothing(opener: Opener) -> None:
    catalog = opener()
    table = create(catalog)
    late = through(catalog, Late(opener()._services.backend, lambda: table.append(readings())))
    with pytest.raises(CommitConflictError, match="changed by another commit"):
        late.drop_table(NAME, purge=True)
    assert catalog.tables() == [NAME]
    assert minutes(table) == [0, 1, 2, 3]
    # The tombstone that was never made is gone: no rebuild can take it for the head.
    assert len(list(table.files.store.list("metadata/snap-"))) == 2


class Unreached(Around):
    """A backend that is not there when a table is to be dropped."""

    def drop(self, move: Move) -> bool:
        raise UnavailableError("connection refused")


def test_a_drop_that_did_not_reach_the_catalog_leaves_no_tombstone(database: Catalog) -> None:
    table = create(database)
    with pytest.raises(UnavailableError):
        through(database, Unreached(database._services.backend)).drop_table(NAME)
    assert len(list(table.files.store.list("metadata/snap-"))) == 1
    assert database.tables() == [NAME]


def test_a_name_that_is_taken_is_refused_and_leaves_no_files(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    warehouse = catalog._services.warehouse
    assert warehouse is not None
    before = [info.path for info in warehouse.list()]
    with pytest.raises(AlreadyExistsError, match=NAME):
        create(catalog)
    assert [info.path for info in warehouse.list()] == before
    assert minutes(table) == [0, 1, 2, 3]


def test_the_first_version_holds_nothing_and_says_so(catalog: Catalog) -> None:
    table = create(catalog)
    snapshot = table.current_snapshot()
    assert snapshot.operation is Operation.CREATE
    assert (snapshot.version, snapshot.parent_id, snapshot.manifest_list) == (0, None, ())
    assert table.arrow_schema == SCHEMA
    assert table.scan().to_arrow().num_rows == 0


def test_a_dropped_table_is_gone_for_handles_that_were_open(catalog: Catalog) -> None:
    table = create(catalog)
    catalog.drop_table(NAME)
    for act in (table.history, lambda: table.append(readings()), lambda: catalog.table(NAME)):
        with pytest.raises(NotFoundError):
            act()


def test_a_handle_of_a_dropped_table_does_not_reach_its_successor(catalog: Catalog) -> None:
    old = create(catalog)
    old.append(readings())
    catalog.drop_table(NAME)
    new = create(catalog)
    with pytest.raises((NotFoundError, CommitConflictError), match="created anew"):
        old.append(readings())
    assert new.scan().count() == 0
    new.append(readings(3))
    assert minutes(new) == [4320, 4321, 4322, 4323]
    assert {s.table_id for s in new.history()} == {new.metadata.table_id}


def test_errors_of_creation_are_of_the_one_tree(catalog: Catalog) -> None:
    with pytest.raises(LakebedError):
        catalog.create_table("", SCHEMA)
    with pytest.raises(LakebedError):
        catalog.create_table("../up", SCHEMA)
    with pytest.raises(LakebedError):
        catalog.create_table("t", SCHEMA, partition_by=["day(nowhere)"])
    with pytest.raises(LakebedError):
        catalog.create_table("t", SCHEMA, properties={"commit.isolation-level": "loose"})
    assert catalog.tables() == []


def test_a_failed_creation_does_not_come_back_with_a_rebuild(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    with lakebed.connect(uri) as catalog:
        create(catalog).append(readings())
        with pytest.raises(AlreadyExistsError):
            create(catalog)
    (tmp_path / "catalog.db").unlink()
    report = rebuild_catalog(uri)
    assert report.problems == ()
    with lakebed.connect(uri) as catalog:
        assert minutes(catalog.table(NAME)) == [0, 1, 2, 3]
