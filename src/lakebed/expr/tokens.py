"""The words of a predicate's SQL text, each with its place, so that an error can point at it."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

from lakebed.errors import PredicateError
from lakebed.expr.literals import (
    NUMBER_DIGIT_COUNT_MAX,
    Literal,
    literal,
    parse_date,
    parse_moment,
    parse_time,
)
from lakebed.expr.nodes import KEYWORDS
from lakebed.limits import PREDICATE_LENGTH_MAX

_SHOWN_BEFORE, _SHOWN_AFTER = 60, 40


class TokenKind(Enum):
    """What a token is to the parser."""

    WORD = "word"  # bare: a keyword, or a column's name
    NAME = "quoted name"
    LITERAL = "constant"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `value` is a constant's, `word` is a bare word in lower case."""

    kind: TokenKind
    text: str
    at: int
    value: Literal = None

    @property
    def word(self) -> str:
        """The word in lower case; empty for all but bare words."""
        return self.text.lower() if self.kind is TokenKind.WORD else ""

    @property
    def key(self) -> str:
        """What the token says, in lower case."""
        return self.text.lower()

    def is_word(self, *words: str) -> bool:
        """Tell whether this is one of these bare words."""
        return self.kind is TokenKind.WORD and self.word in words

    def is_symbol(self, symbol: str) -> bool:
        """Tell whether this is that symbol."""
        return self.kind is TokenKind.SYMBOL and self.text == symbol

    def is_free_word(self) -> bool:
        """Tell whether this bare word can be a column's name."""
        return self.kind is TokenKind.WORD and self.word not in KEYWORDS


_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<binary>[xX]'(?P<hex>[^']*)')
  | (?P<text>'(?:[^']|'')*')
  | (?P<name>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
  | (?P<number>[+-]?\s*(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?
              |(?:inf|infinity|nan)\b)(?!\w))
  | (?P<word>[^\W\d]\w*)
  | (?P<symbol><>|!=|==|<=|>=|[=<>(),.])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CONSTANTS: dict[str, Literal] = {"true": True, "false": False, "null": None}
_TYPED: dict[str, Callable[[str], Literal]] = {
    "timestamp": parse_moment,
    "date": parse_date,
    "time": parse_time,
}


def tokenize(text: str) -> list[Token]:
    """Split text into tokens; the last is the end."""
    if len(text) > PREDICATE_LENGTH_MAX:
        raise PredicateError(
            f"the predicate has {len(text)} characters",
            hint=f"Use at most {PREDICATE_LENGTH_MAX}, or build it with col().is_in()",
        )
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unreadable(text, at)
        if match.lastgroup != "space":
            _append(tokens, _token(text, match), text)
        at = match.end()
    tokens.append(Token(TokenKind.END, "", len(text)))
    return tokens


def _append(tokens: list[Token], token: Token, text: str) -> None:
    """Add a token; TIMESTAMP, DATE or TIME before text makes one constant of the two."""
    last = tokens[-1] if tokens else None
    typed = last is not None and last.kind is TokenKind.WORD and last.word in _TYPED
    if last is None or not typed or not isinstance(token.value, str):
        tokens.append(token)
        return
    try:
        value = _TYPED[last.word](token.value)
    except PredicateError as error:
        raise failure(text, token.at, error.message, error.hint) from error
    tokens[-1] = Token(TokenKind.LITERAL, "typed", last.at, value)


def _token(text: str, match: re.Match[str]) -> Token:
    at, found = match.start(), match.group()
    if match["number"] is not None:
        return Token(TokenKind.LITERAL, found, at, _number(text, at, found))
    if match["binary"] is not None:
        return Token(TokenKind.LITERAL, found, at, _binary(text, at, match["hex"]))
    if match["text"] is not None:
        value = found[1:-1].replace("''", "'")
        try:
            return Token(TokenKind.LITERAL, found, at, literal(value))
        except PredicateError as error:
            raise failure(text, at, error.message, error.hint) from error
    if match["name"] is not None:
        return Token(TokenKind.NAME, found[1:-1].replace(found[0] * 2, found[0]), at)
    if match["symbol"] is not None:
        return Token(TokenKind.SYMBOL, found, at)
    if found.lower() in _CONSTANTS:
        return Token(TokenKind.LITERAL, found, at, _CONSTANTS[found.lower()])
    return Token(TokenKind.WORD, found, at)


def _number(text: str, at: int, found: str) -> Literal:
    digits = "".join(found.split()).lower()
    if len(digits) > NUMBER_DIGIT_COUNT_MAX:
        raise failure(text, at, f"a number has more than {NUMBER_DIGIT_COUNT_MAX} digits")
    if digits.lstrip("+-") in ("inf", "infinity", "nan"):
        return math.nan if "nan" in digits else float(digits)
    if "e" in digits:
        value = float(digits)
        if math.isinf(value):
            raise failure(text, at, "the number is too large for a double", "Write inf if meant")
        return value
    return Decimal(digits) if "." in digits else int(digits)


def _binary(text: str, at: int, digits: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError as error:
        raise failure(
            text, at, "a binary constant is pairs of hex digits", "As in X'00ff'"
        ) from error


def _unreadable(text: str, at: int) -> PredicateError:
    match text[at]:
        case "'":
            return failure(text, at, "this text is never closed", "A quote inside is doubled: ''")
        case '"' | "`":
            return failure(text, at, "this quoted name is empty or never closed")
        case character if character.isdigit() or character in "+-":
            return failure(text, at, "this is not a number")
    return failure(text, at, f"{text[at]!r} has no meaning here")


def failure(text: str, at: int, message: str, hint: str = "") -> PredicateError:
    """The error for a flaw at a place, with a line that points at it."""
    start, end = max(0, at - _SHOWN_BEFORE), min(len(text), at + _SHOWN_AFTER)
    # One column per character, so that the caret stands below its place.
    shown = "".join(c if c.isprintable() else " " for c in text[start:end])
    lead = "…" if start else ""
    pointer = " " * (len(lead) + at - start) + "^"
    following = text[at : at + 20].split()
    found = f"found {following[0]!r}" if following else "found the end"
    return PredicateError(
        f"cannot read the predicate\n  {lead}{shown}{'…' if end < len(text) else ''}\n"
        f"  {pointer}\n{message}, {found} at position {at + 1}",
        hint=hint or "Write it like: ts >= '2026-01-01' AND sensor_id IN ('a', 'b')",
        position=at,
    )
