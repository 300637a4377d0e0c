"""Memory: a name is one store for the whole process, no name is one of its own."""

from lakebed.storage.memory import MemoryStore


def test_a_name_is_the_same_store_for_all() -> None:
    MemoryStore.named("shared").create("a", b"x")
    assert MemoryStore.named("shared").read("a", size_bytes_max=1) == b"x"
    assert not MemoryStore.named("other").exists("a")


def test_stores_without_a_name_are_apart() -> None:
    first, second = MemoryStore(), MemoryStore()
    first.create("a", b"x")
    assert not second.exists("a")


def test_content_does_not_change_with_the_buffer_it_came_from() -> None:
    buffer = bytearray(b"before")
    store = MemoryStore()
    store.create("a", memoryview(buffer))
    buffer[:] = b"after!"
    assert store.read("a", size_bytes_max=6) == b"before"
    assert store.read_range("a", 1, 3) == b"efo"


def test_times_are_by_the_given_clock() -> None:
    class Fixed:
        def now_ms(self) -> int:
            return 123

        def monotonic_ms(self) -> float:
            return 0.0

        def sleep_ms(self, duration_ms: float) -> None:
            raise AssertionError

    store = MemoryStore(clock=Fixed())
    store.create("a", b"x")
    assert [info.modified_ms for info in store.list()] == [123]
    assert repr(store) == "MemoryStore('memory:')"
