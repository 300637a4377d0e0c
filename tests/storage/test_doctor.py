"""The doctor: finds each broken promise, and nothing to complain about where all are kept."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from lakebed.errors import ObjectExistsError, UnavailableError, UnsafeStoreError
from lakebed.ids import SystemIds
from lakebed.storage import doctor
from lakebed.storage.doctor import PROBE_DIRECTORY, probe_store, require_safe
from lakebed.storage.local import LocalStore
from lakebed.storage.memory import MemoryStore
from lakebed.storage.open import open_store
from lakebed.storage.store import ObjectInfo, Store
from lakebed.testing.servers import RcloneServer

IDS = SystemIds()


def test_memory_is_safe() -> None:
    report = probe_store(MemoryStore(), ids=IDS)
    assert report.ok
    assert report.race_count == 10
    assert report.one_winner


def test_local_disk_is_safe_and_left_clean(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.create("mine", b"x")
    report = probe_store(store, ids=IDS)
    assert report.ok, report.problems
    assert report.cleaned_up
    assert [info.path for info in store.list()] == ["mine"]


@pytest.mark.s3
def test_seaweedfs_is_safe(s3_store: Store) -> None:
    report = probe_store(s3_store, ids=IDS, thread_count=4, round_count=3)
    assert report.ok, report.problems
    assert list(s3_store.list()) == []
    require_safe(s3_store, IDS)


@pytest.mark.s3
def test_rclone_is_not_safe(rclone_server: RcloneServer) -> None:
    store = open_store(rclone_server.uri, rclone_server.storage_options)
    report = probe_store(store, ids=IDS)
    assert not report.ok
    assert not report.second_create_refused
    assert not report.first_content_kept
    assert not report.one_winner
    assert report.read_after_write
    assert report.cleaned_up
    with pytest.raises(UnsafeStoreError, match="not safe for commits") as caught:
        require_safe(store, IDS)
    assert rclone_server.secret_key not in str(caught.value)


class Broken:
    """A store in memory with some functions replaced."""

    def __init__(self, **replaced: Callable[..., Any]) -> None:
        self._inner = MemoryStore()
        self._replaced = replaced
        self.uri = "memory:broken"

    def __getattr__(self, name: str) -> Any:
        replacement = self._replaced.get(name)
        if replacement is None:
            return getattr(self._inner, name)
        return lambda *args, **kwargs: replacement(self._inner, *args, **kwargs)

    def child(self, path: str) -> "Broken":
        return self


def overwrite(inner: MemoryStore, path: str, data: bytes) -> None:
    inner.delete(path)
    inner.create(path, data)


def check_then_write(inner: MemoryStore, path: str, data: bytes) -> None:
    """Refuses a second create, yet lets two at once through."""
    if path.endswith("-one"):
        inner.create(path, data)
    else:
        overwrite(inner, path, data)


def refuse_races(inner: MemoryStore, path: str, data: bytes) -> None:
    if "-race-" in path:
        raise ObjectExistsError("always")
    inner.create(path, data)


def lose_content(inner: MemoryStore, path: str, data: bytes) -> None:
    inner.create(path, b"other" if "-race-" in path else data)


def no_list(_inner: MemoryStore, _prefix: str = "") -> Iterable[ObjectInfo]:
    return iter([])


def as_store(broken: Any) -> Store:
    return broken


@pytest.mark.parametrize(
    ("replaced", "field"),
    [
        ({"create": overwrite}, "second_create_refused"),
        ({"create": overwrite}, "first_content_kept"),
        ({"create": check_then_write}, "one_winner"),
        ({"create": refuse_races}, "one_winner"),
        ({"create": lose_content}, "one_winner"),
        ({"list": no_list}, "listing_sees_it"),
        ({"size": lambda inner, path: inner.size(path) + 1}, "size_is_right"),
        ({"delete": lambda _inner, _path: None}, "delete_removes_it"),
        ({"read": lambda inner, path, size_bytes_max: b""}, "read_after_write"),
    ],
)
def test_a_broken_promise_is_found(replaced: dict[str, Any], field: str) -> None:
    report = probe_store(as_store(Broken(**replaced)), ids=IDS)
    assert not report.ok
    assert getattr(report, field) is False


def test_lost_answers_are_not_held_against_a_store() -> None:
    def lossy(inner: MemoryStore, path: str, data: bytes) -> None:
        inner.create(path, data)
        if "-race-" in path:
            raise UnavailableError("the answer was lost")

    assert probe_store(as_store(Broken(create=lossy)), ids=IDS).ok


def test_a_failed_clean_up_is_told_but_is_no_danger() -> None:
    def no_delete(inner: MemoryStore, path: str) -> None:
        if "-race-" in path:
            raise UnavailableError("try again")
        inner.delete(path)

    report = probe_store(as_store(Broken(delete=no_delete)), ids=IDS)
    assert report.ok
    assert not report.cleaned_up


def test_a_slow_store_is_probed_for_a_bounded_time() -> None:
    class Hasty:
        at_ms = 0.0

        def now_ms(self) -> int:
            return 0

        def monotonic_ms(self) -> float:
            self.at_ms += 20_000
            return self.at_ms

        def sleep_ms(self, duration_ms: float) -> None:
            raise AssertionError

    report = probe_store(MemoryStore(), ids=IDS, clock=Hasty())
    assert report.ok
    assert 1 <= report.race_count < 10


def test_only_a_success_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_safe", set())
    calls: list[str] = []

    def counting(inner: MemoryStore, path: str, data: bytes) -> None:
        calls.append(path)
        inner.create(path, data)

    for create, probes in ((overwrite, 0), (counting, 1), (counting, 1)):
        store = as_store(Broken(create=create))
        if create is overwrite:
            with pytest.raises(UnsafeStoreError):
                require_safe(store, IDS)
        else:
            require_safe(store, IDS)
        assert len([path for path in calls if path.endswith("-one")]) == probes * 2


def test_probe_objects_are_out_of_the_way_of_tables() -> None:
    store = MemoryStore()
    seen: list[str] = []
    real = store.child

    def child(path: str) -> MemoryStore:
        seen.append(path)
        return real(path)

    store.child = child  # type: ignore[method-assign]
    probe_store(store, ids=IDS, round_count=1)
    assert seen == [PROBE_DIRECTORY]
