"""A flow put in its place: relative paths under a directory, and the catalog it has not named."""

import os
import re
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from lakebed.flow.flow import Flow
from lakebed.flow.sources import FileSource, Source, TableSource

_SQLITE = "sqlite:///"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def anchored(flow: Flow, directory: str | os.PathLike[str]) -> Flow:
    """Read relative paths from `directory`, so that a flow means the same wherever it is run."""
    root = PurePath(directory)
    return replace(
        flow,
        catalog=_uri(root, flow.catalog),
        warehouse=_uri(root, flow.warehouse),
        checkpoint=_uri(root, flow.checkpoint),
        sources=tuple(_anchored_source(root, source) for source in flow.sources),
        sinks=tuple(
            replace(sink, catalog=_uri(root, sink.catalog), warehouse=_uri(root, sink.warehouse))
            for sink in flow.sinks
        ),
    )


def on_catalog(
    flow: Flow, catalog: str, *, warehouse: str = "", storage_options: Any = None
) -> Flow:
    """The flow with a catalog wherever it named none; what it names itself stays."""
    options = dict(storage_options or {}) | dict(flow.storage_options)
    if flow.catalog:
        return replace(flow, storage_options=options)
    return replace(
        flow,
        catalog=catalog,
        warehouse=flow.warehouse or warehouse,
        storage_options=options,
    )


def _anchored_source(root: PurePath, source: Source) -> Source:
    if isinstance(source, FileSource):
        return replace(source, path=_uri(root, source.path), sample=_uri(root, source.sample))
    if isinstance(source, TableSource):
        return replace(
            source, catalog=_uri(root, source.catalog), warehouse=_uri(root, source.warehouse)
        )
    return source


def _uri(root: PurePath, text: str) -> str:
    """A local path below `root`; an address with a scheme, or nothing at all, stays as it is."""
    if text.startswith(_SQLITE):
        return _SQLITE + str(root / text.removeprefix(_SQLITE))
    if not text or _SCHEME.match(text):
        return text
    return str(root / text)
