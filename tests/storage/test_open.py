"""URIs: each names one store, what is unknown is refused, and secrets are not repeated."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakebed.errors import LakebedError, RequestError
from lakebed.storage.local import LocalStore
from lakebed.storage.memory import MemoryStore
from lakebed.storage.objects import ObjectStore
from lakebed.storage.open import open_store


def test_paths_are_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for uri in ("a b", "./a b", tmp_path / "a b", f"{tmp_path}/a b/", f"file://{tmp_path}/a%20b"):
        store = open_store(uri)
        assert isinstance(store, LocalStore)
        assert store.uri == f"{tmp_path}/a b"
    assert open_store(f"FILE://localhost{tmp_path}/x").uri == f"{tmp_path}/x"
    assert open_store("./a:b").uri == f"{tmp_path}/a:b"
    assert open_store(Path("c:d")).uri == f"{tmp_path}/c:d"


def test_a_store_opens_again_by_its_uri(tmp_path: Path) -> None:
    for uri in (str(tmp_path), "memory:again", "memory:again/below"):
        child = open_store(uri).child("x/y")
        child.create("a", b"x")
        assert open_store(child.uri).read("a", size_bytes_max=1) == b"x"


def test_memory_without_a_name_is_fresh() -> None:
    store = open_store("memory:")
    assert isinstance(store, MemoryStore)
    store.create("a", b"x")
    assert not open_store("memory:").exists("a")
    open_store("memory://named-by-slashes").create("a", b"x")
    assert open_store("memory:named-by-slashes").exists("a")


OPTIONS = {"aws_access_key_id": "AKIA12345678", "AWS_SECRET_ACCESS_KEY": "very-secret-text"}
AZURE_OPTIONS = {"azure_storage_account_name": "acct", "azure_storage_account_key": "c2VjcmV0"}


@pytest.mark.parametrize(
    ("uri", "opened", "options"),
    [
        ("s3://bucket", "s3://bucket", OPTIONS),
        ("s3a://bucket/a/b/", "s3://bucket/a/b", OPTIONS),
        ("gs://bucket/a b%41", "gs://bucket/a b%41", {"google_skip_signature": "true"}),
        ("az://container/a", "az://container/a", AZURE_OPTIONS),
        (
            "abfss://container@acct.dfs.core.windows.net/a",
            "abfss://container@acct.dfs.core.windows.net/a",
            AZURE_OPTIONS,
        ),
    ],
)
def test_buckets_are_object_stores(uri: str, opened: str, options: dict[str, str]) -> None:
    store = open_store(uri, options)
    assert isinstance(store, ObjectStore)
    assert store.uri == opened
    assert store.child("x/y").uri == f"{opened}/x/y"
    shown = repr(store) + repr(store.child("x")) + repr(store._clients) + store.identity
    assert not any(secret in shown for secret in ("very-secret-text", "AKIA", "c2VjcmV0"))


@pytest.mark.parametrize(
    "uri",
    [
        *("ftp://host/x", "http://host/x", "s3:bucket", "s3://", "s3:///key", "file:relative"),
        *("file://otherhost/x", "s3://key:secret@bucket/x", "s3://bucket/x?sig=secret"),
        *("gs://us er/x", "az://c:secret@acct/x", "s3://bucket/x#secret", "s3://bucket/../x"),
    ],
)
def test_what_names_no_store_is_refused_without_repeating_it(uri: str) -> None:
    with pytest.raises(LakebedError) as caught:
        open_store(uri)
    assert "secret" not in str(caught.value)


def test_unknown_options_are_refused_without_their_value() -> None:
    with pytest.raises(RequestError, match="bogus") as caught:
        open_store("s3://bucket", {"bogus": "hidden-value"})
    assert "hidden-value" not in str(caught.value)


def test_opening_a_local_store_imports_neither_pyarrow_nor_obstore() -> None:
    script = """
import sys, lakebed.storage.doctor
from lakebed.storage.open import open_store
open_store("memory:x").create("a", b"x"); open_store("/tmp")
assert not {"pyarrow", "obstore", "numpy"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ})
