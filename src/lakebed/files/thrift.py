"""Thrift's compact protocol, read with a bound on every step: for bytes that may be hostile.

The parts of it that Parquet footers and page headers are made of:

    field    one byte: distance from the field before, kind of value; then the value
    number   seven bits a byte, lowest first; signed ones in zigzag
    list     one byte: length, kind of its elements; then the elements
"""

from collections.abc import Callable, Iterator

from lakebed.errors import LakebedError

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE = 1, 2, 3, 4, 5, 6, 7
BINARY, LIST, SET, MAP, STRUCT, UUID = 8, 9, 10, 11, 12, 13

_FIXED_SIZES = {BYTE: 1, DOUBLE: 8, UUID: 16}
_STEP_COUNT_MAX = 3_000_000  # fifty thousand column chunks; a few seconds
_DEPTH_MAX = 16
_VARINT_LENGTH_MAX = 10


class Cursor:
    """A place in some bytes that moves over one value after the other.

    `damaged` makes the error to raise of what is wrong. An IndexError says that the bytes end
    too early; whoever made the cursor turns it into an error of theirs.
    """

    def __init__(self, data: bytes, damaged: Callable[[str], LakebedError], at: int = 0) -> None:
        self.data = data
        self.at = at
        self._damaged = damaged
        self._steps = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """The number and kind of each field of a struct; the caller reads or skips its value."""
        number = 0
        while True:
            self._count()
            head = self.data[self.at]
            self.at += 1
            if not head & 0x0F:
                return
            number = number + (head >> 4) if head >> 4 else self.signed()
            yield number, head & 0x0F

    def structs(self) -> range:
        """One step for each struct of a list; the caller reads them."""
        length, kind = self._list_head()
        if length and kind != STRUCT:
            raise self._damaged("a list does not hold what it should")
        return range(length)

    def binary(self) -> bytes:
        """Read text or bytes."""
        start = self._skip_binary()
        return self.data[start : self.at]

    def _skip_binary(self) -> int:
        length = self._varint()
        start = self.at
        self.at += length
        if self.at > len(self.data):
            raise self._damaged("a value is longer than all there is")
        return start

    def signed(self) -> int:
        """Read a number."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def skip(self, kind: int, depth: int = 0) -> None:
        """Pass over a value of any kind."""
        self._count()
        if depth > _DEPTH_MAX:
            raise self._damaged("it is nested too deep")
        if kind in (TRUE, FALSE):
            return
        if kind in _FIXED_SIZES:
            self.at += _FIXED_SIZES[kind]
        elif kind < DOUBLE:
            self._varint()
        elif kind == BINARY:
            self._skip_binary()
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind in (LIST, SET):
            self.skip_list(depth)
        elif kind == MAP:
            self._skip_map(depth)
        else:
            raise self._damaged(f"it holds a value of the unknown kind {kind}")

    def skip_list(self, depth: int = 0) -> int:
        """Pass over a list; gives its length."""
        length, inner = self._list_head()
        for _ in range(length):
            self._skip_element(inner, depth)
        return length

    def _list_head(self) -> tuple[int, int]:
        head = self.data[self.at]
        self.at += 1
        length = head >> 4
        if length == 0x0F:
            length = self._varint()
        if length > len(self.data) - self.at:
            raise self._damaged("a list is longer than all there is")
        return length, head & 0x0F

    def _skip_map(self, depth: int) -> None:
        length = self._varint()
        if not length:
            return
        kinds = self.data[self.at]
        self.at += 1
        for _ in range(length):
            self._skip_element(kinds >> 4, depth)
            self._skip_element(kinds & 0x0F, depth)

    def _skip_element(self, kind: int, depth: int) -> None:
        if kind in (TRUE, FALSE):
            self.at += 1  # unlike a field's, an element's truth is not in its kind
            self._count()
        else:
            self.skip(kind, depth + 1)

    def _varint(self) -> int:
        value = self.data[self.at]
        self.at += 1
        if value < 0x80:
            return value
        value &= 0x7F
        for place in range(1, _VARINT_LENGTH_MAX):
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value
        raise self._damaged("a number is too long")

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _STEP_COUNT_MAX:
            raise self._damaged(f"it has more than {_STEP_COUNT_MAX} values")
