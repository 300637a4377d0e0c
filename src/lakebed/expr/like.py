"""LIKE patterns, split into wildcards and plain text once for all who match them."""

from typing import TypeVar

from lakebed.errors import PredicateError

WILDCARDS = frozenset("%_")
_LAST_CHARACTER = chr(0x10FFFF)
_SURROGATE_FIRST, _AFTER_SURROGATES = 0xD800, 0xE000

T = TypeVar("T", str, bytes)


def like_parts(pattern: str, escape: str | None) -> tuple[str, ...]:
    """Split a pattern: `%` and `_` stand alone as wildcards, plain text comes as `=text`."""
    found: list[str] = []
    text: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if escape is not None and character == escape:
            escaped = next(characters, "")
            if escaped not in (*WILDCARDS, escape):
                raise PredicateError(
                    f"{escape!r} in a LIKE pattern escapes only %, _ and itself",
                    hint=f"Write {escape + escape!r} for the character itself",
                )
            text.append(escaped)
        elif character in WILDCARDS:
            if text:
                found.append("=" + "".join(text))
                text.clear()
            found.append(character)
        else:
            text.append(character)
    return (*found, "=" + "".join(text)) if text else tuple(found)


def prefix_end(prefix: T) -> T | None:
    """The least text or bytes above all that begin with `prefix`; None if nothing is above."""
    if isinstance(prefix, bytes):
        start = prefix.rstrip(b"\xff")
        return start[:-1] + bytes([start[-1] + 1]) if start else None
    kept = prefix.rstrip(_LAST_CHARACTER)
    if not kept:
        return None
    code = ord(kept[-1]) + 1
    # Surrogates are no characters: nothing stands between U+D7FF and U+E000.
    return kept[:-1] + chr(_AFTER_SURROGATES if code == _SURROGATE_FIRST else code)
