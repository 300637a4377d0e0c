"""A file system for one scan in which each file has the size that the manifest says.

A store tells the size of an object together with its first bytes, and pyarrow does not compare it
with anything; to ask the store beforehand would be one more request for each file.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pyarrow.fs import FileSystemHandler, PyFileSystem

from lakebed.errors import BadDataFileError


def sized(filesystem: Any, sizes: Mapping[str, int]) -> Any:
    """Wrap the file system of a store; `sizes` are by the paths that pyarrow will open."""
    return PyFileSystem(_Sized(filesystem.handler, sizes))


def _passed_on(name: str) -> Callable[..., Any]:
    def call(self: "_Sized", *arguments: Any) -> Any:
        return getattr(self.inner, name)(*arguments)

    return call


class _Sized(FileSystemHandler):
    def __init__(self, inner: Any, sizes: Mapping[str, int]) -> None:
        self.inner = inner
        self._sizes = sizes

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def open_input_file(self, path: str) -> Any:
        file = self.inner.open_input_file(path)
        if file.size() != self._sizes[path]:
            raise BadDataFileError(
                f"{path} has {file.size()} bytes where the manifest says {self._sizes[path]}",
                hint="Restore the file from a copy",
                path=path,
            )
        return file

    get_type_name = _passed_on("get_type_name")
    normalize_path = _passed_on("normalize_path")
    get_file_info = _passed_on("get_file_info")
    get_file_info_selector = _passed_on("get_file_info_selector")
    open_input_stream = _passed_on("open_input_stream")
    open_output_stream = open_append_stream = _passed_on("open_output_stream")
    create_dir = delete_dir = _passed_on("create_dir")
    delete_dir_contents = delete_root_dir_contents = _passed_on("delete_dir_contents")
    delete_file = _passed_on("delete_file")
    move = copy_file = _passed_on("move")
