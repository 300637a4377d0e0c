"""The smallest and the greatest value of a column, as far as metadata alone tells them."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.files.evidence import FileEvidence
from lakebed.files.manifest import to_entries
from lakebed.format.datafile import DataFile
from lakebed.format.types import BYTES, Field, Kind, Primitive
from lakebed.plan.read_plan import ReadPlan


def extreme_from_metadata(
    plan: ReadPlan, field: Field, which: str
) -> tuple[Any | None, list[DataFile]]:
    """The extreme over files whose bounds are exact, and the files that have to be read.

    Bounds are exact where every row of the file counts and nothing was cut: text and bytes may
    have been, by us or by another writer of Parquet, so they are always read.
    """
    kind = field.type
    is_exact = isinstance(kind, Primitive) and kind.kind not in BYTES | {Kind.STRING}
    found: list[Any] = []
    unread: list[DataFile] = []
    for part in plan.parts:
        known = pa.array([False] * part.table.num_rows)
        if is_exact:
            evidence = FileEvidence(part.table, part.spec, plan.metadata)
            bounds = evidence.lower(field.id) if which == "min" else evidence.upper(field.id)
            if bounds is not None:
                known = pc.and_(bounds.is_valid(), pa.array(part.certain))
                extreme = pc.min_max(bounds.filter(known))[which]
                found += [extreme] if extreme.is_valid else []
        rest = part.table.filter(pc.invert(known))
        unread += [entry.file for entry in to_entries(rest, part.spec)]
    if not found:
        return None, unread
    both = pa.chunked_array([pa.repeat(scalar, 1) for scalar in found])
    return pc.min_max(both)[which], unread
