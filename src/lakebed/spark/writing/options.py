"""How a frame is to be written: what `write()` takes as arguments, and Spark as options.

    option                    argument              meaning
    replaceWhere              replace_where         overwrite only the rows that match
    partitionOverwriteMode    partition_overwrite   dynamic: overwrite the partitions that are hit
    mergeSchema               merge_schema          add columns that the table lacks
    txnAppId, txnVersion      txn                   exactly once: a repeat writes nothing
    userMetadata              properties            text that stays with the commit
    partitionBy               partition_by          how a table that is made here is split
    via                       via                   driver or executors; size decides if not given

The names of the options are Delta's where it has one; upper and lower case are the same.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from lakebed.errors import RequestError

MODES = ("append", "overwrite", "error", "ignore")
VIAS = ("driver", "executors")
USER_METADATA = "userMetadata"

_MODE_NAMES = {"errorifexists": "error", "default": "error"}
_OVERWRITES = ("static", "dynamic")
_NAMES = (
    "replaceWhere",
    "partitionOverwriteMode",
    "mergeSchema",
    "txnAppId",
    "txnVersion",
    USER_METADATA,
    "partitionBy",
    "via",
)
_OUTSIDE_BRACKETS = re.compile(r",(?![^(]*\))")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """A checked way to write; contradictions are refused when it is made."""

    mode: str = "append"
    partition_by: tuple[str, ...] | None = None
    replace_where: object = None
    partition_overwrite: str | None = None  # None: as the session says
    merge_schema: bool = False
    txn: tuple[str, int] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    via: str | None = None

    def __post_init__(self) -> None:
        _check_choice("mode", self.mode, MODES)
        if self.via is not None:
            _check_choice("via", self.via, VIAS)
        if self.partition_overwrite is not None:
            _check_choice("partitionOverwriteMode", self.partition_overwrite, _OVERWRITES)
        for name, value in (
            ("replaceWhere", self.replace_where),
            ("partitionOverwriteMode", self.partition_overwrite),
        ):
            if value is not None and self.mode != "overwrite":
                raise RequestError(
                    f"{name} is for overwriting, and the mode is {self.mode!r}",
                    hint='Use mode="overwrite", or leave it out',
                )
        if self.replace_where is not None and self.partition_overwrite == "dynamic":
            raise RequestError(
                "replaceWhere and partitionOverwriteMode=dynamic both say what to replace",
                hint="Use one of them",
            )

    @classmethod
    def of(
        cls, options: Mapping[str, str], *, mode: str = "append", known: Iterable[str] = ()
    ) -> "WriteOptions":
        """Read Spark's options; `known` are others that are somebody else's to read.

        Raises:
            RequestError: an option is unknown, is not what it should be, or contradicts another.
        """
        given = _spelt(options, known)
        metadata = given.get(USER_METADATA)
        parts = given.get("partitionBy")
        overwrite = given.get("partitionOverwriteMode")
        return cls.made(
            mode=mode,
            partition_by=None if parts is None else _OUTSIDE_BRACKETS.split(parts),
            replace_where=given.get("replaceWhere"),
            partition_overwrite=None if overwrite is None else overwrite.lower(),
            merge_schema=_truth("mergeSchema", given.get("mergeSchema", "false")),
            txn=_token(given),
            properties={} if metadata is None else {USER_METADATA: metadata},
            via=given.get("via"),
        )

    @classmethod
    def made(
        cls, *, mode: str, partition_by: Sequence[str] | str | None, **others: Any
    ) -> "WriteOptions":
        """Options from what users write: modes have several names, and one column may be text."""
        if isinstance(partition_by, str):
            partition_by = [partition_by]
        return cls(
            mode=_MODE_NAMES.get(str(mode).lower(), str(mode).lower()),
            partition_by=None if partition_by is None else tuple(p.strip() for p in partition_by),
            **others,
        )


def _spelt(options: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    """The options under the names above; those of `known` are left out."""
    ours = {name.lower(): name for name in _NAMES}
    others = {name.lower() for name in known}
    found = {}
    for key, value in options.items():
        name = ours.get(key.lower())
        if name is not None:
            found[name] = str(value)
        elif key.lower() not in others:
            close = get_close_matches(key.lower(), [*ours, *others], n=1)
            names = {other.lower(): other for other in known} | ours
            hint = f"Did you mean {names[close[0]]}?" if close else f"There are {', '.join(_NAMES)}"
            raise RequestError(f"there is no write option {key!r}", hint=hint, option=key)
    return found


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value in choices:
        return
    close = get_close_matches(str(value).lower(), choices, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"Use one of: {', '.join(choices)}"
    raise RequestError(f"{name} is {value!r}", hint=hint, option=name)


def _truth(name: str, text: str) -> bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise RequestError(f"{name} is {text!r}", hint="Use true or false", option=name)


def _token(given: Mapping[str, str]) -> tuple[str, int] | None:
    app, version = given.get("txnAppId"), given.get("txnVersion")
    if app is None and version is None:
        return None
    if app is None or version is None:
        missing = "txnVersion" if version is None else "txnAppId"
        raise RequestError(
            f"{missing} is missing", hint="txnAppId and txnVersion go together", option=missing
        )
    try:
        return app, int(version)
    except ValueError as error:
        raise RequestError(
            f"txnVersion is {version!r}, which is not a whole number", option="txnVersion"
        ) from error


__all__ = ["MODES", "USER_METADATA", "VIAS", "WriteOptions"]
