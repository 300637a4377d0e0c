"""Exactly-once tokens as users write them."""

from typing import Any

from lakebed.errors import RequestError
from lakebed.format.pointer import Token

_VERSION_MAX = (1 << 63) - 1
_APP_LENGTH_MAX = 255


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
