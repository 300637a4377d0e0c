"""Metadata files are read once, and only if they are exactly the ones that were meant."""

from typing import Any

import msgspec
import pyarrow as pa
import pytest
from tests.files import manifests
from tests.format import build

from lakebed.errors import BadMetadataError, LimitExceededError, ObjectMissingError, UnsafePathError
from lakebed.files import metadata_files
from lakebed.files.delta import delta_of, live_files
from lakebed.files.manifest import INHERIT, encode_manifest, to_entries, to_table
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.datafile import Entry
from lakebed.format.metadata import encode_metadata
from lakebed.format.snapshot import ManifestRef, Operation, Snapshot, Summary, encode_snapshot
from lakebed.storage.memory import MemoryStore

METADATA = build.metadata()
DEFINITION = "metadata/table-1.json"


class CountingStore(MemoryStore):
    """A store that remembers what was read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def read(self, path: str, *, size_bytes_max: int) -> bytes:
        self.reads.append(path)
        return super().read(path, size_bytes_max=size_bytes_max)


@pytest.fixture
def store() -> CountingStore:
    found = CountingStore()
    found.create(DEFINITION, encode_metadata(METADATA))
    return found


def put_manifest(store: MemoryStore, name: str, *entries: Entry, **changes: Any) -> ManifestRef:
    table = to_table(entries, METADATA.spec(0), METADATA)
    data = encode_manifest(table)
    path = f"metadata/manifest-{name}.parquet"
    store.create(path, data)
    return manifests.ref_of(table, data, path=path, **changes)


def put_snapshot(store: MemoryStore, **changes: Any) -> str:
    snapshot = build.snapshot(**changes)
    path = f"metadata/snap-{snapshot.version}.json"
    store.create(path, encode_snapshot(snapshot))
    return path


def entry(name: str, added: int = 1, removed: int = 0) -> Entry:
    return Entry(file=build.data_file(name), added_version=added, removed_version=removed)


def test_each_file_is_read_once(store: CountingStore) -> None:
    files = MetadataFiles(store)
    ref = put_manifest(store, "a", entry("x"))
    path = put_snapshot(store)
    for _ in range(3):
        assert files.snapshot(path) == build.snapshot()
        assert files.metadata(DEFINITION) == METADATA
        assert to_entries(files.manifest(ref, METADATA), METADATA.spec(0)) == [entry("x")]
    assert store.reads == [path, DEFINITION, ref.path]


def test_what_was_just_written_is_not_read_again(store: CountingStore) -> None:
    files = MetadataFiles(store)
    files.keep_snapshot("metadata/new.json", build.snapshot())
    files.keep_metadata("metadata/new-table.json", METADATA)
    assert files.snapshot("metadata/new.json") == build.snapshot()
    assert files.metadata("metadata/new-table.json") == METADATA
    assert store.reads == []


def test_the_oldest_are_forgotten(store: CountingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_files, "_MANIFESTS_KEPT", 2)
    files = MetadataFiles(store)
    refs = [put_manifest(store, name, entry(name)) for name in "abc"]
    for ref in (*refs, refs[2], refs[0]):
        files.manifest(ref, METADATA)
    assert store.reads == [ref.path for ref in (*refs, refs[0])]


def test_inline_entries_need_no_file(store: CountingStore) -> None:
    ref = build.inline(entry("x"), entry("y", 1, 2))
    table = MetadataFiles(store).manifest(ref, METADATA)
    assert to_entries(table, METADATA.spec(0)) == [entry("x"), entry("y", 1, 2)]
    assert store.reads == []


@pytest.mark.parametrize("place", [0, 40, -1])
def test_a_manifest_with_a_flipped_bit_is_refused(store: CountingStore, place: int) -> None:
    ref = put_manifest(store, "a", entry("x"))
    data = bytearray(store.read(ref.path, size_bytes_max=1 << 20))
    data[place] ^= 1
    store.delete(ref.path)
    store.create(ref.path, bytes(data))
    with pytest.raises(BadMetadataError, match="checksum") as caught:
        MetadataFiles(store).manifest(ref, METADATA)
    assert caught.value.fields["path"] == ref.path


def test_a_manifest_of_another_length_is_refused(store: CountingStore) -> None:
    ref = put_manifest(store, "a", entry("x"))
    wrong = msgspec.structs.replace(ref, size_bytes=ref.size_bytes + 1)
    with pytest.raises(BadMetadataError, match="length or checksum"):
        MetadataFiles(store).manifest(wrong, METADATA)


def test_what_is_kept_of_one_manifest_is_not_given_for_another_description(
    store: CountingStore,
) -> None:
    files = MetadataFiles(store)
    ref = put_manifest(store, "a", Entry(file=build.data_file("x"), added_version=INHERIT))
    later = msgspec.structs.replace(ref, written_version=9)
    found = [
        files.manifest(each, METADATA).column("added_version").to_pylist() for each in (ref, later)
    ]
    assert found == [[7], [9]]
    with pytest.raises(BadMetadataError, match="checksum"):
        files.manifest(msgspec.structs.replace(ref, checksum="0" * 32), METADATA)


def test_missing_oversized_and_outside_files_are_typed_errors(
    store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = MetadataFiles(store)
    with pytest.raises(ObjectMissingError):
        files.snapshot("metadata/snap-9.json")
    with pytest.raises(UnsafePathError):
        files.snapshot("../snap.json")
    monkeypatch.setattr(metadata_files, "JSON_SIZE_BYTES_MAX", 10)
    with pytest.raises(LimitExceededError):
        files.metadata(DEFINITION)
    monkeypatch.setattr(metadata_files, "MANIFEST_SIZE_BYTES_MAX", 10)
    with pytest.raises(LimitExceededError):
        files.manifest(put_manifest(store, "a", entry("x")), METADATA)


def test_a_manifest_under_a_spec_that_the_table_has_not_is_refused(store: CountingStore) -> None:
    with pytest.raises(BadMetadataError, match="no partition spec 3"):
        MetadataFiles(store).manifest(build.inline(spec_id=3), METADATA)


# ---------------------------------------------------------------------------------------- deltas


def version(store: MemoryStore, *refs: ManifestRef, **changes: Any) -> Snapshot:
    put_snapshot(store, manifest_list=refs, **changes)
    return build.snapshot(manifest_list=refs, **changes)


def paths(files: Any) -> list[str]:
    return [file.path.removeprefix("data/").removesuffix(".parquet") for file in files]


def test_a_delta_is_told_by_the_manifests_that_the_version_wrote(store: CountingStore) -> None:
    old = put_manifest(store, "old", entry("a", 1), entry("b", 3, 3), written_version=3)
    new = put_manifest(
        store, "new", entry("c", 4), entry("d", 2, 4), entry("e", 2), written_version=4
    )
    tail = build.inline(entry("f", 4), entry("g", 3), written_version=4)
    snapshot = version(store, old, new, tail, summary=Summary(added_files=2, removed_files=1))
    delta = delta_of(MetadataFiles(store), snapshot)
    assert (paths(delta.added), paths(delta.removed)) == (["c", "f"], ["d"])
    assert old.path not in store.reads


def test_a_version_that_changed_no_files_reads_none(store: CountingStore) -> None:
    ref = put_manifest(store, "new", entry("c", 4), written_version=4)
    delta = delta_of(MetadataFiles(store), version(store, ref))
    assert (delta.added, delta.removed) == ((), ())
    assert store.reads == []


def test_the_delta_of_a_rollback_is_the_difference_to_its_parent(store: CountingStore) -> None:
    before = put_manifest(store, "p", entry("a"), entry("b"), entry("x", 1, 3), written_version=3)
    after = put_manifest(store, "q", entry("b"), entry("c"), written_version=1)
    put_snapshot(store, version=3, manifest_list=(before,))
    snapshot = version(store, after, operation=Operation.ROLLBACK)
    delta = delta_of(MetadataFiles(store), snapshot)
    assert (paths(delta.added), paths(delta.removed)) == (["c"], ["a"])


def test_live_files_are_those_of_all_manifests_that_were_not_removed(store: CountingStore) -> None:
    ref = put_manifest(store, "p", entry("a"), entry("b", 1, 2))
    snapshot = version(
        store, msgspec.structs.replace(ref, written_version=4), build.inline(entry("c"))
    )
    assert paths(live_files(MetadataFiles(store), snapshot).values()) == ["a", "c"]


def test_a_manifest_read_for_planning_is_an_arrow_table(store: CountingStore) -> None:
    ref = put_manifest(store, "p", entry("a"))
    assert isinstance(MetadataFiles(store).manifest(ref, METADATA), pa.Table)
