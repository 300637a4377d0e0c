"""Column types: their names on disk, and how a value of each is held in metadata.

Metadata holds a value in *storage form*: the smallest plain Python value that keeps it exactly.

    boolean           bool             string      str
    int, long         int              binary      bytes
    float, double     float            fixed[n]    bytes
    decimal(p,s)      Decimal          date        int, days since 1970
    time              int, µs          timestamp   int, µs (ns for the _ns types) since 1970, UTC
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from lakebed.errors import BadMetadataError, LimitExceededError
from lakebed.limits import TYPE_DEPTH_MAX

DECIMAL_PRECISION_MAX = 38


class Kind(StrEnum):
    """The primitive types; the values are on disk and never change."""

    BOOLEAN = "boolean"
    INT = "int"  # 32 bits
    LONG = "long"  # 64 bits
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"  # a wall clock's reading, no zone
    TIMESTAMPTZ = "timestamptz"  # an instant
    TIMESTAMP_NS = "timestamp_ns"
    TIMESTAMPTZ_NS = "timestamptz_ns"
    STRING = "string"
    BINARY = "binary"
    FIXED = "fixed"


TIMESTAMPS = frozenset({Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIMESTAMP_NS, Kind.TIMESTAMPTZ_NS})
INSTANTS = frozenset({Kind.TIMESTAMPTZ, Kind.TIMESTAMPTZ_NS})
NANOSECONDS = frozenset({Kind.TIMESTAMP_NS, Kind.TIMESTAMPTZ_NS})
FLOATS = frozenset({Kind.FLOAT, Kind.DOUBLE})
INTEGERS = frozenset({Kind.INT, Kind.LONG})
BYTES = frozenset({Kind.BINARY, Kind.FIXED})


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parts; `precision`, `scale` for decimals, `length` for fixed."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    length: int = 0

    def __post_init__(self) -> None:
        if self.kind is Kind.DECIMAL and not (
            0 < self.precision <= DECIMAL_PRECISION_MAX and 0 <= self.scale <= self.precision
        ):
            raise BadMetadataError(f"decimal({self.precision},{self.scale}) is not a type")
        if self.kind is Kind.FIXED and not 0 < self.length < 1 << 31:
            raise BadMetadataError(f"fixed[{self.length}] is not a type")

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.precision},{self.scale})"
        if self.kind is Kind.FIXED:
            return f"fixed[{self.length}]"
        return self.kind.value


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a part of a nested one. The id is for ever; the name can change."""

    id: int
    name: str
    type: "Type"
    required: bool = False
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Struct:
    """A record."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{f.name}: {f.type}' for f in self.fields)}>"


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; its element is a field so that it has an id."""

    element: Field

    def __str__(self) -> str:
        return f"list<{self.element.type}>"


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map; key and value are fields so that they have ids."""

    key: Field
    value: Field

    def __str__(self) -> str:
        return f"map<{self.key.type}, {self.value.type}>"


Type = Primitive | Struct | ListOf | MapOf

_WITH_PARTS = re.compile(r"(?:decimal\((\d{1,3}), ?(\d{1,3})\)|fixed\[(\d{1,10})\])", re.ASCII)

# Each step keeps every value exactly; timestamps and strings never change type.
_WIDENINGS = {
    (Kind.INT, Kind.LONG),
    (Kind.FLOAT, Kind.DOUBLE),
    (Kind.INT, Kind.DOUBLE),
}


def parse_primitive(text: str) -> Primitive:
    """Read a type's name, as found in metadata or given by a user."""
    if match := _WITH_PARTS.fullmatch(text):
        if match[3]:
            return Primitive(Kind.FIXED, length=int(match[3]))
        return Primitive(Kind.DECIMAL, precision=int(match[1]), scale=int(match[2]))
    if text in Kind.__members__.values() and text not in ("decimal", "fixed"):
        return Primitive(Kind(text))
    raise BadMetadataError(
        f"{text!r} is not a type", hint=f"Known types: {', '.join(k.value for k in Kind)}"
    )


def can_widen(old: Type, new: Type) -> bool:
    """Tell whether every value of `old` is exactly a value of `new`."""
    if old == new:
        return True
    if not isinstance(old, Primitive) or not isinstance(new, Primitive):
        return False
    if old.kind is Kind.DECIMAL and new.kind is Kind.DECIMAL:
        return new.scale == old.scale and new.precision > old.precision
    return (old.kind, new.kind) in _WIDENINGS


def parts(kind: Type) -> tuple[Field, ...]:
    """The fields directly inside a nested type."""
    match kind:
        case Struct(fields=fields):
            return fields
        case ListOf(element=element):
            return (element,)
        case MapOf(key=key, value=value):
            return (key, value)
        case _:
            return ()


def walk(fields: tuple[Field, ...], depth: int = 0) -> list[Field]:
    """All fields, nested ones included, parents first."""
    if depth > TYPE_DEPTH_MAX:
        raise LimitExceededError(f"a type is nested more than {TYPE_DEPTH_MAX} deep")
    found: list[Field] = []
    for field in fields:
        found.append(field)
        found.extend(walk(parts(field.type), depth + 1))
    return found
