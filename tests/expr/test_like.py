"""Law: `prefix_end` is the least text, or bytes, above all that begin with a prefix."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.errors import PredicateError
from lakebed.expr.like import like_parts, prefix_end

_TEXT = st.text(st.sampled_from("a\ud7ff\ue000\U0010ffff"), max_size=4)
_BYTES = st.text(st.sampled_from("a\xfe\xff"), max_size=4).map(lambda text: text.encode("latin-1"))


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        ("a", "b"),
        ("ab", "ac"),
        ("\ud7ff", "\ue000"),
        ("a\U0010ffff", "b"),
        ("\U0010ffff", None),
        ("", None),
        (b"a\xff", b"b"),
        (b"\xff\xff", None),
        (b"", None),
    ],
)
def test_end_of_a_prefix_raises_the_last_character_that_can_be(prefix: Any, end: Any) -> None:
    assert prefix_end(prefix) == end


@given(_TEXT, _TEXT)
@settings(max_examples=100, derandomize=True, database=None)
def test_text_is_between_a_prefix_and_its_end_if_and_only_if_it_begins_so(
    prefix: str, text: str
) -> None:
    end = prefix_end(prefix)
    assert (prefix <= text and (end is None or text < end)) is text.startswith(prefix)


@given(_BYTES, _BYTES)
@settings(max_examples=100, derandomize=True, database=None)
def test_bytes_are_between_a_prefix_and_its_end_if_and_only_if_they_begin_so(
    prefix: bytes, data: bytes
) -> None:
    end = prefix_end(prefix)
    assert (prefix <= data and (end is None or data < end)) is data.startswith(prefix)


@pytest.mark.parametrize(
    ("pattern", "escape", "parts"),
    [
        ("", None, ()),
        ("abc", None, ("=abc",)),
        ("a%_b", None, ("=a", "%", "_", "=b")),
        ("a!%b%", "!", ("=a%b", "%")),
        ("!!", "!", ("=!",)),
        ("%%", "%", ("=%",)),
        ("a\\%", None, ("=a\\", "%")),
    ],
)
def test_pattern_is_split_into_wildcards_and_text(
    pattern: str, escape: str | None, parts: tuple[str, ...]
) -> None:
    assert like_parts(pattern, escape) == parts


@pytest.mark.parametrize("pattern", ["a!", "a!b", "!"])
def test_escape_before_what_needs_none_is_refused(pattern: str) -> None:
    with pytest.raises(PredicateError, match="escapes only"):
        like_parts(pattern, "!")
