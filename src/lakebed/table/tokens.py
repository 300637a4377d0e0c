"""What users send along with a commit: the token that makes it exactly once, and properties."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakebed.errors import RequestError
from lakebed.format.pointer import Token

_VERSION_MAX = (1 << 63) - 1
_APP_LENGTH_MAX = 255
_PROPERTY_COUNT_MAX = 64
_PROPERTY_LENGTH_MAX = 4096


@dataclass(frozen=True, slots=True)
class Terms:
    """A token, and texts that stay with the commit in its snapshot and in the log."""

    token: Token | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


NO_TERMS = Terms()


def as_terms(token: Any, properties: Mapping[str, str] | None) -> Terms:
    """Check what a user gives along with a commit."""
    found = dict(properties or {})
    if len(found) > _PROPERTY_COUNT_MAX:
        raise RequestError(f"a commit takes at most {_PROPERTY_COUNT_MAX} properties")
    for key, value in found.items():
        texts: tuple[object, object] = (key, value)
        if not key or not all(isinstance(text, str) for text in texts):
            raise RequestError(f"the property {key!r} is not text", hint='Write {"job": "nightly"}')
        if max(len(key), len(value)) > _PROPERTY_LENGTH_MAX:
            raise RequestError(
                f"the property {key[:40]!r} is too long",
                hint=f"Use at most {_PROPERTY_LENGTH_MAX} characters",
            )
    return Terms(as_token(token), found)


def as_token(token: Any) -> Token | None:
    """Check `("app", 7)`."""
    if token is None:
        return None
    match token:
        case (str(app), int(version)) if not isinstance(version, bool):
            if app.strip() and len(app) <= _APP_LENGTH_MAX and 0 <= version <= _VERSION_MAX:
                return Token(app, version)
    raise RequestError(
        f"{token!r} is not a token",
        hint='Write ("app", 7): a name of at most 255 characters and a number that only grows',
    )
