"""A pytest plugin for runs on a copy of the code: which code was tested, and how tests ended.

`scripts/mutants.py` loads it with `-p tests.mutants.witness`, names the copy in LAKEBED_COPY and
reads what is written to LAKEBED_ENDINGS: one `<phase> <error> <test>` for each test that failed.
"""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

import lakebed

WRONG_CODE = 9  # the exit code of a run that would have tested something else than the copy


def pytest_sessionstart() -> None:
    """Stop at once if `lakebed` is not the copy, but what is installed."""
    found = Path(lakebed.__file__).resolve()
    if not found.is_relative_to(Path(os.environ["LAKEBED_COPY"]).resolve()):
        pytest.exit(f"tested would be {found}", returncode=WRONG_CODE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note how a test failed."""
    report = yield
    if call.excinfo is not None and report.failed:
        with open(os.environ["LAKEBED_ENDINGS"], "a", encoding="utf-8") as endings:
            endings.write(f"{call.when} {call.excinfo.type.__name__} {item.nodeid}\n")
    return report
