"""Ways to make a snapshot or a definition hostile; each has sound checksums unless it says so."""

import json
import os
import shutil
from collections.abc import Callable

from tests.hostile.site import Document, Site, body_of, forge_text

from lakebed.limits import JSON_SIZE_BYTES_MAX

Damage = Callable[[Site], object]

ELSEWHERE = {
    "above": "../../outside/secret",
    "absolute": "/etc/passwd",
    "a file URI": "file:///etc/passwd",
    "another scheme": "s3://bucket/secret",
    "a hidden step": "data/%2e%2e/%2e%2e/%2e%2e/outside/secret",
    "a backslash": "..\\..\\outside\\secret",
}


def _set(key: str, value: object) -> Damage:
    return lambda site: site.forge_snapshot(lambda body: body.update({key: value}))


def _set_definition(key: str, value: object) -> Damage:
    return lambda site: site.forge_definition(lambda body: body.update({key: value}))


def _field(**changes: object) -> Damage:
    """Change the second column of the newest schema."""
    return lambda site: site.forge_definition(
        lambda body: body["schemas"][-1]["fields"][1].update(changes)
    )


def _spec_field(**changes: object) -> Damage:
    return lambda site: site.forge_definition(
        lambda body: body["specs"][0]["fields"][0].update(changes)
    )


def _nested(body: Document, key: str, inside: str) -> str:
    """The text of a document in which one key has a value of our own."""
    body[key] = "\0"
    return json.dumps(body, separators=(",", ":")).replace(json.dumps("\0"), inside)


def _bomb(key: str, inside: str) -> Damage:
    def damage(site: Site) -> None:
        path = site.snapshot()
        forge_text(path, _nested(body_of(path), key, inside))

    return damage


def _definition_bomb(key: str, inside: str) -> Damage:
    def damage(site: Site) -> None:
        path = site.definition()
        forge_text(path, _nested(body_of(path), key, inside))

    return damage


def _grow(site: Site) -> None:
    os.truncate(site.snapshot(), JSON_SIZE_BYTES_MAX + 1)


def _grow_definition(site: Site) -> None:
    os.truncate(site.definition(), JSON_SIZE_BYTES_MAX + 1)


def _halve(site: Site) -> None:
    os.truncate(site.snapshot(), site.snapshot().stat().st_size // 2)


def _flip(site: Site) -> None:
    data = bytearray(site.snapshot().read_bytes())
    data[len(data) // 2] ^= 1
    site.snapshot().write_bytes(data)


def _other_table(site: Site) -> None:
    (theirs,) = (site.other / "metadata").glob(f"snap-{6:020d}*.json")
    shutil.copyfile(theirs, site.snapshot())


def _other_definition(site: Site) -> None:
    theirs = next((site.other / "metadata").glob("table-*.json"))
    shutil.copyfile(theirs, site.definition())


_WIDE = "[true," + "[" + "[]," * (16 << 20) + "[]]]"
_STATS_BOMB = '{"1":[0,null,[' + "[]," * (16 << 20) + "[]]]}"
_DEEP = "[" * 200_000 + "]" * 200_000
_REF = '{"spec_id":0,"written_version":0,"file_count":0,"row_count":0,"data_size_bytes":0'

SNAPSHOT: dict[str, Damage] = {
    "empty": lambda site: os.truncate(site.snapshot(), 0),
    "cut in half": _halve,
    "one bit flipped": _flip,
    "not JSON": lambda site: forge_text(site.snapshot(), '{"format_version":1,'),
    "no object": lambda site: forge_text(site.snapshot(), "[]"),
    "larger than the limit": _grow,
    "missing": lambda site: site.snapshot().unlink(),
    "of the future": _set("format_version", 2),
    "of no version": _set("format_version", 0),
    "of another table": _other_table,
    "an older version": lambda site: shutil.copyfile(site.snapshot(5), site.snapshot()),
    "nested deeply": _bomb("parameters", _DEEP),
    "a wide bound": _bomb(
        "manifest_list", f'[{_REF},"path":"metadata/m.parquet","partitions":[{_WIDE}]}}]'
    ),
    "wide statistics": _bomb(
        "manifest_list", f'[{_REF},"path":"metadata/m.parquet","stats":{_STATS_BOMB}}}]'
    ),
    "a wide file": _bomb(
        "manifest_list",
        f'[{_REF},"entries":[{{"file":{{"path":"data/x","row_count":0,"size_bytes":0,'
        f'"partition":[{_WIDE}]}},"added_version":0}}]}}]',
    ),
    "very many manifests": _bomb("manifest_list", "[" + (_REF + "},") * 60_000 + _REF + "}]"),
    "an unknown operation": _set("operation", "explode"),
    "a negative time": _set("timestamp_ms", -1),
    "a schema that is not there": _set("schema_id", 99),
    "a partition spec that is not there": _set("spec_id", 99),
    "more parents than one": _set("parent_id", 1),
    "a huge number": _set("version", 1 << 70),
    "no parent": _set("parent_id", None),
    "text for a number": _set("version", "6"),
    "a list for a definition": _set("metadata_path", ["metadata"]),
    "no such definition": _set("metadata_path", "metadata/table-0.json"),
    "itself as definition": lambda site: site.forge_snapshot(
        lambda body: body.update(metadata_path=f"metadata/{site.snapshot().name}")
    ),
    **{
        f"definition {where}": _set("metadata_path", f"{path}.json")
        for where, path in ELSEWHERE.items()
    },
}

# Of these, only what goes back in history may notice.
HISTORY: dict[str, Damage] = {
    "parent is itself": lambda site: site.forge_snapshot(
        lambda body: body.update(parent_path=f"metadata/{site.snapshot().name}")
    ),
    "parents in a circle": lambda site: site.forge_snapshot(
        lambda body: body.update(parent_path=f"metadata/{site.snapshot().name}"), version=5
    ),
    "parent missing": lambda site: site.snapshot(5).unlink(),
    "parent is the first": lambda site: site.forge_snapshot(
        lambda body: body.update(parent_path=f"metadata/{site.snapshot(0).name}")
    ),
    "parent cut in half": lambda site: os.truncate(site.snapshot(5), 99),
}

DEFINITION: dict[str, Damage] = {
    "empty": lambda site: os.truncate(site.definition(), 0),
    "cut in half": lambda site: os.truncate(
        site.definition(), site.definition().stat().st_size // 2
    ),
    "larger than the limit": _grow_definition,
    "missing": lambda site: site.definition().unlink(),
    "of the future": _set_definition("format_version", 2),
    "of another table": _other_definition,
    "no schema": _set_definition("schemas", []),
    "no partition spec": _set_definition("specs", []),
    "two columns of one field id": _field(id=1),
    "two columns of one name": _field(name="n"),
    "a column of no name": _field(name=""),
    "an unknown type": _field(type="quaternion"),
    "a type of another kind": _field(type=7),
    "an impossible decimal": _field(type="decimal(99,3)"),
    "a type that changed": _field(type="string"),
    "a field id of zero": _field(id=0),
    "a huge field id": _field(id=1 << 40),
    "a struct of nothing": _field(type={"struct": 7}),
    "a field id above the last": _set_definition("last_field_id", 1),
    "an unknown transform": _spec_field(transform="century"),
    "a transform of no width": _spec_field(transform="bucket", width=0),
    "a transform of a column that is not there": _spec_field(source_id=77),
    "a tag of no version": _set_definition("tags", {"good": -1}),
    "very many tags": _set_definition("tags", {f"t{n}": 0 for n in range(20_000)}),
    "nested deeply": _definition_bomb("tags", _DEEP),
    "a type nested deeply": _definition_bomb(
        "schemas",
        '[{"id":0,"fields":[{"id":1,"name":"n","type":'
        + '{"list":{"id":2,"name":"element","type":' * 30
        + '"long"'
        + "}}" * 30
        + "}]}]",
    ),
    "a wide type": _definition_bomb(
        "schemas", '[{"id":0,"fields":[{"id":1,"name":"n","type":' + _WIDE + "}]}]"
    ),
}
