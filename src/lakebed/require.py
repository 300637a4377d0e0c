"""Optional dependencies: absent is a hint, broken is not disguised as absent."""

from importlib import import_module
from types import ModuleType

from lakebed.errors import RequestError


def require(module: str, *, extra: str) -> ModuleType:
    """Import `module`, or say which extra brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise  # the package is there, but something inside it is broken
        raise RequestError(
            f"{module} is not installed", hint=f"Run: pip install 'lakebed[{extra}]'"
        ) from error
