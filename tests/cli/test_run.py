"""`lakebed run` runs a pipeline, or says in one clear line why not, with no engine if it can."""

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.cli.shell import Shell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

on_spark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


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


def marked(values: tuple[str, str, str]) -> object:
    return pytest.param(*values, marks=on_spark)


@pytest.mark.parametrize("_", [pytest.param(0, marks=on_spark)])
def test_a_pipeline_runs_and_tells_what_it_did(plant: Shell, spark: "SparkSession", _: int) -> None:
    del spark  # the session that the command finds
    (plant.place / "incoming").mkdir()
    plant.write("incoming/a.csv", plant.ROWS)
    result = plant.run("run", "pipeline.toml", "--available-now", "--metrics", "metrics.jsonl")
    assert result.exit_code == 0, result.output
    assert "readings is done: 4 rows in, 1 commit of 2 files in " in result.stdout
    assert result.stdout.endswith("now at plant.readings v2\n")
    assert result.stderr.splitlines()[0] == "readings: started"
    assert "4 rows, " in result.stderr.splitlines()[1]
    batch, end = map(json.loads, (plant.place / "metrics.jsonl").read_text().splitlines())
    assert (batch["event"], batch["rows_in"], end["event"]) == ("batch", 4, "end")
    again = plant.json("run", "pipeline.toml", "--available-now", "--quiet")
    assert (again["rows_in"], again["commits"]) == (0, 0)
    assert len(plant.rows()) == 8


@pytest.mark.parametrize(
    ("written", "wrong", "said"),
    [
        marked(each)
        for each in (
            (
                "[[sink]]",
                "[[transform]]\nname = 't'\nsql = 'select nope from source'\n[[sink]]",
                "error: the SQL of 't': A column, variable, or function parameter with name `nope`",
            ),
            ('"plant.readings"', '"plant.other"\ncreate = false', "plant.other"),
            ('path = "incoming"', 'path = "nowhere"', "nowhere"),
            ('"ts timestamptz, ', '"extra int, ', "extra"),
            ('"checkpoint"', '"rows.csv"', "error: the checkpoint "),
        )
    ],
)
def test_what_spark_refuses_is_told_in_two_lines(
    plant: Shell, spark: "SparkSession", written: str, wrong: str, said: str
) -> None:
    del spark
    (plant.place / "incoming").mkdir()
    plant.write("pipeline.toml", plant.PIPELINE.replace(written, wrong))
    told = plant.error("run", "pipeline.toml", "--quiet")
    assert said in told
    assert not {"Exception", "SQLSTATE", "JVM"} & set(told.split())
