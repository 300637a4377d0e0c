"""What became of a commit whose answer was lost can be found out later, by anybody."""

import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from tests.around import Around, through
from tests.fix_catalogs import Opener
from tests.table.samples import NAME, create, minutes, readings

from lakebed.commit.policy import RetryPolicy
from lakebed.errors import CommitUnknownError, UnavailableError
from lakebed.format.pointer import Move, Outcome
from lakebed.table.catalog import Catalog
from lakebed.table.resolution import Fate

ONCE = RetryPolicy(attempt_count_max=1, answer_count_max=1)


class Cut(Around):
    """A connection that breaks during the swap and stays broken; the swap may be made."""

    def __init__(self, inner: Any, *, lands: bool) -> None:
        super().__init__(inner)
        self._lands = lands
        self.moves: list[Move] = []

    def swap(self, moves: Sequence[Move]) -> bool:
        self.moves = list(moves)
        if self._lands:
            self.inner.swap(moves)
        raise CommitUnknownError("connection lost", commit_id=moves[0].new.commit_id)

    def outcome(self, name: str, commit_id: str, *, since: int) -> Outcome:
        raise UnavailableError("connection refused")


def lose(catalog: Catalog, *, lands: bool, day: int = 0) -> tuple[CommitUnknownError, list[Move]]:
    cut = Cut(catalog._services.backend, lands=lands)
    with pytest.raises(CommitUnknownError) as raised:
        through(catalog, cut, policy=ONCE).table(NAME).append(readings(day))
    assert f"catalog.resolve({raised.value.commit_id!r})" in str(raised.value)
    return pickle.loads(pickle.dumps(raised.value)), cut.moves


def test_a_commit_that_was_made_is_found_from_another_session(opener: Opener) -> None:
    create(opener())
    error, _ = lose(opener(), lands=True)
    there = opener()
    for asked in (error, error.commit_id):
        found = there.resolve(asked)
        assert (found.fate, found.committed) == (Fate.COMMITTED, True)
        (commit,) = found.commits
        assert (commit.table, commit.version, commit.added_rows) == (NAME, 1, 4)
        assert commit.commit_id == error.commit_id == found.commit_id
    assert minutes(there.table(NAME)) == [0, 1, 2, 3]


def test_a_commit_that_others_followed_is_still_found(opener: Opener) -> None:
    table = create(opener())
    error, _ = lose(opener(), lands=True)
    for day in range(1, 4):
        table.append(readings(day))
    assert opener().resolve(error).committed


def test_a_commit_that_was_not_made_is_undecided_while_it_may_land(opener: Opener) -> None:
    table = create(opener())
    error, moves = lose(opener(), lands=False)
    there = opener()
    for asked in (error, error.commit_id):
        found = there.resolve(asked)
        assert (found.fate, found.committed, found.commits) == (Fate.UNDECIDED, False, ())
    assert there._services.backend.swap(moves), "and indeed it can land"
    assert there.resolve(error).committed
    assert minutes(table) == [0, 1, 2, 3]


def test_a_commit_that_the_table_went_on_without_has_failed(opener: Opener) -> None:
    table = create(opener())
    error, moves = lose(opener(), lands=False)
    table.append(readings(1))
    there = opener()
    assert there.resolve(error).fate is Fate.FAILED
    assert there.resolve(error.commit_id).fate is Fate.UNDECIDED, "the id alone does not tell"
    assert not there._services.backend.swap(moves), "and indeed it can never land"
    assert minutes(table) == [1440, 1441, 1442, 1443]


def test_a_commit_to_a_table_that_was_dropped_has_failed(opener: Opener) -> None:
    catalog = opener()
    create(catalog)
    error, _ = lose(opener(), lands=False)
    catalog.drop_table(NAME)
    assert opener().resolve(error).fate is Fate.FAILED
    create(catalog)
    assert opener().resolve(error).fate is not Fate.COMMITTED


def test_a_commit_to_a_table_that_was_dropped_afterwards_was_made(opener: Opener) -> None:
    catalog = opener()
    create(catalog)
    error, _ = lose(opener(), lands=True)
    catalog.drop_table(NAME)
    found = opener().resolve(error)
    assert found.committed
    assert [commit.version for commit in found.commits] == [1]


def test_an_id_that_nobody_knows_is_undecided(catalog: Catalog) -> None:
    create(catalog)
    assert catalog.resolve("0" * 32).fate is Fate.UNDECIDED


def test_a_commit_over_two_tables_is_found_in_both(database_opener: Opener) -> None:
    catalog = database_opener()
    create(catalog, "a")
    create(catalog, "b")
    cut = through(catalog, Cut(catalog._services.backend, lands=True), policy=ONCE)
    with pytest.raises(CommitUnknownError) as raised, cut.transaction() as tx:
        tx.append("a", readings())
        tx.append("b", readings(1))
    found = database_opener().resolve(raised.value)
    assert [(c.table, c.version) for c in found.commits] == [("a", 1), ("b", 1)]


def test_a_token_makes_it_safe_to_send_an_unknown_commit_again(opener: Opener) -> None:
    for lands in (True, False):
        name = f"t.{lands}".lower()
        catalog = opener()
        create(catalog, name)
        cut = through(catalog, Cut(catalog._services.backend, lands=lands), policy=ONCE)
        with pytest.raises(CommitUnknownError):
            cut.table(name).append(readings(), token=("loader", 1))
        again = opener().table(name).append(readings(), token=("loader", 1))
        assert again.repeated is lands
        assert minutes(opener().table(name)) == [0, 1, 2, 3]
