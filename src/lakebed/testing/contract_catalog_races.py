"""The part of the catalogs' contract that needs several threads or processes."""

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ClassVar, TypeVar

import pytest

from lakebed.catalog.backend import CatalogBackend
from lakebed.errors import AlreadyExistsError
from lakebed.format.pointer import Pointer
from lakebed.testing.moves import create, first_move, grow, next_move

T = TypeVar("T")
Opener = Callable[[], CatalogBackend]

WAIT_S = 30.0


class CatalogRaces:
    """What every catalog promises to those who come at the same time."""

    race_thread_count: ClassVar[int] = 6
    race_round_count: ClassVar[int] = 15
    survives_fork: ClassVar[bool] = True  # False: the child has a copy of its own

    @pytest.fixture
    def catalog(self, opener: Opener) -> CatalogBackend:
        """The catalog, opened once."""
        return opener()

    def test_of_racing_swaps_exactly_one_wins(self, catalog: CatalogBackend) -> None:
        """In each round, and the winner's version is the head."""
        step = create(catalog, "t")
        for _ in range(self.race_round_count):
            rivals = [next_move(step) for _ in range(self.race_thread_count)]
            won = at_once([partial(catalog.swap, [move]) for move in rivals])
            assert sorted(won) == [False] * (len(won) - 1) + [True]
            step = rivals[won.index(True)]
            assert catalog.load("t") == step.new
        assert len(list(catalog.history(step.new))) == self.race_round_count + 1

    def test_of_racing_handles_exactly_one_wins(self, opener: Opener) -> None:
        """Each with a catalog of its own, as in several processes."""
        catalogs = [opener() for _ in range(self.race_thread_count)]
        step = create(catalogs[0], "t")
        for _ in range(self.race_round_count):
            rivals = [(each, next_move(step)) for each in catalogs]
            won = at_once([partial(each.swap, [move]) for each, move in rivals])
            assert sorted(won) == [False] * (len(won) - 1) + [True]
            step = rivals[won.index(True)][1]
            assert {each.load("t") for each in catalogs} == {step.new}

    def test_of_racing_creators_exactly_one_wins(self, catalog: CatalogBackend) -> None:
        """The others are told that the name is taken."""

        def compete(name: str) -> Pointer | None:
            move = first_move(name)
            try:
                catalog.create(move)
            except AlreadyExistsError:
                return None
            return move.new

        for number in range(3):
            name = f"t{number}"
            made = at_once([partial(compete, name)] * self.race_thread_count)
            assert [each for each in made if each is not None] == [catalog.load(name)]

    def test_an_outcome_is_one_look(self, catalog: CatalogBackend) -> None:
        """Head and commit belong together while others commit: neither is older than the other."""
        moves = [create(catalog, "t")]
        for _ in range(30):
            moves.append(next_move(moves[-1]))
        is_done = threading.Event()
        torn: list[str] = []
        look_count = [0]

        def look() -> None:
            at = 1
            while at < len(moves) and not is_done.is_set():
                new = moves[at].new
                outcome = catalog.outcome("t", new.commit_id, since=new.version - 1)
                look_count[0] += 1
                assert outcome.head is not None
                if (outcome.head.version >= new.version) != (outcome.committed == new):
                    torn.append(f"{outcome.head.version} {new.version}")
                at += outcome.committed is not None

        reader = threading.Thread(target=look)
        reader.start()
        for move in moves[1:]:
            assert catalog.swap([move])
        reader.join(WAIT_S)
        is_done.set()
        assert not reader.is_alive()
        assert torn == []
        assert look_count[0] >= len(moves) - 1

    def test_a_reader_never_sees_the_head_go_back(self, opener: Opener) -> None:
        """Once a swap has returned, every other handle sees it or a newer one."""
        writer, reader = opener(), opener()
        step = create(writer, "t")
        for _ in range(self.race_round_count):
            step = next_move(step)
            assert writer.swap([step])
            assert reader.load("t") == step.new
            assert reader.at_version(step.new, step.new.version) == step.new

    def test_an_error_in_the_queue_frees_the_place(self, opener: Opener) -> None:
        """Whoever comes next finds no one at the counter."""
        with pytest.raises(ZeroDivisionError), opener().queue(["b", "a"]):
            raise ZeroDivisionError
        catalog = opener()
        assert at_once([lambda: bool(grow(catalog, "a", 2))]) == [True]

    def test_those_in_the_queue_are_served_in_turn(self, opener: Opener) -> None:
        """Each one who waits gets through; without a line some lose, and no swap is doubled."""
        catalogs = [opener() for _ in range(4)]
        base = create(catalogs[0], "t")
        made = {base.new.commit_id: base}

        def serve(catalog: CatalogBackend) -> int:
            won = 0
            for _ in range(5):
                with catalog.queue(["t"]):
                    step = next_move(made[catalog.load("t").commit_id])
                    made[step.new.commit_id] = step
                    won += catalog.swap([step])
            return won

        won = at_once([partial(serve, each) for each in catalogs])
        assert catalogs[0].load("t").version == sum(won)
        if isinstance(self, DatabaseRaces):
            assert won == [5] * 4

    def test_a_forked_child_works_and_leaves_the_parent_alone(self, opener: Opener) -> None:
        """Both go on with the catalog that the parent had opened."""
        catalog = opener()
        moves = grow(catalog, "t", 2)
        step = next_move(moves[-1])
        if not self.survives_fork:
            assert in_child(lambda: catalog.swap([step]))
            assert catalog.load("t") == moves[-1].new
            return
        assert in_child(lambda: catalog.load("t") == moves[-1].new and catalog.swap([step]))
        assert catalog.load("t") == step.new
        assert catalog.swap([next_move(step)])
        with catalog.queue(["t"]):
            assert in_child(lambda: catalog.load("t").version == 3)
            assert catalog.load("t").version == 3


class DatabaseRaces(CatalogRaces):
    """What those promise besides that take several tables and have a line to wait in."""

    def test_swaps_of_several_tables_do_not_wait_for_each_other_for_ever(
        self, catalog: CatalogBackend
    ) -> None:
        """Whichever order the tables are named in; each round one of them wins."""
        steps = [create(catalog, name) for name in ("a", "b")]
        for _ in range(self.race_round_count):
            pairs = [[next_move(step) for step in steps] for _ in range(4)]
            orders = [pair if number % 2 else pair[::-1] for number, pair in enumerate(pairs)]
            won = at_once([partial(catalog.swap, moves) for moves in orders])
            assert sorted(won) == [False] * 3 + [True]
            steps = pairs[won.index(True)]
            assert [catalog.load(name) for name in "ab"] == [step.new for step in steps]

    def test_nobody_swaps_between_those_in_the_queue(self, opener: Opener) -> None:
        """The one at the counter loads and swaps, and another's swap waits until it has left."""
        mine, theirs = opener(), opener()
        base = create(mine, "t")
        ended = threading.Event()
        rival = next_move(base)
        answers: list[bool] = []

        def swap() -> None:
            answers.append(theirs.swap([rival]))
            ended.set()

        other = threading.Thread(target=swap)
        with mine.queue(["t"]):
            other.start()
            assert not ended.wait(0.3)
            with mine.queue(["t"]):  # One who is inside may ask again.
                step = next_move(base)
                assert mine.swap([step])
            assert not ended.wait(0.1)
        other.join(WAIT_S)
        assert answers == [False]
        assert mine.load("t") == step.new


def at_once(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run each on a thread of its own, all from one start; their results in order."""
    start = threading.Barrier(len(tasks))

    def run(task: Callable[[], T]) -> T:
        start.wait(WAIT_S)
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = [pool.submit(run, task) for task in tasks]
        return [future.result(WAIT_S) for future in futures]


def in_child(work: Callable[[], bool]) -> bool:
    """Whether `work` says yes in a forked child."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # A fork with threads: our subject.
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
