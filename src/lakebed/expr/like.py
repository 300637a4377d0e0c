"""LIKE patterns, split into wildcards and plain text once for all who match them."""

from lakebed.errors import PredicateError

WILDCARDS = frozenset("%_")


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
