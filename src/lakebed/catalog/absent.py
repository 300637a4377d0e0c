"""The errors for what a catalog does not have, worded once for all backends."""

from lakebed.errors import AlreadyExistsError, NotFoundError
from lakebed.format.pointer import Pointer


def no_table(name: str) -> NotFoundError:
    """Nothing has that name."""
    return NotFoundError(f"there is no table {name}", table=name)


def no_version(pointer: Pointer, version: int) -> NotFoundError:
    """The version was never made."""
    return NotFoundError(
        f"table {pointer.name} has no version {version}", table=pointer.name, version=version
    )


def no_moment(pointer: Pointer, timestamp_ms: int) -> NotFoundError:
    """The moment is before the first version."""
    return NotFoundError(
        f"table {pointer.name} had no version yet at {timestamp_ms} ms since 1970",
        table=pointer.name,
        timestamp_ms=timestamp_ms,
    )


def name_taken(name: str) -> AlreadyExistsError:
    """Somebody has that name, or the table's id."""
    return AlreadyExistsError(f"there is already a table {name}", table=name)
