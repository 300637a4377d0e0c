"""The contract of `CatalogBackend` as tests: subclass `CatalogContract` and give it a fixture.

class TestMyCatalog(CatalogContract):
    @pytest.fixture
    def opener(self) -> Iterator[Opener]: ...  # opens one and the same catalog, empty at first
"""

from typing import ClassVar

import pytest

from lakebed.catalog.backend import CatalogBackend
from lakebed.errors import AlreadyExistsError, NotFoundError, RequestError
from lakebed.format.pointer import Token
from lakebed.testing.contract_catalog_races import CatalogRaces, Opener
from lakebed.testing.moves import (
    EVERY_COLUMN,
    START_MS,
    STEP_MS,
    add_actions,
    create,
    drop,
    first_move,
    grow,
    imposter,
    last_move,
    next_move,
)

NAMES = ("plant.readings", "größe.漢字", "a b", "x", "X.y-z_0", "ünï.☃", "quote'd", "per%cent")


class CatalogContract(CatalogRaces):
    """What every catalog promises."""

    log_row_count: ClassVar[int] = 2_345  # more than two pages

    # ---- create, load, close

    @pytest.mark.parametrize("name", NAMES, ids=ascii)
    def test_a_table_is_loaded_as_it_was_entered(self, catalog: CatalogBackend, name: str) -> None:
        """All of the pointer, under exactly that name."""
        move = create(catalog, name)
        assert catalog.load(name) == move.new
        assert catalog.tables() == [name]

    def test_tables_are_in_order(self, catalog: CatalogBackend) -> None:
        """Of their names."""
        assert catalog.tables() == []
        for name in NAMES:
            create(catalog, name)
        assert catalog.tables() == sorted(NAMES)

    def test_a_name_is_taken_only_once(self, catalog: CatalogBackend) -> None:
        """The second table of a name is refused and changes nothing."""
        move = create(catalog, "t")
        with pytest.raises(AlreadyExistsError):
            catalog.create(first_move("t"))
        assert catalog.load("t") == move.new

    def test_a_table_that_is_not_there_is_not_found(self, catalog: CatalogBackend) -> None:
        """Neither its head nor anything else of it."""
        with pytest.raises(NotFoundError):
            catalog.load("nothing")
        assert catalog.outcome("nothing", "0" * 32, since=-1).head is None
        assert catalog.find_commit("0" * 32) == []

    def test_what_was_committed_outlives_the_connection(self, opener: Opener) -> None:
        """Closed by one, opened by another."""
        catalog = opener()
        moves = grow(catalog, "t", 3)
        catalog.close()
        again = opener()
        assert again.load("t") == moves[-1].new
        assert [past.version for past in again.history(moves[-1].new)] == [2, 1, 0]

    def test_the_warehouse_is_remembered_and_the_given_one_wins(self, opener: Opener) -> None:
        """What was said first stays, what is said now counts now."""
        catalog = opener()
        if catalog.decides_by_snapshot:
            assert catalog.warehouse("s3://other") == catalog.warehouse(None) == catalog.uri
            return
        assert catalog.warehouse("s3://first") == "s3://first"
        assert catalog.warehouse("s3://second") == "s3://second"
        assert opener().warehouse(None) == "s3://first"

    # ---- swap

    def test_a_swap_moves_the_head(self, catalog: CatalogBackend) -> None:
        """And nothing else: other tables stay."""
        other = create(catalog, "other")
        step = next_move(create(catalog, "t"))
        assert catalog.swap([step])
        assert catalog.load("t") == step.new
        assert catalog.load("other") == other.new

    def test_second_swap_with_the_same_expectation_loses(self, catalog: CatalogBackend) -> None:
        """And leaves no trace."""
        base = create(catalog, "t")
        winner, loser = next_move(base), next_move(base, token=Token("app", 1))
        assert catalog.swap([winner])
        assert not catalog.swap([loser])
        assert catalog.load("t") == winner.new
        assert catalog.find_commit(loser.new.commit_id) == []
        assert catalog.last_token(winner.new, "app") is None
        assert [p.commit_id for p in catalog.history(winner.new)] == [
            winner.new.commit_id,
            base.new.commit_id,
        ]

    def test_a_swap_of_another_table_of_that_name_loses(self, catalog: CatalogBackend) -> None:
        """The table's id is part of the comparison."""
        base = create(catalog, "t")
        assert not catalog.swap([imposter(next_move(base))])
        assert catalog.load("t") == base.new

    def test_a_swap_of_a_missing_table_loses(self, catalog: CatalogBackend) -> None:
        """Nothing is made by it."""
        assert not catalog.swap([next_move(first_move("t"))])
        assert catalog.tables() == []

    def test_a_swap_that_would_leave_a_hole_loses(self, catalog: CatalogBackend) -> None:
        """An expected version that is not there yet is not the head."""
        base = create(catalog, "t")
        assert not catalog.swap([next_move(next_move(base))])
        assert catalog.load("t") == base.new

    def test_a_commit_id_is_used_only_once(self, catalog: CatalogBackend) -> None:
        """By the version before, that is: one that was sent twice and rebased would be doubled."""
        step = grow(catalog, "t", 2)[-1]
        assert not catalog.swap([next_move(step, commit_id=step.new.commit_id)])
        assert catalog.load("t") == step.new

    def test_a_swap_sent_twice_is_made_once(self, catalog: CatalogBackend) -> None:
        """Whatever the second answer is."""
        moves = grow(catalog, "t", 3)
        catalog.swap([moves[-1]])
        catalog.swap([moves[-2]])
        assert catalog.load("t") == moves[-1].new
        assert len(list(catalog.history(moves[-1].new))) == 3

    def test_several_tables_move_together_or_not_at_all(self, catalog: CatalogBackend) -> None:
        """One stale expectation spoils the swap for all; no order of names helps."""
        bases = [create(catalog, name) for name in ("b", "a", "c")]
        if not catalog.multi_table:
            with pytest.raises(RequestError):
                catalog.swap([next_move(base) for base in bases])
            return
        commit_id = next_move(bases[0]).new.commit_id
        together = [next_move(base, commit_id=commit_id) for base in bases]
        assert catalog.swap([next_move(bases[2])])
        assert not catalog.swap(together)
        assert [catalog.load(name).version for name in "abc"] == [0, 0, 1]
        assert catalog.find_commit(commit_id) == []
        assert catalog.swap(together[:2])
        made = catalog.find_commit(commit_id)
        assert made == sorted((m.new for m in together[:2]), key=lambda p: p.name)

    # ---- tokens

    def test_a_token_is_committed_only_once(self, catalog: CatalogBackend) -> None:
        """The repeat loses, and the first one can be found."""
        first = next_move(create(catalog, "t"), token=Token("app", 7))
        assert catalog.swap([first])
        assert not catalog.swap([next_move(first, token=Token("app", 7))])
        assert catalog.load("t") == first.new
        assert catalog.find_token(first.expected, Token("app", 7)) == first.new

    def test_tokens_are_found_by_app_and_number(self, catalog: CatalogBackend) -> None:
        """In whichever version they came, up to now."""
        base = step = create(catalog, "t")
        made = {}
        for token in (Token("a", 1), Token("b", 5), Token("a", 3), None, Token("a", 9)):
            step = next_move(step, token=token)
            assert catalog.swap([step])
            made[token] = step.new
        for token in (Token("a", 1), Token("b", 5), Token("a", 3), Token("a", 9)):
            assert catalog.find_token(base.new, token) == made[token]
        for token in (Token("a", 2), Token("a", 10), Token("b", 1), Token("c", 1), Token("", 0)):
            assert catalog.find_token(step.new, token) is None
        assert catalog.last_token(base.new, "a") == Token("a", 9)
        assert catalog.last_token(base.new, "b") == Token("b", 5)
        assert catalog.last_token(base.new, "c") is None

    def test_tokens_of_one_table_say_nothing_of_another(self, catalog: CatalogBackend) -> None:
        """Nor of the next table of the same name."""
        step = next_move(create(catalog, "t"), token=Token("app", 1))
        assert catalog.swap([step])
        tombstone = drop(catalog, step)
        others = [create(catalog, "t"), create(catalog, "u")]
        for other in others:
            assert catalog.find_token(other.new, Token("app", 1)) is None
            assert catalog.last_token(other.new, "app") is None
            assert catalog.swap([next_move(other, token=Token("app", 1))])
        assert catalog.find_token(tombstone.new, Token("app", 1)) == step.new
        assert catalog.last_token(step.expected, "app") == Token("app", 1)

    # ---- outcome and history

    def test_an_outcome_tells_head_and_commit(self, catalog: CatalogBackend) -> None:
        """Also when others have committed since; a commit of another table is not in it."""
        moves = grow(catalog, "t", 4)
        other = create(catalog, "u")
        head = moves[-1].new
        for move in moves[1:]:
            outcome = catalog.outcome("t", move.new.commit_id, since=move.expected.version)
            assert (outcome.head, outcome.committed) == (head, move.new)
        for commit_id in (other.new.commit_id, "f" * 32):
            outcome = catalog.outcome("t", commit_id, since=0)
            assert (outcome.head, outcome.committed) == (head, None)

    def test_an_outcome_says_when_the_table_is_gone(self, catalog: CatalogBackend) -> None:
        """And still knows what the commit made before that."""
        moves = grow(catalog, "t", 2)
        made = moves[-1].new
        tombstone = drop(catalog, moves[-1])
        for new in (made, tombstone.new):
            outcome = catalog.outcome("t", new.commit_id, since=0)
            assert (outcome.head, outcome.committed) == (None, new)
        again = create(catalog, "t")
        outcome = catalog.outcome("t", made.commit_id, since=0)
        assert (outcome.head, outcome.committed) == (again.new, made)

    def test_a_commit_is_found_by_its_id(self, catalog: CatalogBackend) -> None:
        """Whatever its table, first, middle or last."""
        moves = [*grow(catalog, "t", 3), *grow(catalog, "u", 3)]
        for move in moves:
            assert catalog.find_commit(move.new.commit_id) == [move.new]

    def test_every_version_can_be_found_again(self, catalog: CatalogBackend) -> None:
        """By number; from any pointer of the table, also an older one."""
        moves = grow(catalog, "t", 5)
        for move in moves:
            assert catalog.at_version(moves[0].new, move.new.version) == move.new
        for version in (-1, 5, 1 << 40):
            with pytest.raises(NotFoundError):
                catalog.at_version(moves[-1].new, version)
        assert list(catalog.history(moves[3].new)) == [m.new for m in reversed(moves[:4])]

    def test_a_moment_finds_the_version_of_that_time(self, catalog: CatalogBackend) -> None:
        """The last one not later; before the first there is none."""
        moves = grow(catalog, "t", 6)
        for move in moves:
            for late_ms in (0, STEP_MS - 1):
                found = catalog.at_time(moves[0].new, move.new.timestamp_ms + late_ms)
                assert found == move.new
        assert catalog.at_time(moves[0].new, 1 << 50) == moves[-1].new
        with pytest.raises(NotFoundError):
            catalog.at_time(moves[-1].new, START_MS - 1)

    # ---- log

    def test_log_rows_come_back_as_they_were(self, catalog: CatalogBackend) -> None:
        """Every column of every type, in order."""
        step = next_move(create(catalog, "t"), actions=EVERY_COLUMN)
        assert catalog.swap([step])
        expected = [(1, ordinal, action) for ordinal, action in enumerate(EVERY_COLUMN)]
        assert list(catalog.log(step.new)) == (expected if catalog.keeps_log else [])

    def test_the_log_is_read_by_versions(self, catalog: CatalogBackend) -> None:
        """After `since`, up to and with `until`, in any number of pages."""
        step = create(catalog, "t", actions=add_actions(2))
        for count in (1, self.log_row_count, 0, 1):
            step = next_move(step, actions=add_actions(count))
            assert catalog.swap([step])
        if not catalog.keeps_log:
            assert list(catalog.log(step.new)) == []
            return
        places = [(version, ordinal) for version, ordinal, _ in catalog.log(step.new)]
        counts = (2, 1, self.log_row_count, 0, 1)
        every = [(v, o) for v, count in enumerate(counts) for o in range(count)]
        assert places == every
        assert [v for v, _, _ in catalog.log(step.new, 2)] == [4]
        assert [v for v, _, _ in catalog.log(step.new, -1, 1)] == [0, 0, 1]
        assert list(catalog.log(step.new, 4)) == []
        assert [v for v, _, _ in catalog.log(step.expected, 2)] == []

    # ---- drop, restore

    def test_a_dropped_table_is_gone_and_its_history_is_not(self, catalog: CatalogBackend) -> None:
        """The tombstone is the last version that the old pointer leads to."""
        moves = grow(catalog, "t", 3)
        tombstone = drop(catalog, moves[-1])
        assert catalog.tables() == []
        with pytest.raises(NotFoundError):
            catalog.load("t")
        every = [tombstone.new, *(m.new for m in reversed(moves))]
        assert list(catalog.history(tombstone.new)) == every
        assert catalog.at_version(moves[0].new, 3) == tombstone.new
        assert catalog.find_commit(tombstone.new.commit_id) == [tombstone.new]

    def test_only_the_head_can_be_dropped(self, catalog: CatalogBackend) -> None:
        """And only once."""
        moves = grow(catalog, "t", 2)
        assert not catalog.drop(last_move(moves[0]))
        assert not catalog.drop(imposter(last_move(moves[1])))
        assert catalog.load("t") == moves[1].new
        tombstone = drop(catalog, moves[1])
        assert not catalog.drop(last_move(tombstone))
        assert not catalog.drop(last_move(first_move("nothing")))

    def test_a_writer_of_the_old_table_never_writes_the_new(self, catalog: CatalogBackend) -> None:
        """Drop and create leave no version at which an old expectation holds."""
        old = grow(catalog, "t", 2)
        stale = [next_move(move) for move in old]
        tombstone = drop(catalog, old[-1])
        stale.append(next_move(tombstone))
        new = [create(catalog, "t")]
        for _ in range(4):
            assert not any(catalog.swap([move]) for move in stale)
            assert not any(catalog.drop(last_move(move)) for move in old)
            new.append(next_move(new[-1]))
            assert catalog.swap([new[-1]])
        assert new[-1].new.table_id != old[-1].new.table_id
        assert list(catalog.history(new[-1].new)) == [m.new for m in reversed(new)]
        for move in new:
            assert catalog.at_version(new[0].new, move.new.version) == move.new
            assert catalog.at_time(new[0].new, move.new.timestamp_ms) == move.new
        with pytest.raises(NotFoundError):
            catalog.at_time(new[0].new, new[0].new.timestamp_ms - 1)

    @pytest.mark.parametrize("begin", [0, 5])
    def test_a_history_is_restored_whole(self, catalog: CatalogBackend, begin: int) -> None:
        """As if every step had been made here."""
        moves = [first_move("t", begin, actions=EVERY_COLUMN)]
        for number in range(3):
            moves.append(next_move(moves[-1], token=Token("app", number), actions=add_actions(1)))
        if catalog.decides_by_snapshot:
            with pytest.raises(RequestError):
                catalog.restore(moves)
            return
        catalog.restore(moves)
        head = moves[-1].new
        assert catalog.load("t") == head
        assert list(catalog.history(head)) == [m.new for m in reversed(moves)]
        assert len(list(catalog.log(head))) == len(EVERY_COLUMN) + 3
        assert catalog.last_token(head, "app") == Token("app", 2)
        assert catalog.at_version(head, begin + 1) == moves[1].new
        assert catalog.swap([next_move(moves[-1])])

    def test_nothing_is_restored_over_what_is_there(self, catalog: CatalogBackend) -> None:
        """Neither over a name nor over a table's id; nothing of it stays."""
        base = create(catalog, "t")
        other = [first_move("t")]
        other.append(next_move(other[0]))
        refusal = RequestError if catalog.decides_by_snapshot else AlreadyExistsError
        for moves in (other, [base, next_move(base)]):
            with pytest.raises(refusal):
                catalog.restore(moves)
        assert catalog.load("t") == base.new
        assert catalog.find_commit(other[0].new.commit_id) == []
        assert list(catalog.history(base.new)) == [base.new]

    def test_a_dropped_table_is_restored_as_dropped(self, catalog: CatalogBackend) -> None:
        """Its history is there and its name is free."""
        moves = [first_move("t")]
        moves.append(last_move(moves[0]))
        living = create(catalog, "t")
        if catalog.decides_by_snapshot:
            with pytest.raises(RequestError):
                catalog.restore(moves)
            return
        catalog.restore(moves)
        assert catalog.load("t") == living.new
        assert catalog.find_commit(moves[1].new.commit_id) == [moves[1].new]
