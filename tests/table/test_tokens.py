"""A token is committed once, whoever sends it again, and a number never goes back."""

import threading
from typing import Any

import pytest
from tests.around import Meeting, interrupted, through, together, watched
from tests.fix_catalogs import Opener
from tests.table.samples import NAME, create, minutes, put, readings

from lakebed.errors import CommitConflictError, RequestError, TokenError
from lakebed.format.datafile import DataFile
from lakebed.limits import TOKEN_APP_COUNT_MAX
from lakebed.table.catalog import Catalog


def test_a_repeat_returns_the_first_commit_and_writes_nothing(opener: Opener) -> None:
    table = create(opener())
    first = table.append(readings(), token=("loader", 7))
    table.append(readings(1), token=("loader", 8))
    table.append(readings(2))
    again = opener().table(NAME)
    watch = watched(again)
    for token in (("loader", 7), ("loader", 8)):
        repeat = again.append(readings(9), token=token)
        assert repeat.repeated
    assert watch.created == []
    repeat = again.append(readings(9), token=("loader", 7))
    assert (repeat.version, repeat.commit_id, repeat.added_rows) == (1, first.commit_id, 4)
    assert not first.repeated
    assert again.version == 3


def test_a_number_that_goes_back_is_refused_and_named(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings(), token=("loader", 7))
    with pytest.raises(TokenError, match="token 6 of 'loader' comes after 7") as raised:
        table.append(readings(1), token=("loader", 6))
    assert raised.value.fields == {"app": "loader", "version": 6, "last": 7}
    assert table.version == 1


def test_numbers_may_leave_gaps_which_stay_closed(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings(), token=("loader", 7))
    table.append(readings(1), token=("loader", 100))
    with pytest.raises(TokenError):
        table.append(readings(2), token=("loader", 50))
    assert table.append(readings(2), token=("loader", 7)).repeated
    assert table.version == 2


def test_apps_do_not_know_each_other(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings(), token=("a", 7))
    assert not table.append(readings(1), token=("b", 1)).repeated
    assert not table.append(readings(2), token=("A", 1)).repeated
    assert table.version == 3


@pytest.mark.slow
def test_tokens_of_more_apps_than_a_snapshot_holds_are_still_known(opener: Opener) -> None:
    """The oldest leave the snapshot, and the catalog is asked instead."""
    table = create(opener(), by=())
    first = table.append(readings(), token=("app-0", 5))
    for number in range(1, 100):
        file = DataFile(path=f"data/{number}.parquet", row_count=1, size_bytes=1)
        table.commit_append([file], token=(f"app-{number}", 1), verify=False)
    snapshot = table.current_snapshot()
    assert not snapshot.tokens_complete
    assert len(snapshot.tokens) == TOKEN_APP_COUNT_MAX
    assert "app-0" not in snapshot.tokens
    again = opener().table(NAME)
    repeat = again.append(readings(9), token=("app-0", 5))
    assert (repeat.repeated, repeat.commit_id) == (True, first.commit_id)
    with pytest.raises(TokenError):
        again.append(readings(9), token=("app-0", 4))
    assert again.version == 100
    assert not again.append(readings(9), token=("app-0", 6)).repeated
    assert not again.append(readings(9), token=("never-seen", 0)).repeated
    assert again.version == 102


def test_of_two_writers_with_one_token_one_writes_and_both_get_its_commit(opener: Opener) -> None:
    table = create(opener())
    barrier = threading.Barrier(2)

    def send(day: int) -> Any:
        session = opener()
        mine = through(session, Meeting(session._services.backend, barrier)).table(NAME)
        return mine.append(readings(day), token=("loader", 1))

    left, right = together(lambda: send(0), lambda: send(1))
    assert sorted([left.repeated, right.repeated]) == [False, True]
    assert (left.commit_id, left.version) == (right.commit_id, right.version)
    assert table.version == 1
    assert len(minutes(table)) == 4


def test_a_token_that_was_overtaken_while_it_was_written_is_refused(catalog: Catalog) -> None:
    table = create(catalog)
    slow = interrupted(catalog, lambda: table.append(readings(1), token=("loader", 9)))
    with pytest.raises(TokenError):
        slow.table(NAME).append(readings(), token=("loader", 8))
    assert minutes(table) == [1440, 1441, 1442, 1443]


def test_files_are_taken_once_too(catalog: Catalog) -> None:
    table = create(catalog)
    file = put(table, readings())
    assert not table.add_files([file.path], token=("loader", 1)).repeated
    assert table.add_files([file.path], token=("loader", 1)).repeated
    assert table.commit_append([file], token=("loader", 1)).repeated
    assert table.version == 1


def test_a_rollback_does_not_take_tokens_back(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings(), token=("loader", 1))
    table.rollback(0)
    assert table.append(readings(), token=("loader", 1)).repeated
    assert table.scan().count() == 0


def test_a_new_table_of_the_name_knows_none_of_the_old_tokens(catalog: Catalog) -> None:
    create(catalog).append(readings(), token=("loader", 5))
    catalog.drop_table(NAME)
    table = create(catalog)
    assert not table.append(readings(), token=("loader", 1)).repeated
    assert table.scan().count() == 4


@pytest.mark.parametrize(
    "token",
    [("loader",), ("loader", -1), ("loader", 1.5), ("loader", True), ("", 1), (" ", 1), "loader",
     ("x" * 256, 1), ("loader", 1 << 63), (1, "loader"), ["loader", 1, 2]],
    ids=str,
)  # fmt: skip
def test_what_is_no_token_is_refused_before_anything_is_written(
    memory: Catalog, token: Any
) -> None:
    table = create(memory)
    with pytest.raises(RequestError, match="is not a token"):
        table.append(readings(), token=token)
    assert table.version == 0
    assert list(table.files.store.list("data/")) == []


@pytest.mark.parametrize("token", [("x" * 255, 0), ("ä/ß", (1 << 63) - 1), ["loader", 1]], ids=str)
def test_odd_but_sound_tokens_are_taken(catalog: Catalog, token: Any) -> None:
    table = create(catalog)
    assert not table.append(readings(), token=token).repeated
    assert table.append(readings(), token=token).repeated


def test_a_transaction_is_repeated_as_a_whole(database: Catalog) -> None:
    a, b = create(database, "a"), create(database, "b")

    def load() -> list[Any]:
        with database.transaction() as tx:
            tx.append(a, readings(), token=("loader", 1))
            tx.append(b, readings(1), token=("loader", 1))
        return tx.commits

    first, again = load(), load()
    assert [c.repeated for c in first] == [False, False]
    assert [(c.repeated, c.commit_id) for c in again] == [(True, first[0].commit_id)] * 2
    assert (a.version, b.version) == (1, 1)


def test_a_token_that_only_one_table_knows_stops_the_transaction(database: Catalog) -> None:
    a, b = create(database, "a"), create(database, "b")
    a.append(readings(), token=("loader", 1))
    with (
        pytest.raises(TokenError, match="without the other tables"),
        database.transaction() as tx,
    ):
        tx.append(a, readings(), token=("loader", 1))
        tx.append(b, readings(), token=("loader", 1))
    assert (a.version, b.version) == (1, 0)


def test_a_conflict_uses_up_no_token(catalog: Catalog) -> None:
    table = create(catalog)
    slow = interrupted(catalog, lambda: table.append(readings(1)), attempts=1)
    with pytest.raises(CommitConflictError):
        slow.table(NAME).append(readings(), token=("loader", 1))
    assert not table.append(readings(), token=("loader", 1)).repeated
