"""A length of time is read in any usual unit, and written so that it is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.errors import RequestError
from lakebed.flow.durations import duration_text, parse_duration


@given(st.integers(0, 10**12 - 1))
def test_a_written_duration_is_read_back(duration_ms: int) -> None:
    assert parse_duration(duration_text(duration_ms)) == duration_ms


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("500ms", 500), ("1 second", 1_000), ("2 Hours", 7_200_000), ("3 d", 3 * 86_400_000)],
)
def test_usual_spellings_are_understood(text: str, duration_ms: int) -> None:
    assert parse_duration(text) == duration_ms


@pytest.mark.parametrize("text", ["", "10", "ten seconds", "-1 s", "1.5 s", "5 parsecs", "s"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="is not a length of time"):
        parse_duration(text)
