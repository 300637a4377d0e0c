"""The names in `lakebed` are a contract: all are there, load when used, and cost nothing before."""

import inspect
import json
import pickle
import subprocess
import sys

import pytest

import lakebed
from lakebed import errors

SIGNATURES = {
    "Catalog.create_table": ["name", "schema", "partition_by", "location", "properties"],
    "Catalog.table": ["name"],
    "Catalog.tables": [],
    "Catalog.drop_table": ["name", "purge"],
    "Catalog.transaction": [],
    "Catalog.resolve": ["commit"],
    "Table.append": ["data", "token"],
    "Table.overwrite": ["data", "where"],
    "Table.delete": ["where"],
    "Table.add_files": ["paths"],
    "Table.commit_append": ["data_files"],
    "Table.commit_overwrite": ["removed", "added"],
    "Table.current_snapshot": [],
    "Table.history": [],
    "Table.snapshot": ["point"],
    "Table.read_plan": ["where", "snapshot_id"],
    "Table.scan": ["where", "columns", "as_of", "limit"],
    "Table.changes": ["since", "until"],
    "Table.tag": ["name", "at"],
    "Table.rollback": ["to"],
    "Table.evolve": [],
    "Table.__arrow_c_stream__": ["requested_schema"],
    "Scan.to_arrow": [],
    "Scan.to_batches": [],
    "Scan.to_pandas": [],
    "Scan.to_polars": [],
    "Scan.to_duckdb": [],
    "Scan.count": [],
    "Scan.explain": [],
    "Scan.__arrow_c_stream__": ["requested_schema"],
    "ReadPlan.explain": [],
}


@pytest.mark.parametrize("path", SIGNATURES)
def test_a_method_of_the_contract_takes_its_arguments_in_order(path: str) -> None:
    owner, name = path.split(".")
    found = list(inspect.signature(getattr(getattr(lakebed, owner), name)).parameters)
    expected = SIGNATURES[path]
    assert found[0] == "self"
    assert found[1 : 1 + len(expected)] == expected


def test_each_public_name_can_be_had_and_the_list_is_in_order() -> None:
    for name in lakebed.__all__:
        assert getattr(lakebed, name) is not None
    assert lakebed.__all__ == sorted(lakebed.__all__)
    assert dir(lakebed) == lakebed.__all__


def test_every_error_is_public() -> None:
    assert set(errors.__all__) <= set(lakebed.__all__)
    for name in errors.__all__:
        assert getattr(lakebed, name) is getattr(errors, name)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = lakebed.nothing


PROBE = """
import json, sys, time
begun = time.perf_counter()
import lakebed
took = time.perf_counter() - begun
print(json.dumps([took, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def test_importing_the_package_loads_nothing_else() -> None:
    out = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    took, loaded = json.loads(out.stdout)
    heavy = {
        "pyarrow",
        "numpy",
        "msgspec",
        "obstore",
        "click",
        "rich",
        "pandas",
        "polars",
        "duckdb",
    }
    assert heavy.isdisjoint(loaded)
    assert took < 0.1


def test_an_error_of_a_real_call_can_go_to_another_process() -> None:
    catalog = lakebed.connect("memory:")
    with pytest.raises(lakebed.NotFoundError) as raised:
        catalog.table("no.such.table")
    back = pickle.loads(pickle.dumps(raised.value))
    assert (type(back), str(back), back.fields) == (
        lakebed.NotFoundError,
        str(raised.value),
        raised.value.fields,
    )
