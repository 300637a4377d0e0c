"""A bug that is planted in the commit, the catalog or the store is found within a few histories."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from lakebed.catalog.memory import MemoryCatalog
from lakebed.commit import committer, conflict, rebase, stage, swap, token
from lakebed.commit.manifest_list import ManifestList
from lakebed.errors import CommitUnknownError, UnavailableError
from lakebed.files.delta import Delta
from lakebed.format.paths import snapshot_path
from lakebed.format.pointer import Move
from lakebed.storage.memory import MemoryStore
from lakebed.testing.simulate import run_histories

pytestmark = pytest.mark.simulation

HISTORY_COUNT_MAX = 6_000
Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


def swap_without_compare(patch: Patch) -> None:
    """The WHERE of the conditional update is forgotten."""

    def may_move(self: MemoryCatalog, move: Move) -> bool:
        return move.new.name in self._heads

    patch.setattr(MemoryCatalog, "_may_move", may_move)


def create_replaces(patch: Patch) -> None:
    """The store ignores the condition of a conditional put."""

    def create(self: MemoryStore, path: str, data: bytes) -> None:
        self._objects[self._key(path)] = bytes(data), self._clock.now_ms()

    patch.setattr(MemoryStore, "create", create)


def tables_one_after_the_other(patch: Patch) -> None:
    """A transaction over two tables is two transactions."""
    whole = MemoryCatalog.swap

    def swap_each(self: MemoryCatalog, moves: Sequence[Move]) -> bool:
        made = [whole(self, [move]) for move in moves]
        return all(made)

    patch.setattr(MemoryCatalog, "swap", swap_each)


def unknown_is_success(patch: Patch) -> None:
    """No answer is taken for yes."""

    def decide(catalog: Any, moves: Sequence[Move], **_: Any) -> bool:
        try:
            return bool(catalog.swap(moves))
        except CommitUnknownError:
            return True

    patch.setattr(committer, "decide", decide)


def unknown_is_failure(patch: Patch) -> None:
    """No answer is taken for no: the change is rebased while the first swap may still land."""

    def decide(catalog: Any, moves: Sequence[Move], **_: Any) -> bool:
        try:
            return bool(catalog.swap(moves))
        except CommitUnknownError:
            return False

    patch.setattr(committer, "decide", decide)


def unknown_is_unavailable(patch: Patch) -> None:
    """The caller is told "nothing was changed" when nobody knows."""

    def unresolved(moves: Sequence[Move], cause: CommitUnknownError) -> UnavailableError:
        return UnavailableError("nothing was changed")

    patch.setattr(swap, "_unresolved", unresolved)


def only_the_head_is_asked(patch: Patch) -> None:
    """A commit that others have followed is taken for lost."""

    def look(catalog: Any, moves: Sequence[Move]) -> bool | None:
        new, expected = moves[0].new, moves[0].expected
        head = catalog.load(new.name)
        if head.commit_id == new.commit_id:
            return True
        return None if head.version == expected.version else False

    patch.setattr(swap, "_look", look)


def unchanged_head_is_lost(patch: Patch) -> None:
    """An undecided swap is taken for lost because its effect is not there yet."""
    real = swap._look
    patch.setattr(swap, "_look", lambda catalog, moves: bool(real(catalog, moves)))


def unknown_deletes(patch: Patch) -> None:
    """The files of an attempt are cleaned up although nobody knows whether it was made."""

    def decide(catalog: Any, moves: Sequence[Move], **more: Any) -> bool:
        try:
            return swap.decide(catalog, moves, **more)
        except CommitUnknownError:
            victims.extend(move.new.snapshot_path for move in moves)
            raise

    victims: list[str] = []
    whole = committer.Committer.commit

    def commit(self: committer.Committer, targets: Sequence[Any]) -> Any:
        try:
            return whole(self, targets)
        except CommitUnknownError:
            for target in targets:
                for path in victims:
                    target.files.store.delete(path)
            raise

    patch.setattr(committer, "decide", decide)
    patch.setattr(committer.Committer, "commit", commit)


def no_conflict_check(patch: Patch) -> None:
    """A change is placed after anything that came in between."""
    patch.setattr(committer, "check_conflicts", lambda *_: None)


def missing_files_are_removed_in_silence(patch: Patch) -> None:
    """Two compactions of the same files both succeed."""
    real = ManifestList.remove

    def remove(self: ManifestList, removed: Any) -> list[Any]:
        real(self, removed)
        return []

    def keeps(change: Any, base: Any, head: Any, files: Any) -> None:
        real_check(replace(change, removed=()), base, head, files)

    real_check = rebase.check_conflicts
    patch.setattr(ManifestList, "remove", remove)
    patch.setattr(committer, "check_conflicts", keeps)


def appends_never_conflict(patch: Patch) -> None:
    """The serializable level is not kept: what was read may have been added to."""

    def check(mine: Any, theirs: Delta, may_match: Any) -> Any:
        return conflict.check(mine, Delta(theirs.snapshot, (), theirs.removed), may_match)

    patch.setattr(rebase, "check", check)


def tokens_are_not_looked_up(patch: Patch) -> None:
    """A repeated append is appended again."""
    patch.setattr(committer, "repeated_commit", lambda *_: None)
    patch.setattr(token, "repeated_commit", lambda *_: None)

    def may_move(self: MemoryCatalog, move: Move) -> bool:
        return self._is_head(move.expected)

    patch.setattr(MemoryCatalog, "_may_move", may_move)


def time_goes_back(patch: Patch) -> None:
    """A snapshot is stamped with whatever the clock says."""
    real = stage._snapshot

    def stamped(head: Any, change: Any, after: Any, draft: Any, context: Any, *more: Any) -> Any:
        made = real(head, change, after, draft, context, *more)
        return type(made)(**{**_fields(made), "timestamp_ms": context.now_ms})

    patch.setattr(stage, "_snapshot", stamped)


def attempts_share_a_file_name(patch: Patch) -> None:
    """The clean-up of a lost attempt can hit the snapshot of the next one."""

    def path_of(version: int, context: stage.Context) -> str:
        return snapshot_path(version, "" if context.named_by_version else context.commit_id)

    patch.setattr(stage, "path_of", path_of)


def removed_files_come_back(patch: Patch) -> None:
    """The list of the next version is made from the base instead of the head."""
    real = committer.Committer._head
    first: dict[str, Any] = {}

    def head(self: committer.Committer, target: committer.Target) -> Any:
        found = real(self, target)
        base = first.setdefault(found.snapshot.table_id, found)
        kept = {**_fields(found.snapshot), "manifest_list": base.snapshot.manifest_list}
        return replace(found, snapshot=type(found.snapshot)(**kept))

    patch.setattr(committer.Committer, "_head", head)


def _fields(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


PLANTS: tuple[Plant, ...] = (
    swap_without_compare,
    create_replaces,
    tables_one_after_the_other,
    unknown_is_success,
    unknown_is_failure,
    unknown_is_unavailable,
    only_the_head_is_asked,
    unchanged_head_is_lost,
    unknown_deletes,
    no_conflict_check,
    missing_files_are_removed_in_silence,
    appends_never_conflict,
    tokens_are_not_looked_up,
    time_goes_back,
    attempts_share_a_file_name,
    removed_files_come_back,
)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: Patch) -> None:
    plant(monkeypatch)
    tally = run_histories(range(HISTORY_COUNT_MAX))
    assert tally.failures, f"{HISTORY_COUNT_MAX} histories and nobody noticed"
    text = "\n".join(tally.failures[0].complaints)
    blunders = ("TypeError:", "NameError:", "AttributeError:")
    assert not any(line.startswith(blunders) for line in text.splitlines()), text
    print(f"found after {tally.history_count}: {text}")


@pytest.fixture(autouse=True)
def beginnings_made_before_the_bug() -> Iterator[None]:
    """Let the cached beginnings be made by sound code."""
    run_histories(range(100))
    yield
