"""Object stores: a lost answer is neither success nor conflict, and no error carries a secret."""

import traceback
from collections.abc import Callable, Iterator

import pytest
from tests.storage.scripted_s3 import SECRET, ScriptedS3, scripted_s3

from lakebed.errors import (
    ObjectExistsError,
    ObjectMissingError,
    StorageError,
    UnavailableError,
)
from lakebed.ids import SystemIds
from lakebed.storage.objects import (
    CREATE_ATTEMPT_COUNT_MAX,
    CREATE_BACKOFF_MS_MAX,
    CREATE_DURATION_MS_MAX,
    ObjectStore,
)
from lakebed.storage.open import open_store
from lakebed.testing.servers import S3Server


class SkippingClock:
    """Time passes only by sleeping, and that takes none."""

    def __init__(self) -> None:
        self.slept_ms: list[float] = []
        self.step_ms = 0.0
        self.at_ms = 0.0

    def now_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> float:
        self.at_ms += self.step_ms
        return self.at_ms

    def sleep_ms(self, duration_ms: float) -> None:
        self.slept_ms.append(duration_ms)


@pytest.fixture
def server() -> Iterator[ScriptedS3]:
    with scripted_s3() as server:
        yield server


@pytest.fixture
def clock() -> SkippingClock:
    return SkippingClock()


@pytest.fixture
def store(server: ScriptedS3, clock: SkippingClock) -> ObjectStore:
    return ObjectStore("s3://bucket", "table", options=server.options, clock=clock)


def test_a_plain_create_is_one_request(store: ObjectStore, server: ScriptedS3) -> None:
    store.create("a", b"mine")
    assert server.requests == ["PUT /bucket/table/a"]


@pytest.mark.parametrize("doubt", ["lost", "stored-500"])
def test_an_object_of_ours_whose_answer_was_lost_is_a_success(
    store: ObjectStore, server: ScriptedS3, doubt: str
) -> None:
    server.script = [doubt]
    store.create("a", b"mine")
    assert server.objects == {"/bucket/table/a": b"mine"}
    assert [request.split()[0] for request in server.requests] == ["PUT", "PUT", "GET"]


def test_an_object_of_another_after_a_lost_answer_is_a_conflict(
    store: ObjectStore, server: ScriptedS3
) -> None:
    server.script = ["taken"]
    with pytest.raises(ObjectExistsError):
        store.create("a", b"mine")
    assert server.objects == {"/bucket/table/a": b"another writer's"}


def test_equal_content_is_refused_when_nothing_was_in_doubt(
    store: ObjectStore, server: ScriptedS3
) -> None:
    store.create("a", b"mine")
    with pytest.raises(ObjectExistsError):
        store.create("a", b"mine")
    assert not any(request.startswith("GET") for request in server.requests)


def test_an_undecided_race_is_asked_again_and_is_not_an_answer(
    store: ObjectStore, server: ScriptedS3, clock: SkippingClock
) -> None:
    server.script = [409, 409]
    store.create("a", b"mine")
    assert server.objects == {"/bucket/table/a": b"mine"}
    assert len(clock.slept_ms) == 2


def test_a_race_that_another_won_is_not_ours_though_equal(
    store: ObjectStore, server: ScriptedS3
) -> None:
    """A 409 stored nothing of ours, so it puts nothing in doubt."""
    server.objects["/bucket/table/a"] = b"mine"
    server.script = [409]
    with pytest.raises(ObjectExistsError):
        store.create("a", b"mine")


@pytest.mark.parametrize("status", [409, 500, 503, 429])
def test_repeats_are_bounded(
    store: ObjectStore, server: ScriptedS3, clock: SkippingClock, status: int
) -> None:
    server.script = [status] * 100
    with pytest.raises(UnavailableError) as caught:
        store.create("a", b"mine")
    assert len(server.requests) == CREATE_ATTEMPT_COUNT_MAX
    assert len(clock.slept_ms) == CREATE_ATTEMPT_COUNT_MAX - 1
    assert max(clock.slept_ms) <= CREATE_BACKOFF_MS_MAX
    assert caught.value.retryable


def test_repeats_end_when_time_is_up(
    store: ObjectStore, server: ScriptedS3, clock: SkippingClock
) -> None:
    server.script = [500] * 100
    clock.step_ms = CREATE_DURATION_MS_MAX + 1
    with pytest.raises(UnavailableError):
        store.create("a", b"mine")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 403, 404, 411])
def test_a_refusal_is_not_repeated(store: ObjectStore, server: ScriptedS3, status: int) -> None:
    server.script = [status] * 2
    with pytest.raises(StorageError) as caught:
        store.create("a", b"mine")
    assert not caught.value.retryable
    assert len(server.requests) == 1


def test_no_server_is_unavailable(clock: SkippingClock) -> None:
    with scripted_s3() as server:
        options = server.options
    store = ObjectStore("s3://bucket", options=options, clock=clock)
    with pytest.raises(UnavailableError):
        store.create("a", b"mine")


@pytest.mark.parametrize("status", [400, 401, 403])
def test_no_error_carries_a_secret(store: ObjectStore, server: ScriptedS3, status: int) -> None:
    """Not even when the server repeats it to us, and not in the traceback either."""
    server.objects["/bucket/table/a"] = b"x"
    server.read_status = status
    calls: list[Callable[[], object]] = [
        lambda: store.read("a", size_bytes_max=10),
        lambda: store.read_range("a", 0, 1),
        lambda: store.read_tail("a", 1),
        lambda: store.list(),
    ]
    for call in calls:
        with pytest.raises(StorageError) as caught:
            call()
        text = "".join(traceback.format_exception(caught.value)) + repr(caught.value.fields)
        assert SECRET not in text
        assert "AKIA-SCRIPTED" not in text


def test_the_end_of_an_object_takes_one_request(store: ObjectStore, server: ScriptedS3) -> None:
    store.create("a", b"0123456789")
    server.requests.clear()
    tail, size_bytes = store.read_tail("a", 4)
    assert (bytes(tail), size_bytes) == (b"6789", 10)
    assert bytes(store.read_range("a", 2, 3)) == b"234"
    assert server.requests == ["GET /bucket/table/a bytes=-4", "GET /bucket/table/a bytes=2-4"]


def test_missing_objects_are_missing_in_each_way_of_reading(store: ObjectStore) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.read("a", size_bytes_max=10),
        lambda: store.read_range("a", 0, 1),
        lambda: store.read_tail("a", 1),
    ]
    for call in calls:
        with pytest.raises(ObjectMissingError):
            call()


def test_children_share_the_connections(store: ObjectStore, server: ScriptedS3) -> None:
    child = store.child("x").child("y")
    assert child._clients is store._clients
    assert child.identity == store.identity
    child.create("a", b"x")
    assert list(server.objects) == ["/bucket/table/x/y/a"]


@pytest.mark.s3
def test_a_wrong_key_is_refused_with_a_hint(s3_server: S3Server) -> None:
    options = {**s3_server.storage_options, "AWS_SECRET_ACCESS_KEY": "wrong-secret"}
    store = open_store(s3_server.uri, options)
    with pytest.raises(StorageError, match="Check the credentials") as caught:
        store.create("a", b"x")
    assert "wrong-secret" not in str(caught.value)
    assert s3_server.access_key not in str(caught.value)


@pytest.mark.s3
def test_a_missing_bucket_is_not_a_missing_object(s3_server: S3Server) -> None:
    store = open_store("s3://no-such-bucket-here", s3_server.storage_options)
    with pytest.raises(StorageError, match="no bucket"):
        store.read("a", size_bytes_max=1)


@pytest.mark.s3
def test_the_end_of_an_empty_object_is_empty(s3_server: S3Server) -> None:
    store = open_store(f"{s3_server.uri}/{SystemIds().new()}", s3_server.storage_options)
    assert isinstance(store, ObjectStore)
    store.create("empty", b"")
    assert store.read_tail("empty", 10) == (b"", 0)


@pytest.mark.s3
def test_foreign_names_and_neighbours_are_not_listed(s3_server: S3Server) -> None:
    prefix = SystemIds().new()
    store = open_store(f"{s3_server.uri}/{prefix}", s3_server.storage_options)
    other = open_store(f"{s3_server.uri}/{prefix}-neighbour", s3_server.storage_options)
    store.create("a", b"x")
    other.create("b", b"x")
    assert [info.path for info in store.list()] == ["a"]
