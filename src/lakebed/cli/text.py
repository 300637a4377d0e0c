"""Numbers, times and foreign text as people read them."""

import re
import unicodedata
from datetime import UTC, datetime, timedelta

# Control characters of both sets, marks that turn the direction of text, lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIZE_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
_AGE_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def escape(text: str) -> str:
    """Make text harmless to a terminal: what is not visible is spelled out."""
    return _UNSAFE.sub(_spell, text)


def escape_json(document: str) -> str:
    r"""The same for JSON, where `\u001b` still means the character itself."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def _spell(found: re.Match[str]) -> str:
    code = ord(found[0])
    return _SHORT.get(found[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def count(number: int) -> str:
    """1,234,567."""
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    """1 file, 2 files."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def size(size_bytes: int) -> str:
    """6.1 MB; units of 1,000, as disks are sold."""
    amount = float(size_bytes)
    for unit in _SIZE_UNITS[:-1]:
        if amount < 999.5:
            return (
                f"{amount:.0f} {unit}" if unit == "B" or amount >= 99.95 else f"{amount:.1f} {unit}"
            )
        amount /= 1000
    return f"{amount:,.1f} {_SIZE_UNITS[-1]}"


def iso_time(time_ms: int) -> str:
    """2026-11-18T05:59:12.345Z: for programs; the bare number if no calendar has that day."""
    try:
        moment = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return str(time_ms)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def when(time_ms: int) -> str:
    """2026-11-18 05:59:12 UTC: for people."""
    exact = iso_time(time_ms)
    return f"{exact[:19].replace('T', ' ')} UTC" if exact.endswith("Z") else exact


def age(time_ms: int, now_ms: int) -> str:
    """14 s ago; nothing if the clocks of two machines disagree."""
    passed_ms = now_ms - time_ms
    if passed_ms < 0:
        return ""
    for unit, unit_ms in _AGE_UNITS:
        if passed_ms >= unit_ms:
            return f"{passed_ms // unit_ms} {unit} ago"
    return "just now"


def width(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """Fill with spaces; `right` puts the text at the right edge."""
    space = " " * (cells - width(text))
    return space + text if right else text + space
