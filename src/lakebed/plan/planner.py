"""Three-pass pruning: manifests by their summary, files by their statistics, row groups by Parquet.

    snapshot ─► summaries of the manifests ─► rows of the manifests ─► (the Parquet reader)
                one that cannot match          vectorised over files     row groups, pages
                is never opened

Pruning may keep too much and never too little; `expr.prune` makes the promise, this module only
leads it to the evidence.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.expr.bind import Bound
from lakebed.expr.prune import explain_drop, may_match, must_match
from lakebed.files.evidence import FileEvidence, ManifestEvidence
from lakebed.files.manifest import live
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.metadata import TableMetadata
from lakebed.format.schema import Schema
from lakebed.format.snapshot import ManifestRef, Snapshot
from lakebed.plan.read_plan import Dropped, Part, ReadPlan

_DROPPED_SHOWN_MAX = 10


def make_plan(
    files: MetadataFiles,
    snapshot: Snapshot,
    *,
    schema: Schema,
    where: Bound | None = None,
    where_text: str = "",
) -> ReadPlan:
    """Find the files of a snapshot that may hold rows for which `where` is true."""
    return _Planner(files, snapshot, schema, where).plan(where_text)


class _Planner:
    def __init__(
        self, files: MetadataFiles, snapshot: Snapshot, schema: Schema, where: Bound | None
    ) -> None:
        self._files = files
        self._snapshot = snapshot
        self._metadata: TableMetadata = files.metadata(snapshot.metadata_path)
        self._schema = schema
        self._where = where
        self._names = {field.id: field.name for field in schema.fields}
        self._dropped: list[Dropped] = []

    def plan(self, where_text: str) -> ReadPlan:
        refs = [ref for ref in self._snapshot.manifest_list if ref.file_count]
        kept = self._keep_manifests(refs)
        parts = [part for ref in kept if (part := self._part(ref)) is not None]
        return ReadPlan(
            snapshot=self._snapshot,
            metadata=self._metadata,
            schema=self._schema,
            where=self._where,
            where_text=where_text,
            manifests_total=sum(1 for ref in refs if not ref.is_inline),
            manifests_opened=sum(1 for ref in kept if not ref.is_inline),
            parts=tuple(parts),
            dropped=tuple(self._dropped),
        )

    def _keep_manifests(self, refs: Sequence[ManifestRef]) -> list[ManifestRef]:
        """Pass one: drop manifests whose summary cannot match; the tail is at hand anyway."""
        where = self._where
        if where is None:
            return list(refs)
        keep: dict[int, bool] = {}
        for spec_id in {ref.spec_id for ref in refs if not ref.is_inline}:
            some = [(i, r) for i, r in enumerate(refs) if r.spec_id == spec_id and not r.is_inline]
            evidence = ManifestEvidence(
                [ref for _, ref in some],
                [None] * len(some),
                self._metadata.spec(spec_id),
                self._metadata,
            )
            mask = may_match(where, evidence)
            keep |= {place: bool(may) for (place, _), may in zip(some, mask, strict=True)}
            self._note([(p, ref.path) for p, (_, ref) in enumerate(some)], ~mask, evidence)
        return [ref for place, ref in enumerate(refs) if keep.get(place, True)]

    def _part(self, ref: ManifestRef) -> Part | None:
        """Pass two: drop files whose statistics cannot match."""
        spec = self._metadata.spec(ref.spec_id)
        table = live(self._files.manifest(ref, self._metadata))
        if self._where is None:
            return Part(ref=ref, spec=spec, table=table, certain=np.ones(table.num_rows, bool))
        evidence = FileEvidence(table, spec, self._metadata)
        mask = may_match(self._where, evidence)
        if not mask.all():
            self._note_files(table, ~mask, evidence)
            if not mask.any():
                return None
            table = table.filter(pa.array(mask))
            evidence = FileEvidence(table, spec, self._metadata)
        certain = must_match(self._where, evidence)
        return Part(ref=ref, spec=spec, table=table, certain=certain)

    def _note_files(self, table: Any, gone: Any, evidence: FileEvidence) -> None:
        room = _DROPPED_SHOWN_MAX + 1 - len(self._dropped)
        places = np.flatnonzero(gone)[: max(room, 0)].tolist()
        paths = table.column("path")
        self._note([(place, paths[place].as_py()) for place in places], gone, evidence)

    def _note(
        self, named: Sequence[tuple[int, str]], gone: Any, evidence: FileEvidence | ManifestEvidence
    ) -> None:
        """Keep a few reasons, for `explain`."""
        assert self._where is not None, "without a predicate nothing is dropped"
        for place, path in named:
            if len(self._dropped) > _DROPPED_SHOWN_MAX:
                return
            if gone[place]:
                why = partial(explain_drop, self._where, evidence, place, self._names)
                self._dropped.append(Dropped(path=path, why=why))
