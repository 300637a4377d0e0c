"""What the machine's rules draw: columns, rows, predicates, partitions and troubles."""

from collections.abc import Mapping
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from tests.property.kinds import KINDS, Constant
from tests.property.model import Bag, Parts, Version, bag
from tests.property.predicates import Column, Compare, Drawing, Predicate
from tests.property.recipes import arrow_rows
from tests.property.worlds import Trouble

TABLES = ("m.a", "m.b")
NAMES = ("ts", "id", "v", "w", "a b", "x")
_DAY = 86_400_000_000
_VALUES: dict[str, list[Any]] = {
    "int": [-3, 0, 1, 2, 5],
    "long": [-3, 0, 1, 2, 1 << 40],
    "double": [-1.5, 0.5, 1.0, 2.0, 1e9],
    "string": ["", "a", "ab", "b", "é"],
    "timestamptz": [-1, 0, 1, _DAY - 1, _DAY, 40 * _DAY],
}
_TRANSFORMS = {
    "int": [("identity", 0), ("bucket", 3), ("truncate", 2)],
    "long": [("identity", 0), ("bucket", 3), ("truncate", 2)],
    "double": [],
    "string": [("identity", 0), ("bucket", 3), ("truncate", 1)],
    "timestamptz": [("year", 0), ("month", 0), ("day", 0), ("hour", 0)],
}

names = st.sampled_from(TABLES)
seeds = st.integers(0, 999)
points = st.floats(0, 1, exclude_max=True)
_planned = st.one_of(
    st.builds(Trouble, st.just("crash"), st.integers(0, 3), st.booleans()),
    st.builds(Trouble, st.just("lost"), st.integers(0, 1), st.booleans()),
    st.builds(Trouble, st.just("deaf"), st.just(0), st.booleans()),
    st.builds(Trouble, st.just("refused"), st.integers(0, 2), st.booleans()),
)
troubles = st.one_of(st.none(), st.none(), _planned)


def first_columns(chance: Random) -> tuple[Column, ...]:
    """The columns of a new table."""
    count = chance.randrange(1, 4)
    kinds = ["timestamptz", "string", "int", "long", "double"]
    return tuple(
        Column(place + 1, NAMES[place], KINDS[chance.choice(kinds)]) for place in range(count)
    )


def new_column(version: Version, key: int, chance: Random) -> Column | None:
    """A column to add; None if all names are taken."""
    taken = {column.name for column in version.columns}
    free = [name for name in NAMES if name not in taken]
    if not free:
        return None
    return Column(key, chance.choice(free), KINDS[chance.choice(list(_VALUES))])


def parts_of(version: Version, chance: Random) -> Parts:
    """Partitions by columns that can split rows."""
    parts: dict[tuple[int, str], tuple[str, int, int]] = {}
    for column in version.columns:
        choices = _TRANSFORMS[column.kind.name]
        if choices and chance.random() < 0.4:
            transform, width = chance.choice(choices)
            parts[column.key, transform] = transform, column.key, width
    return tuple(parts.values())


def spec_texts(parts: Parts, version: Version) -> list[str]:
    """Partitions as users write them."""
    texts = []
    for transform, key, width in parts:
        name = version.column(key).name
        inside = f"{width}, {name}" if width else name
        texts.append(name if transform == "identity" else f"{transform}({inside})")
    return texts


def rows_of(version: Version, chance: Random) -> list[dict[int, Any]]:
    """A few rows, some of them equal; now and then none."""
    count = chance.choice([0, 1, 1, 2, 3, 6])
    return [
        {
            column.key: None if chance.random() < 0.15 else value_of(column, chance)
            for column in version.columns
        }
        for _ in range(count)
    ]


def value_of(column: Column, chance: Random) -> Any:
    """A value of a column."""
    return chance.choice(_VALUES[column.kind.name])


def predicate_of(version: Version, chance: Random) -> Predicate:
    """A predicate over the columns there are."""
    values = {column.key: _VALUES[column.kind.name] for column in version.columns}
    return Drawing(chance, version.columns, values).predicate(depth=1)


def equality_of(column: Column, value: Any) -> Compare:
    """`column = value`, for numbers and text."""
    text = f"'{value}'" if column.kind.family == "text" else repr(value)
    return Compare(column.key, "=", Constant(text, value))


def arrow_of(rows: list[dict[int, Any]], columns: tuple[Column, ...]) -> pa.Table:
    """Rows as an Arrow table with these columns."""
    return arrow_rows(tuple(rows), {column.key: column for column in columns})


def bag_of(table: pa.Table, columns: tuple[Column, ...]) -> Bag:
    """An Arrow table as a bag of rows by field id; its types have to be the columns'."""
    expected = [(column.name, column.kind.arrow) for column in columns]
    found = [(field.name, field.type) for field in table.schema]
    assert found == expected, f"{found} where {expected} belong"
    cells: Mapping[int, list[Any]] = {
        column.key: _plain(table.column(column.name)) for column in columns
    }
    return bag({key: cells[key][place] for key in cells} for place in range(table.num_rows))


def _plain(column: pa.ChunkedArray) -> list[Any]:
    return (column.cast(pa.int64()) if pa.types.is_temporal(column.type) else column).to_pylist()
