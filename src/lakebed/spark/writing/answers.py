"""What a Python worker answers: the files it has stored, or what was wrong, as plain data.

A message is MessagePack, never a pickle: reading one runs nobody's code. Bounds and partition
values take their storage form again when they are read.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from lakebed import errors
from lakebed.errors import LakebedError
from lakebed.format.datafile import ColumnStats, DataFile
from lakebed.format.partition import PartitionSpec, result_type
from lakebed.format.schema import Schema
from lakebed.format.types import Primitive
from lakebed.format.values import storage_value


class _Problem(msgspec.Struct, array_like=True):
    kind: str
    message: str
    hint: str
    problems: list[str]


class _Answer(msgspec.Struct, array_like=True):
    files: list[DataFile] = []
    problem: _Problem | None = None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Answer)


def files_answer(files: Sequence[DataFile]) -> bytes:
    """Say which files were stored."""
    return _ENCODER.encode(_Answer(files=list(files)))


def problem_answer(error: LakebedError) -> bytes:
    """Say what was wrong."""
    problems = error.fields.get("problems")
    texts = [str(each) for each in problems] if isinstance(problems, list) else []
    problem = _Problem(type(error).__name__, error.message, error.hint, texts)
    return _ENCODER.encode(_Answer(problem=problem))


def answered_files(answer: bytes, schema: Schema, spec: PartitionSpec) -> list[DataFile]:
    """The files of an answer; raises the problem if it tells of one."""
    found = _DECODER.decode(answer)
    if found.problem is not None:
        raise _error(found.problem)
    return [_restored(file, schema, spec) for file in found.files]


def _error(problem: _Problem) -> LakebedError:
    kind = getattr(errors, problem.kind) if problem.kind in errors.__all__ else LakebedError
    fields: dict[str, Any] = {"problems": problem.problems} if problem.problems else {}
    raised: LakebedError = kind(problem.message, hint=problem.hint, **fields)
    return raised


def _restored(file: DataFile, schema: Schema, spec: PartitionSpec) -> DataFile:
    values = []
    for field, value in zip(spec.fields, file.partition, strict=True):
        source = schema.by_id.get(field.source_id)
        kind = source.type if source is not None else None
        if isinstance(kind, Primitive):
            values.append(storage_value(value, result_type(field, kind)))
        else:
            values.append(None)  # The column was dropped.
    stats = {}
    for number, each in file.stats.items():
        kind_of = schema.by_id[number].type
        assert isinstance(kind_of, Primitive), "only plain columns have statistics"
        stats[number] = ColumnStats(
            each.null_count,
            each.nan_count,
            storage_value(each.lower, kind_of),
            storage_value(each.upper, kind_of),
        )
    return msgspec.structs.replace(file, partition=tuple(values), stats=stats)


__all__ = ["answered_files", "files_answer", "problem_answer"]
