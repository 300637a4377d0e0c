"""The contract of stores, on each of them; for local disk also across processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from lakebed.errors import UnsafePathError
from lakebed.storage.local import LocalStore
from lakebed.storage.memory import MemoryStore
from lakebed.storage.store import Store
from lakebed.testing.contract_store import StoreContract

RACER = """
import sys
from lakebed.errors import ObjectExistsError
from lakebed.storage.local import LocalStore
store = LocalStore(sys.argv[1])
me = sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    try:
        store.create(f"race/{number}", f"{me} ".encode() * 5000)
        print(number)
    except ObjectExistsError:
        pass
"""


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return LocalStore(tmp_path / "store")

    @pytest.mark.slow
    def test_of_many_racing_processes_one_wins(self, tmp_path: Path) -> None:
        process_count, name_count = 4, 200
        root = tmp_path / "store"
        racers = [
            subprocess.Popen(
                [sys.executable, "-c", RACER, str(root), str(each), str(name_count)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for each in range(process_count)
        ]
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        won = [racer.communicate()[0].split() for racer in racers]
        assert all(racer.returncode == 0 for racer in racers)
        assert sorted(int(n) for each in won for n in each) == list(range(name_count))
        store = LocalStore(root)
        for me, numbers in enumerate(won):
            for number in numbers:
                found = store.read(f"race/{number}", size_bytes_max=20_000)
                assert found == f"{me} ".encode() * 5000


class TestLocalStoreWithoutNamelessFiles(TestLocalStore):
    """Where a temporary name has to do."""

    @pytest.fixture
    def store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
        monkeypatch.setattr("lakebed.storage.local.has_nameless_files", lambda: False)
        return LocalStore(tmp_path / "store")

    test_of_many_racing_processes_one_wins = None  # type: ignore[assignment] # once is enough


class TestLocalStoreWithoutSync(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return LocalStore(tmp_path / "store", fsync=False)


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore("contract")


class TestMemoryStoreChild(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore().child("below/here")


@pytest.mark.s3
class TestS3Store(StoreContract):
    # SeaweedFS makes the losers of a race wait, up to three seconds with eight of them.
    race_thread_count = 4
    race_round_count = 3

    @pytest.fixture
    def store(self, s3_store: Store) -> Store:
        return s3_store


def test_a_child_of_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path)
    with pytest.raises(UnsafePathError):
        LocalStore(tmp_path / "root").child("link")
