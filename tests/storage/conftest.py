"""A store on local disk, with each of the two ways to stage a file."""

from pathlib import Path

import pytest

from lakebed.storage.local import LocalStore
from lakebed.storage.store import Store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture(params=["nameless", "named"])
def store(root: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Store:
    if request.param == "named":
        monkeypatch.setattr("lakebed.storage.local.has_nameless_files", lambda: False)
    return LocalStore(root)
