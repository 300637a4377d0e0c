"""`lakebed run` refuses a bad pipeline in one clear line, before it starts any engine."""

import subprocess
import sys

import pytest
from tests.cli.shell import Shell


def test_check_tells_what_a_pipeline_would_do(plant: Shell) -> None:
    assert plant.ok("run", "pipeline.toml", "--check").splitlines() == [
        "pipeline readings is sound",
        "  source     source (files)",
        "  sink       plant.readings <- source",
        f"  checkpoint {plant.place}/checkpoint",
    ]
    told = plant.json("run", "pipeline.toml", "--check", "--available-now")
    assert told["trigger"] == "available now"
    assert told["sinks"] == [{"table": "plant.readings", "input": "source"}]


@pytest.mark.parametrize(
    ("written", "wrong", "said"),
    [
        ('format = "csv"', 'formt = "csv"', "source.formt is not known (did you mean format?)"),
        ('format = "csv"', 'format = "cvs"', "next: Use one of: csv, json, parquet"),
        ("[source]", "[source", "pipeline.toml is not TOML: "),
        ("[[sink]]", "[[sink]]\ninput = 'x'", "takes the rows of 'x', which is no step"),
        ('"checkpoint"', '"\\u001b[2J"\nname="', "is not TOML"),
    ],
)
def test_a_bad_pipeline_is_one_clear_error(
    plant: Shell, written: str, wrong: str, said: str
) -> None:
    plant.write("pipeline.toml", plant.PIPELINE.replace(written, wrong))
    assert said in plant.error("run", "pipeline.toml")


def test_options_that_make_no_sense_are_refused(plant: Shell) -> None:
    assert "exclude each other" in plant.error("run", "pipeline.toml", "--once", "--available-now")
    assert "is not a length of time" in plant.error("run", "pipeline.toml", "--timeout", "soon")
    assert "there is no file none.toml" in plant.error("run", "none.toml")


def test_help_and_check_load_no_engine(plant: Shell) -> None:
    code = (
        "import sys; from lakebed.cli.main import cli\n"
        "try: cli.main(sys.argv[1:], prog_name='lakebed')\n"
        "finally: assert not {'pyspark', 'py4j', 'pyarrow'} & set(sys.modules), 'loaded too much'"
    )
    for asked in (["run", "--help"], ["run", "pipeline.toml", "--check"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *asked], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
