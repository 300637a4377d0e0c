"""A schema as people type it: `ts timestamptz not null, sensor_id string, value double`.

    columns  =  column ("," column)*
    column   =  name type ["not null"]
    type     =  word | decimal(p,s) | fixed[n] | list<type> | map<type, type>
             |  struct<name: type, …>

A name with other characters than letters, digits, `_` and `-` stands in "double quotes". What
`lakebed info` prints as a type can be typed here.
"""

import re

from lakebed.errors import LakebedError, RequestError
from lakebed.format.schema import Schema, check_column_name
from lakebed.format.types import Field, ListOf, MapOf, Struct, Type, parse_primitive
from lakebed.limits import TYPE_DEPTH_MAX

_TOKEN = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([\w.-]+)|([<>()\[\],:]))')
_PLAIN_NAME = re.compile(r"[\w.-]+")
_ALIASES = {
    "bool": "boolean",
    "int32": "int",
    "integer": "int",
    "int64": "long",
    "bigint": "long",
    "float32": "float",
    "real": "float",
    "float64": "double",
    "text": "string",
    "varchar": "string",
    "bytes": "binary",
    "bytea": "binary",
    "datetime": "timestamp",
}


def parse_schema(text: str) -> Schema:
    """Read all columns, or say where the text stops making sense."""
    reader = _Reader(text)
    fields = [reader.column()]
    while reader.take(","):
        fields.append(reader.column())
    reader.end()
    try:
        return Schema(0, tuple(fields))
    except LakebedError as error:
        raise RequestError(f"the schema {text!r}: {error.message}", hint=error.hint) from error


def schema_text(schema: Schema) -> str:
    """Write the columns so that `parse_schema` reads them back, ids aside."""
    return ", ".join(_column_text(field) for field in schema.fields)


def parse_column(text: str) -> Field:
    """Read one column, as `lakebed evolve --add` takes it."""
    reader = _Reader(text)
    column = reader.column()
    reader.end()
    return column


def split(text: str) -> list[str]:
    """Split at commas that stand outside parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _column_text(field: Field) -> str:
    required = " not null" if field.required else ""
    return f"{_quoted(field.name)} {_type_text(field.type)}{required}"


def _type_text(kind: Type) -> str:
    match kind:
        case ListOf():
            return f"list<{_type_text(kind.element.type)}>"
        case MapOf():
            return f"map<{_type_text(kind.key.type)}, {_type_text(kind.value.type)}>"
        case Struct():
            members = (f"{_quoted(each.name)}: {_type_text(each.type)}" for each in kind.fields)
            return f"struct<{', '.join(members)}>"
    return str(kind)


def _quoted(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name):
        return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


class _Reader:
    """Reads tokens from left to right; a token is its text and whether it was quoted."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, bool]] = []
        self.at = 0
        self.last_id = 0
        place = 0
        while place < len(text.rstrip()):
            match = _TOKEN.match(text, place)
            if match is None:
                raise self.error(f"{text[place:].strip()[:20]!r} is out of place")
            quoted = match[1] is not None
            self.tokens.append(
                (match[1].replace('""', '"') if quoted else match[2] or match[3], quoted)
            )
            place = match.end()

    def column(self) -> Field:
        """A name, a type, and perhaps `not null`."""
        identifier = self.new_id()
        name = check_column_name(self.name())
        kind = self.type(0)
        required = self.take("not")
        if required and not self.take("null"):
            raise self.error("'not' is followed by 'null'")
        return Field(identifier, name, kind, required)

    def type(self, depth: int) -> Type:
        """A type, nested ones too."""
        if depth > TYPE_DEPTH_MAX:
            raise self.error(f"types are nested more than {TYPE_DEPTH_MAX} deep")
        word = self.name(what="a type").lower()
        if word not in ("list", "map", "struct"):
            return self.primitive(_ALIASES.get(word, word))
        self.need("<")
        kind: Type
        if word == "list":
            kind = ListOf(self.part("element", depth))
        elif word == "map":
            key = self.part("key", depth, required=True)
            self.need(",")
            kind = MapOf(key, self.part("value", depth))
        else:
            members = [self.member(depth)]
            while self.take(","):
                members.append(self.member(depth))
            kind = Struct(tuple(members))
        self.need(">")
        return kind

    def part(self, name: str, depth: int, *, required: bool = False) -> Field:
        """The element of a list, the key or the value of a map."""
        identifier = self.new_id()
        return Field(identifier, name, self.type(depth + 1), required)

    def member(self, depth: int) -> Field:
        """A field of a struct."""
        name = self.name()
        self.need(":")
        return self.part(name, depth)

    def primitive(self, word: str) -> Type:
        """A type without parts, with its numbers."""
        if word == "decimal" and self.take("("):
            precision = self.name(what="a number")
            self.need(",")
            word = f"decimal({precision},{self.name(what='a number')})"
            self.need(")")
        elif word == "fixed" and self.take("["):
            word = f"fixed[{self.name(what='a number')}]"
            self.need("]")
        try:
            return parse_primitive(word)
        except LakebedError as error:
            raise RequestError(f"{self.text!r}: {error.message}", hint=error.hint) from error

    def new_id(self) -> int:
        """Ids count from 1; parents come before their parts."""
        self.last_id += 1
        return self.last_id

    def name(self, what: str = "a column name") -> str:
        """A word, or anything in double quotes."""
        if self.at < len(self.tokens):
            word, quoted = self.tokens[self.at]
            if quoted or word not in "<>()[],:":
                self.at += 1
                return word
            raise self.error(f"{what} is missing before {word!r}")
        raise self.error(f"{what} is missing at the end")

    def take(self, mark: str) -> bool:
        """Step over a mark or word if it is next."""
        if self.at < len(self.tokens) and self.tokens[self.at] in (
            (mark, False),
            (mark.upper(), False),
        ):
            self.at += 1
            return True
        return False

    def need(self, mark: str) -> None:
        """Step over a mark that must be next."""
        if not self.take(mark):
            raise self.error(f"{mark!r} is missing")

    def end(self) -> None:
        """Nothing may be left."""
        if self.at < len(self.tokens):
            raise self.error(f"{self.tokens[self.at][0]!r} is out of place")

    def error(self, problem: str) -> RequestError:
        """What is wrong with the text."""
        return RequestError(
            f"the schema {self.text[:200]!r} cannot be read: {problem}",
            hint='Write columns as in "ts timestamptz not null, sensor_id string, value double"',
        )
