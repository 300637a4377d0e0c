"""One table of a TOML document, read key by key with errors that name file, key and choices."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from lakebed.errors import LakebedError, RequestError
from lakebed.flow.durations import parse_duration
from lakebed.flow.flow import nearest

Value = TypeVar("Value")
Chosen = TypeVar("Chosen", bound=StrEnum)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Section:
    """A table of a document and the keys it may have; `place` is how errors call it."""

    def __init__(self, file: str, place: str, values: Any, known: Iterable[str]) -> None:
        self.file = file
        self.place = place
        if not isinstance(values, Mapping):
            raise self.error("", f"is {_article(values)}, not a table of keys")
        self.values = values
        self.known = tuple(known)
        for key in values:
            if key not in self.known:
                raise self.error(
                    key,
                    f"is not known{nearest(key, self.known)}",
                    hint=f"Known here: {', '.join(self.known)}",
                )

    def error(self, key: str, problem: str, *, hint: str = "") -> RequestError:
        """An error at a key of this section."""
        where = ".".join(part for part in (self.place, key) if part)
        subject = f"{self.file}: {where}" if where else self.file
        return RequestError(f"{subject} {problem}", hint=hint, file=self.file, key=where)

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty; without a default it must be there."""
        found = self._typed(key, str, default, "a text", 'Put it in "quotes"')
        if key in self.values and not found.strip():
            raise self.error(key, "is empty")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; a single text is a list of one."""
        found = self.values.get(key, [])
        listed = [found] if isinstance(found, str) else found
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            raise self.error(key, "is not a list of texts", hint=f'Write {key} = ["…", "…"]')
        return tuple(listed)

    def number(self, key: str, default: int | None) -> int | None:
        """A whole number."""
        if key not in self.values:
            return default
        found = self.values[key]
        if isinstance(found, bool) or not isinstance(found, int):
            raise self.error(key, f"is {_article(found)}, not a whole number")
        return found

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        return self._typed(key, bool, default, "true or false", "Write it without quotes")

    def choice(self, key: str, kinds: type[Chosen], default: Chosen | None = None) -> Chosen:
        """One of a few words."""
        text = self.text(key, default)
        if text not in {kind.value for kind in kinds}:
            raise self.error(
                key,
                f"is {text!r}{nearest(text, kinds)}",
                hint=f"Use one of: {', '.join(kinds)}",
            )
        return kinds(text)

    def duration_ms(self, key: str, default: int | None = None) -> int:
        """A length of time."""
        if key not in self.values and default is not None:
            return default
        return self.converted(key, parse_duration, self.text(key))

    def time_ms(self, key: str, default: int) -> int:
        """An instant, as TOML writes one or as text."""
        found = self.values.get(key)
        if found is None:
            return default
        if isinstance(found, str):
            found = self._parsed_time(key, found)
        if not isinstance(found, datetime) or found.tzinfo is None:
            raise self.error(
                key, "is not a time with its zone", hint=f"Write {key} = 2026-01-01T00:00:00Z"
            )
        return (found - _EPOCH) // (_EPOCH.resolution * 1_000)

    def scalars(self, key: str) -> dict[str, str]:
        """A table of settings as texts; tables inside it become names with dots."""
        found = self.values.get(key, {})
        if not isinstance(found, Mapping):
            raise self.error(key, f"is {_article(found)}, not a table of keys")
        return dict(self._flat(key, "", found))

    def tables(self, key: str, *, needed: bool = False) -> list[Any]:
        """The tables of `[[key]]`, or the one of `[key]`."""
        if key not in self.values:
            if needed:
                raise self.error(key, "is missing", hint=f"Add a section [{key}]")
            return []
        found = self.values[key]
        return list(found) if isinstance(found, list) else [found]

    def converted(self, key: str, convert: Callable[[str], Value], text: str) -> Value:
        """What a text means; an error of the conversion is told at this key."""
        try:
            return convert(text)
        except LakebedError as error:
            raise self.error(key, f"cannot be read: {error.message}", hint=error.hint) from error

    def built(self, build: Callable[[], Value]) -> Value:
        """A value made of this section; what is wrong with it as a whole is told here."""
        try:
            return build()
        except RequestError as error:
            if "file" in error.fields:
                raise
            where = f"{self.file}: [{self.place}] " if self.place else f"{self.file}: "
            raise RequestError(
                where + error.message, hint=error.hint, file=self.file, key=self.place
            ) from error

    def _typed(
        self, key: str, kind: type[Value], default: Value | None, expected: str, hint: str
    ) -> Value:
        found = self.values.get(key, default)
        if found is None:
            raise self.error(key, "is missing", hint=f"Known here: {', '.join(self.known)}")
        if not isinstance(found, kind):
            raise self.error(key, f"is {_article(found)}, not {expected}", hint=hint)
        return found

    def _parsed_time(self, key: str, text: str) -> datetime:
        try:
            return datetime.fromisoformat(text)
        except ValueError as error:
            raise self.error(
                key, f"is {text!r}, which is no time", hint=f"Write {key} = 2026-01-01T00:00:00Z"
            ) from error

    def _flat(self, key: str, prefix: str, values: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        for name, value in values.items():
            if isinstance(value, Mapping):
                yield from self._flat(key, f"{prefix}{name}.", value)
            elif isinstance(value, bool):
                yield prefix + name, str(value).lower()
            elif isinstance(value, str | int | float):
                yield prefix + name, str(value)
            else:
                raise self.error(f"{key}.{prefix}{name}", "is not text, a number or a flag")


def _article(value: object) -> str:
    """What a value is, in words."""
    names = {
        bool: "a flag",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "a table",
    }
    return names.get(type(value), "a time")
