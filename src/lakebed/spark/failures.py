"""What goes wrong inside Spark, as one error of ours that a person can read.

Spark tells a failure with a page of Java. What matters of it is the last cause: an exception in
somebody's function, a value that does not fit, a disk that is full. The whole account stays in
`fields["spark"]`.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from lakebed.errors import LakebedError, RequestError

_PAGE_LOGGER = "DataFrameQueryContextLogger"
_QUIET: ContextVar[bool] = ContextVar("lakebed_spark_quiet", default=False)
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_SQL_STATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
_NOTHING_CHANGED = "Nothing was changed"
_CAUSE_COUNT_MAX = 16
_ACCOUNT_LENGTH_MAX = 4096


@contextmanager
def spark_failures(doing: str, hint: str = _NOTHING_CHANGED) -> Iterator[None]:
    """Turn whatever Spark raises inside into a RequestError that says what was being done."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    _hush()
    quiet = _QUIET.set(True)
    try:
        yield
    except LakebedError:
        raise
    except (PySparkException, Py4JError) as error:
        raise RequestError(
            f"{doing} failed in Spark: {reason(error)}",
            hint=hint,
            spark=str(error)[:_ACCOUNT_LENGTH_MAX],
        ) from None
    finally:
        _QUIET.reset(quiet)


@lru_cache(maxsize=1)
def _hush() -> None:
    """Keep pyspark from logging the page of Java while an error is being turned into ours."""
    logging.getLogger(_PAGE_LOGGER).addFilter(lambda _: not _QUIET.get())


def reason(error: BaseException) -> str:
    """The last cause of a failure, in one line."""
    from pyspark.errors import PythonException

    if isinstance(error, PythonException):
        return _last_line(str(error))
    java = getattr(error, "java_exception", None)
    if java is not None:
        return _root_message(java)
    return plain_message(str(error))


def plain_message(text: str) -> str:
    """A message of Spark's without its code, its plan and its state."""
    first = _SQL_STATE.sub("", _CONDITION.sub("", text.strip()))
    lines = first.splitlines()
    return lines[0].rstrip(" ;:") if lines else "no reason was given"


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "a Python function failed"


def _root_message(java: Any) -> str:
    """The message of the innermost cause that has one."""
    found = ""
    for _ in range(_CAUSE_COUNT_MAX):
        text = java.getMessage()
        if text:
            name = java.getClass().getSimpleName()
            is_python = name == "PythonException"
            found = _last_line(text) if is_python else f"{name}: {plain_message(text)}"
        inner = java.getCause()
        if inner is None or inner == java:
            break
        java = inner
    return found or str(java.getClass().getName())


__all__ = ["plain_message", "reason", "spark_failures"]
