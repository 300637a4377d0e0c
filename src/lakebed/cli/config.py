"""Where each setting comes from: option, then environment, then file, then default.

[default]                            # ./lakebed.toml, then ~/.config/lakebed/config.toml
catalog = "sqlite:///lake/catalog.db"
warehouse = "s3://bucket/lake"
output = "json"

[storage_options]
AWS_ENDPOINT_URL = "http://127.0.0.1:8333"
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakebed.errors import RequestError

DEFAULT_CATALOG = "sqlite:///lakebed/catalog.db"
FORMATS = ("table", "json", "csv")
NAMES = {"catalog": "LAKEBED_CATALOG", "warehouse": "LAKEBED_WAREHOUSE", "output": "LAKEBED_OUTPUT"}

_DEFAULTS = {"catalog": DEFAULT_CATALOG, "warehouse": "", "output": "table"}
_SECTIONS = ("default", "storage_options")
_FILE_SIZE_BYTES_MAX = 1 << 20
_SECRET_NAME = re.compile(
    r"secret|password|passwd|token|key|credential|sas|signature", re.IGNORECASE
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PASSWORD_IN_URI = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://[^/@:]*):[^@/]*@")
_SECRET_IN_QUERY = re.compile(r"([?&](?:password|sslpassword)=)[^&]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and who gave it."""

    value: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that can be configured; an empty warehouse means: beside the catalog."""

    catalog: Setting
    warehouse: Setting
    output: Setting
    storage_options: Mapping[str, Setting] = field(default_factory=dict)

    def options(self) -> dict[str, str]:
        """The storage options as the library takes them."""
        return {name: setting.value for name, setting in self.storage_options.items()}

    def shown(self) -> list[tuple[str, Setting]]:
        """Everything in order, secrets hidden."""
        storage = (
            (f"storage_options.{name}", Setting(masked(name, setting.value), setting.source))
            for name, setting in sorted(self.storage_options.items())
        )
        plain = ((name, getattr(self, name)) for name in NAMES)
        return [(name, Setting(masked("", s.value), s.source)) for name, s in plain] + list(storage)


def masked(name: str, value: str) -> str:
    """Hide a secret: by the option's name, or as the password inside a URI."""
    if name and _SECRET_NAME.search(name) and value:
        return "****"
    return _SECRET_IN_QUERY.sub(r"\1****", _PASSWORD_IN_URI.sub(r"\1:****@", value))


def local_path(uri: str) -> Path | None:
    """The file or directory that a catalog's URI names on this machine; None if it is elsewhere."""
    for prefix in ("sqlite:///", "file://"):
        if uri.startswith(prefix):
            return Path(uri.removeprefix(prefix))
    return None if _SCHEME.match(uri) else Path(uri)


def config_paths(cwd: Path, env: Mapping[str, str]) -> list[Path]:
    """The files that are read, the stronger first; they need not exist."""
    paths = [cwd / "lakebed.toml"]
    home = env.get("XDG_CONFIG_HOME") or (f"{env['HOME']}/.config" if env.get("HOME") else "")
    if home:
        paths.append(Path(home) / "lakebed" / "config.toml")
    return paths


def load_settings(
    options: Mapping[str, str | None], env: Mapping[str, str], paths: Iterable[Path]
) -> Settings:
    """Decide each setting and remember who decided it."""
    files = [(path, _read(path)) for path in paths if path.is_file()]
    chosen = {name: _choose(name, options, env, files) for name in NAMES}
    if chosen["output"].value not in FORMATS:
        raise RequestError(
            f"{chosen['output'].value!r} from {chosen['output'].source} is not an output format",
            hint=f"Use one of: {', '.join(FORMATS)}",
        )
    storage: dict[str, Setting] = {}
    for path, content in reversed(files):  # the stronger file comes last and wins
        for name, value in content["storage_options"].items():
            storage[name] = Setting(value, f"file {path}")
    return Settings(**chosen, storage_options=storage)


def _choose(
    name: str,
    options: Mapping[str, str | None],
    env: Mapping[str, str],
    files: list[tuple[Path, dict[str, dict[str, str]]]],
) -> Setting:
    given = options.get(name)
    if given is not None:
        return Setting(given, f"option --{name}")
    if env.get(NAMES[name]):
        return Setting(env[NAMES[name]], f"env {NAMES[name]}")
    for path, content in files:
        if name in content["default"]:
            return Setting(content["default"][name], f"file {path}")
    return Setting(_DEFAULTS[name], "default")


def _read(path: Path) -> dict[str, dict[str, str]]:
    """The two sections of a file, each value a text."""
    try:
        if path.stat().st_size > _FILE_SIZE_BYTES_MAX:
            raise RequestError(f"{path} is too large to be a configuration file")
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise RequestError(
            f"{path} cannot be read: {error}", hint="Correct the file, or move it away"
        ) from error
    _refuse_unknown(path, "sections", document, _SECTIONS)
    sections = {name: _section(path, name, document.get(name, {})) for name in _SECTIONS}
    _refuse_unknown(path, "settings in [default]", sections["default"], NAMES)
    return sections


def _section(path: Path, name: str, values: Any) -> dict[str, str]:
    if not isinstance(values, dict):
        raise RequestError(f"{path}: {name} is not a section", hint=f"Write it as [{name}]")
    texts = {}
    for key, value in values.items():
        if isinstance(value, bool):
            texts[key] = str(value).lower()
        elif isinstance(value, str | int):
            texts[key] = str(value)
        else:
            raise RequestError(f"{path}: {name}.{key} is not text", hint='Put it in "quotes"')
    return texts


def _refuse_unknown(path: Path, what: str, found: Iterable[str], known: Iterable[str]) -> None:
    unknown = sorted(set(found) - set(known))
    if unknown:
        raise RequestError(
            f"{path} has unknown {what}: {', '.join(unknown)}",
            hint=f"Known are: {', '.join(known)}",
        )
