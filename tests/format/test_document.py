"""A sealed file that was changed in any way, anywhere, is a typed error and never other values."""

import json
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.format import build

from lakebed.errors import (
    BadMetadataError,
    BadTableError,
    LimitExceededError,
    UnsupportedVersionError,
)
from lakebed.format.document import seal, unseal
from lakebed.format.snapshot import decode_snapshot, encode_snapshot
from lakebed.limits import JSON_DEPTH_MAX, JSON_SIZE_BYTES_MAX

BODY = b'{"format_version":1,"name":"caf\xc3\xa9"}'


def deep(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    """A body nested so deep, the outermost object counted."""
    inside = opening * (depth - 1) + b"1" + closing * (depth - 1)
    return b'{"format_version":1,"x":' + inside + b"}"


def test_what_was_sealed_comes_back() -> None:
    assert unseal(seal(BODY), path="p") == BODY


def test_a_sealed_file_is_one_line_of_plain_json() -> None:
    data = seal(BODY)
    assert data.count(b"\n") == 1
    assert json.loads(data)["lakebed"] == {"format_version": 1, "name": "café"}


def test_each_flipped_bit_of_a_file_is_noticed() -> None:
    data = seal(BODY)
    for place in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            with pytest.raises(BadMetadataError):
                unseal(bytes(changed), path="p")


def test_each_truncation_and_each_lost_beginning_is_noticed() -> None:
    data = seal(BODY)
    for length in range(len(data)):
        for part in (data[:length], data[-length:] if length else b""):
            with pytest.raises(BadMetadataError):
                unseal(part, path="p")


@pytest.mark.parametrize("more", [b"\n", b" ", b"x", b"}\n", b'{"checksum":"'])
def test_bytes_after_the_end_are_noticed(more: bytes) -> None:
    with pytest.raises(BadMetadataError):
        unseal(seal(BODY) + more, path="p")


@given(st.binary(max_size=200))
def test_garbage_is_a_typed_error(data: bytes) -> None:
    with pytest.raises(BadMetadataError):
        unseal(data, path="p")


@given(st.binary(max_size=80))
def test_garbage_under_a_right_checksum_is_a_typed_error(junk: bytes) -> None:
    with pytest.raises(BadTableError):
        decode_snapshot(seal(b'{"format_version":1,' + junk), "p")


def test_a_newer_format_version_asks_for_an_upgrade_and_is_not_called_damaged() -> None:
    data = seal(b'{"format_version":2,"what":"ever"}')
    with pytest.raises(UnsupportedVersionError, match=r"format version 2.*Upgrade"):
        unseal(data, path="p")


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"name":"x","format_version":1}',
        b'{"format_version":0,"a":1}',
        b'{"format_version":-1,"a":1}',
        b'{"format_version":1.0,"a":1}',
        b'{"format_version":"1","a":1}',
        b'{"format_version":12345678901234567890,"a":1}',
    ],
)
def test_a_file_that_does_not_begin_with_its_format_version_is_refused(body: bytes) -> None:
    with pytest.raises(BadMetadataError, match="format version"):
        unseal(seal(body), path="p")


def test_nesting_up_to_the_limit_is_read_and_one_more_is_refused() -> None:
    assert unseal(seal(deep(JSON_DEPTH_MAX)), path="p")
    with pytest.raises(LimitExceededError, match="nested"):
        unseal(seal(deep(JSON_DEPTH_MAX + 1)), path="p")
    with pytest.raises(LimitExceededError, match="nested"):
        unseal(seal(deep(JSON_DEPTH_MAX + 1, b'{"a":', b"}")), path="p")


def test_brackets_inside_text_are_not_nesting() -> None:
    brackets = json.dumps({"format_version": 1, "x": '["\\[{' * 1000 + "\\"}, separators=(",", ":"))
    assert unseal(seal(brackets.encode()), path="p") == brackets.encode()


def test_wide_files_are_not_deep() -> None:
    wide = b'{"format_version":1,"x":[' + b",".join([b"[{}]"] * 5000) + b"]}"
    assert unseal(seal(wide), path="p") == wide


@pytest.mark.parametrize(
    "bomb",
    [
        b"[" * (2 << 20),
        b"[]" * (2 << 20),
        b'{"a":' * (1 << 19),
        b'"' + b'\\"' * (2 << 20),  # one string that never ends, with a quote at each step
        b'"' + b'\\"' * (2 << 20) + b"\\",
        b'["' * (2 << 20),
        b'"\\' * (2 << 20),
    ],
    ids=["open", "pairs", "objects", "endless", "endless escape", "quotes", "backslashes"],
)
def test_a_bomb_of_brackets_or_quotes_is_refused_within_seconds(bomb: bytes) -> None:
    recursion_before = sys.getrecursionlimit()
    start = time.process_time()
    with pytest.raises(BadTableError):
        decode_snapshot(seal(b'{"format_version":1,"x":' + b"[" * 70 + bomb), "p")
    assert time.process_time() - start < 5
    assert sys.getrecursionlimit() == recursion_before


def test_a_file_above_the_size_limit_is_refused_unread() -> None:
    with pytest.raises(LimitExceededError, match="bytes"):
        unseal(b"\0" * (JSON_SIZE_BYTES_MAX + 1), path="p")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "0x10"])
def test_numbers_that_json_does_not_have_are_a_typed_error(number: str) -> None:
    data = build.resealed_text(
        encode_snapshot(build.snapshot()),
        '"timestamp_ms":1700000000000',
        f'"timestamp_ms":{number}',
    )
    with pytest.raises(BadMetadataError):
        decode_snapshot(data, "p")


@pytest.mark.parametrize(
    "text", [b'"\\ud800"', b'"\xff\xfe"', b'"\xed\xa0\x80"', b'"\\x41"', b'"\n"']
)
def test_text_that_is_not_unicode_is_a_typed_error(text: bytes) -> None:
    body = b'{"format_version":1,"version":0,"table_name":' + text + b"}"
    with pytest.raises(BadMetadataError):
        decode_snapshot(seal(body), "p")
