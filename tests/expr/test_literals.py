"""Law: a time is read exactly, to the nanosecond, or refused."""

import pytest

from lakebed.errors import PredicateError
from lakebed.expr.literals import Moment, TimeOfDay, parse_date, parse_moment, parse_time

_HOUR = 3600 * 10**9
_DAY = 24 * _HOUR


@pytest.mark.parametrize(
    ("text", "ns", "zoned"),
    [
        ("1970-01-02", _DAY, False),
        ("1970-01-01 01:00", _HOUR, False),
        ("1970-01-01T01:00:00", _HOUR, False),
        ("1970-01-01T00:00:00.5", 5 * 10**8, False),
        ("1970-01-01T00:00:00,000000001", 1, False),
        ("1970-01-01T00:00:00Z", 0, True),
        ("1970-01-01 00:00:00 UTC", 0, True),
        ("1970-01-01T00:00+01", -_HOUR, True),
        ("1970-01-01T00:00-0130", _HOUR * 3 // 2, True),
        ("1970-01-01T00:00:00+00:00:30", -30 * 10**9, True),
        ("1969-12-31T23:59:59.999999999Z", -1, True),
        ("0001-01-01", -719_162 * _DAY, False),
        ("9999-12-31 23:59:59.999999999", 2_932_897 * _DAY - 1, False),
    ],
)
def test_moment_is_read_to_the_nanosecond(text: str, ns: int, zoned: bool) -> None:
    assert parse_moment(text) == Moment(ns, zoned=zoned)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026",
        "2026-1-1",
        "2026-02-30",
        "2026-01-01 24:00",
        "2026-01-01 00:60",
        "2026-01-01 00:00:60",
        "2026-01-01 00:00:00.0000000001",
        "2026-01-01 00:00 +1",
        "2026-01-01 00:00+24:00",
        "2026-01-01 00:00+01:60",
        "2026-01-01Z",
        "2026-01-01 00:00 Europe/Berlin",
        "0000-01-01",
        "0001-01-01 00:00+01:00",
        "\uff12026-01-01",
        "2026-01-01 ",
        "now",
    ],
)
def test_what_is_not_a_moment_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(PredicateError):
        parse_moment(text)


def test_moment_is_written_as_it_is_read() -> None:
    for moment in (Moment(-1, zoned=True), Moment(_DAY + 5 * 10**8, zoned=False)):
        assert parse_moment(str(moment)) == moment
    for of_day in (TimeOfDay(0), TimeOfDay(_DAY - 1)):
        assert parse_time(str(of_day)) == of_day


@pytest.mark.parametrize("text", ["24:00", "1:00", "00:00:00.", "00:00:00.0000000001", "00"])
def test_what_is_not_a_time_of_day_is_refused(text: str) -> None:
    with pytest.raises(PredicateError, match="is not a time of day"):
        parse_time(text)


@pytest.mark.parametrize("text", ["2026-13-01", "20260101", "2026-W01-1", "x" * 100])
def test_what_is_not_a_date_is_refused_and_shown_short(text: str) -> None:
    with pytest.raises(PredicateError, match="is not a date") as caught:
        parse_date(text)
    assert len(str(caught.value)) < 150
