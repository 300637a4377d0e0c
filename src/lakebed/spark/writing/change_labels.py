"""What became of a row in a commit: inserted, deleted, or updated from one form to another.

A commit says which rows it took out and which it put in. Whether the two belong together only the
writer knows, so it leaves a note in the commit's properties:

    change.kind = update          each row that went is the old form of one that came
    change.keys = ["id", "site"]  rows with equal keys are two forms of one; others came or went

Without a note they were deleted and inserted.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

KIND = "change.kind"
KEYS = "change.keys"
UPDATE = "update"

INSERT, DELETE = "insert", "delete"
PREIMAGE, POSTIMAGE = "update_preimage", "update_postimage"

_PLACE = "lakebed_place"


def update_note() -> dict[str, str]:
    """The properties of a commit in which every row that went came back changed."""
    return {KIND: UPDATE}


def key_note(keys: Sequence[str]) -> dict[str, str]:
    """The properties of a commit whose rows are the same ones if they agree in these columns."""
    return {KEYS: json.dumps(list(keys))}


def labelled(added: Any, removed: Any, note: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """The rows of a commit by what became of them: those that went first."""
    if note.get(KIND) == UPDATE:
        yield PREIMAGE, removed
        yield POSTIMAGE, added
        return
    keys = _keys(note, added.column_names)
    if not keys:
        yield DELETE, removed
        yield INSERT, added
        return
    went, came = _has_partner(removed, added, keys), _has_partner(added, removed, keys)
    yield PREIMAGE, removed.filter(went)
    yield POSTIMAGE, added.filter(came)
    yield DELETE, removed.filter(pc.invert(went))
    yield INSERT, added.filter(pc.invert(came))


def _keys(note: Mapping[str, str], columns: Sequence[str]) -> list[str]:
    """The keys, if the rows have all of them."""
    keys = json.loads(note.get(KEYS, "[]"))
    return keys if set(keys) <= set(columns) else []


def _has_partner(mine: Any, theirs: Any, keys: list[str]) -> Any:
    """A mask of my rows whose key is among theirs; a null key has no partner."""
    numbered = mine.select(keys).append_column(_PLACE, pa.array(range(mine.num_rows), pa.int64()))
    found = numbered.join(theirs.select(keys), keys, join_type="left semi")
    places = pa.array(range(mine.num_rows), pa.int64())
    return pc.is_in(places, value_set=found.column(_PLACE).combine_chunks())


__all__ = [
    "DELETE",
    "INSERT",
    "KEYS",
    "KIND",
    "POSTIMAGE",
    "PREIMAGE",
    "key_note",
    "labelled",
    "update_note",
]
