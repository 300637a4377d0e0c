"""JSON files that check themselves: `{"checksum":"…","lakebed":{…}}` on one line.

The checksum stands at a fixed place and covers every byte after it, so that a flipped bit
anywhere in the file is noticed, also where no catalog row vouches for it.
"""

import hashlib
import re
from itertools import accumulate

import msgspec

from lakebed.errors import BadMetadataError, LimitExceededError, UnsupportedVersionError
from lakebed.limits import (
    FORMAT_VERSION,
    JSON_BRACKET_COUNT_MAX,
    JSON_DEPTH_MAX,
    JSON_SIZE_BYTES_MAX,
)

_HEAD = b'{"checksum":"'
_HEX_LENGTH = 32
_HEAD_END = b'",'
_BODY_START = len(_HEAD) + _HEX_LENGTH + len(_HEAD_END)
_BODY_KEY = b'"lakebed":'
_VERSION = re.compile(rb'^"lakebed":\{"format_version":(\d{1,9}),')
# Possessive, and content with the end of the data for a closing quote: one pass, whatever comes.
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def checksum(data: bytes | memoryview) -> str:
    """128 bits of BLAKE2b in hex."""
    return hashlib.blake2b(data, digest_size=_HEX_LENGTH // 2).hexdigest()


def seal(body: bytes) -> bytes:
    """Wrap the JSON of an object whose first key is `format_version`."""
    rest = _BODY_KEY + body + b"}\n"
    return _HEAD + checksum(rest).encode() + _HEAD_END + rest


def unseal(data: bytes, *, path: str) -> bytes:
    """Give back the wrapped JSON, or say what is wrong with the file."""
    if len(data) > JSON_SIZE_BYTES_MAX:
        raise LimitExceededError(
            f"{path} has {len(data)} bytes, more than {JSON_SIZE_BYTES_MAX}", path=path
        )
    head, rest = data[:_BODY_START], data[_BODY_START:]
    is_framed = head.startswith(_HEAD) and head.endswith(_HEAD_END) and rest.endswith(b"}\n")
    if not is_framed or not rest.startswith(_BODY_KEY):
        raise BadMetadataError(f"{path} is not a whole Lakebed metadata file", path=path)
    if checksum(rest).encode() != head[len(_HEAD) : -len(_HEAD_END)]:
        raise BadMetadataError(
            f"{path} is damaged: its checksum does not match",
            hint="Restore the file from a copy; `lakebed doctor` lists what else is affected",
            path=path,
        )
    version = _VERSION.match(rest)
    if version is None or not int(version[1]):
        raise BadMetadataError(f"{path} does not say its format version", path=path)
    if int(version[1]) > FORMAT_VERSION:
        raise UnsupportedVersionError(
            f"{path} has format version {int(version[1])}; this library reads {FORMAT_VERSION}",
            hint="Upgrade lakebed: pip install -U lakebed",
            path=path,
        )
    body = rest[len(_BODY_KEY) : -2]
    _check_depth(body, path)
    return body


def _check_depth(body: bytes, path: str) -> None:
    """Refuse nesting that no table has, before a parser recurses into it or fills the memory."""
    count = body.count(b"[") + body.count(b"{")
    if count <= JSON_DEPTH_MAX:
        return
    if count > JSON_BRACKET_COUNT_MAX:
        raise LimitExceededError(
            f"{path} has {count} lists and objects, more than {JSON_BRACKET_COUNT_MAX}", path=path
        )
    brackets = _STRINGS.sub(b"", body).translate(None, _NOT_BRACKETS)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > JSON_DEPTH_MAX:
        raise LimitExceededError(f"{path} is nested more than {JSON_DEPTH_MAX} deep", path=path)


def decode_error(path: str, error: Exception) -> BadMetadataError:
    """Turn a parser's complaint into ours."""
    kind = "is not JSON" if not isinstance(error, msgspec.ValidationError) else "is not sound"
    return BadMetadataError(f"{path} {kind}: {error}", path=path)
