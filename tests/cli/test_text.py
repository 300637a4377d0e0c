"""Text from outside never steers a terminal, and numbers read as people write them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.cli.text import age, escape, iso_time, pad, plural, size, when, width


@given(st.text())
def test_nothing_that_is_escaped_can_steer_a_terminal(text: Any) -> None:
    shown = escape(text)
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in shown)
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2069\u2028")
    shown.encode()


def test_plain_text_is_left_alone() -> None:
    assert escape("plänt.readings 温度 [red]") == "plänt.readings 温度 [red]"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("\x1b[31m", "\\x1b[31m"), ("a\nb\tc", "a\\nb\\tc"), ("\u202e", "\\u202e"), ("\x9b", "\\x9b")],
)
def test_what_is_not_visible_is_spelled_out(text: Any, shown: Any) -> None:
    assert escape(text) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (123_456, "123 KB"),
        (999_499, "999 KB"),
        (999_500, "1.0 MB"),
        (6_100_000, "6.1 MB"),
        (5 * 10**18, "5,000.0 PB"),
    ],
)
def test_a_size_has_two_digits_or_three(number: Any, shown: Any) -> None:
    assert size(number) == shown


def test_times_are_utc_and_survive_absurd_values() -> None:
    assert iso_time(1_763_445_552_345) == "2025-11-18T05:59:12.345Z"
    assert iso_time(-1) == "1969-12-31T23:59:59.999Z"
    assert iso_time(10**18) == str(10**18)
    assert when(1_763_445_552_345) == "2025-11-18 05:59:12 UTC"


def test_an_age_is_one_number_and_silent_when_clocks_disagree() -> None:
    assert age(0, 14_999) == "14 s ago"
    assert age(0, 3_600_000) == "1 h ago"
    assert age(0, 90 * 86_400_000) == "90 d ago"
    assert age(0, 10) == "just now"
    assert age(10, 0) == ""


def test_wide_characters_count_twice_and_accents_not_at_all() -> None:
    assert width("温度") == 4
    assert width("e\u0301") == 1
    assert pad("温", 4) == "温  "
    assert pad("7", 3, right=True) == "  7"


def test_one_is_singular() -> None:
    assert plural(1, "file") == "1 file"
    assert plural(1234, "file") == "1,234 files"
