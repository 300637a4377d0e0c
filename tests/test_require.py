"""An optional library that is absent is a hint; one that is broken is not disguised as absent."""

import sys
from pathlib import Path

import pytest

from lakebed.errors import RequestError
from lakebed.require import require


def test_a_library_that_is_there_is_given() -> None:
    assert require("json", extra="any") is sys.modules["json"]


@pytest.mark.parametrize("module", ["lakebed_no_such_library", "lakebed_no_such_library.part"])
def test_an_absent_library_names_the_extra_that_brings_it(module: str) -> None:
    with pytest.raises(RequestError, match=r"pip install 'lakebed\[postgres\]'"):
        require(module, extra="postgres")


def test_a_library_whose_own_import_fails_is_not_called_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_library.py").write_text("import a_part_that_is_missing\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_part_that_is_missing"):
        require("broken_library", extra="any")
