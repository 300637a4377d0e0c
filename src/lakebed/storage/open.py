"""From a URI to the store it names."""

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from lakebed.errors import RequestError
from lakebed.ids import Ids
from lakebed.storage.local import LocalStore
from lakebed.storage.memory import MemoryStore
from lakebed.storage.store import Store

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_OBJECT_SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "az": "az",
    "abfs": "abfs",
    "abfss": "abfss",
}
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_AZURE_BUCKET = re.compile(r"[A-Za-z0-9$][A-Za-z0-9-]*(@[A-Za-z0-9.-]+)?")


def open_store(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    *,
    ids: Ids | None = None,
) -> Store:
    """Open the store that a URI names; nothing is read or made yet.

    A bare path or `file:///path` is a directory; `memory:` is a fresh store and `memory:name`
    the same one for all of this process; `s3://`, `gs://`, `az://` and `abfss://` are buckets.
    `storage_options` are for buckets, the others take no notice of them.
    """
    text = os.fspath(uri)
    found = _SCHEME.match(text)
    if not found or isinstance(uri, os.PathLike):
        return LocalStore(text, ids=ids)
    scheme = found[1].lower()
    rest = text[found.end() :]
    if scheme == "file":
        return LocalStore(_file_path(rest), ids=ids)
    if scheme == "memory":
        return _open_memory(rest)
    if scheme in _OBJECT_SCHEMES:
        return _open_objects(scheme, rest, storage_options or {}, ids)
    raise RequestError(
        f"no store is known for the scheme {scheme!r}",
        hint="Known are file, memory, s3, gs, az and abfss; for a local directory with a colon"
        " in its name write ./ before it",
    )


def _file_path(rest: str) -> str:
    for start in ("//localhost/", "///"):
        if rest.startswith(start):
            return unquote("/" + rest[len(start) :])
    raise RequestError(
        "a file URI needs an absolute path on this machine", hint="Write file:///path"
    )


def _open_memory(rest: str) -> Store:
    name, _, below = rest.removeprefix("//").strip("/").partition("/")
    store = MemoryStore.named(name) if name else MemoryStore()
    return store.child(below) if below else store


def _open_objects(scheme: str, rest: str, options: Mapping[str, Any], ids: Ids | None) -> Store:
    bucket, _, prefix = rest.removeprefix("//").partition("/")
    pattern = _BUCKET if scheme in ("s3", "s3a", "gs") else _AZURE_BUCKET
    # Neither is quoted in the message: what does not fit may well be a secret.
    if not rest.startswith("//") or not pattern.fullmatch(bucket):
        raise RequestError(
            f"this {scheme} URI names no bucket",
            hint=f"Write {scheme}://bucket/path and put credentials into storage_options",
        )
    if "?" in prefix or "#" in prefix:
        raise RequestError(
            f"a {scheme} URI has no query", hint="Put tokens and options into storage_options"
        )
    from lakebed.storage.objects import ObjectStore  # obstore: not for those who do without

    location = f"{_OBJECT_SCHEMES[scheme]}://{bucket}"
    return ObjectStore(location, prefix.strip("/"), options=options, ids=ids)
