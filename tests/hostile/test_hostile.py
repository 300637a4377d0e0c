"""Whatever is on the disk, a typed error comes soon, nothing changes, nothing outside is opened."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.crash.test_killed import PROCESSES
from tests.hostile.damage_files import CATALOG, DATA, LINKS, MANIFEST, TAIL
from tests.hostile.damage_metadata import DEFINITION, HISTORY, SNAPSHOT, Damage
from tests.hostile.onlooker import Onlooker
from tests.hostile.ordeal import ALL, undergo
from tests.hostile.site import NAME, OTHER, Site, make_sound

import lakebed.errors
from lakebed.table.rebuild import rebuild_catalog

pytestmark = pytest.mark.slow

SECONDS_MAX = 120
TYPED = {*lakebed.errors.__all__, "problems"}
IN_STORE = (  # without a database the newest file is the newest version, so it can go missing
    *("cut in half", "nested deeply", "of the future", "of another table", "an older version"),
    *("definition above", "definition absolute", "no such definition", "a huge number"),
)
METADATA_LINKS = {name: damage for name, damage in LINKS.items() if name != "its data"}


@pytest.fixture(scope="module", params=["sqlite"])
def sound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound table in a catalog of SQLite, to be copied."""
    place = tmp_path_factory.mktemp("hostile") / str(request.param)
    make_sound(place, place.name)
    return place


def ends_of(sound: Path, damage: Damage) -> dict[str, str]:
    """How each operation on a damaged copy ends; all that is not a typed error fails at once."""
    kind, place = sound.name, sound.parent / "damaged"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(sound, place)
    site = Site(place)
    damage(site)
    with Onlooker(site.outside) as onlooker:
        child = PROCESSES.Process(target=undergo, args=(place, kind))
        child.start()
        child.join(SECONDS_MAX)
        takes_for_ever = child.exitcode is None
        child.kill()
        child.join()
        assert not takes_for_ever
        assert child.exitcode == 0
        assert onlooker.seen() == []
    ends = dict(json.loads(place.with_suffix(".ends").read_text()))
    assert ends.keys() == ALL.keys()
    assert {name: end for name, end in ends.items() if end not in TYPED | {"ok"}} == {}
    return ends


def assert_fails(sound: Path, damage: Damage, wanted: set[str]) -> None:
    """Each of the wanted operations ends in an error; the others may not have noticed."""
    ends = ends_of(sound, damage)
    assert {name for name in wanted if ends[name] == "ok"} == set()


def each(*damages: Mapping[str, Damage]) -> pytest.MarkDecorator:
    known = {name: damage for some in damages for name, damage in some.items()}
    return pytest.mark.parametrize("damage", known.values(), ids=known.keys())


def test_a_sound_table_is_read_and_written(sound: Path) -> None:
    assert set(ends_of(sound, lambda _: None).values()) == {"ok"}


@each(SNAPSHOT)
def test_a_hostile_snapshot_stops_everything(sound: Path, damage: Damage) -> None:
    assert_fails(sound, damage, set(ALL))


@each(TAIL)
def test_a_hostile_list_of_files_stops_everything(sound: Path, damage: Damage) -> None:
    assert_fails(sound, damage, set(ALL))


@each(DEFINITION)
def test_a_hostile_definition_stops_everything(sound: Path, damage: Damage) -> None:
    assert_fails(sound, damage, set(ALL))


@each(CATALOG)
def test_a_hostile_catalog_stops_everything(sound: Path, damage: Damage) -> None:
    assert_fails(sound, damage, set(ALL))


@each(METADATA_LINKS)
def test_metadata_behind_a_link_stops_everything(sound: Path, damage: Damage) -> None:
    assert_fails(sound, damage, set(ALL))


def test_data_behind_a_link_is_neither_read_nor_written(sound: Path) -> None:
    touching = {"scan", "filter", "past", "changes", "doctor", "append", "overwrite", "delete"}
    assert_fails(sound, LINKS["its data"], touching)


@each(HISTORY)
def test_a_hostile_past_stops_who_goes_back(sound: Path, damage: Damage) -> None:
    assert_fails(sound, damage, {"changes", "history", "snapshots", "doctor", "drop"})


@each(MANIFEST)
def test_a_hostile_manifest_stops_who_needs_it(sound: Path, damage: Damage) -> None:
    needing = {"scan", "count", "plan", "files", "partitions", "doctor", "rollback", "drop"}
    assert_fails(sound, damage, needing)


@each(DATA)
def test_a_hostile_data_file_stops_who_reads_it(sound: Path, damage: Damage) -> None:
    assert_fails(sound, damage, {"scan", "filter", "overwrite", "delete"})


@pytest.mark.parametrize("sound", ["store"], indirect=True)
@each({name: SNAPSHOT[name] for name in IN_STORE}, TAIL, METADATA_LINKS)
def test_without_a_database_a_hostile_file_stops_everything_too(
    sound: Path, damage: Damage
) -> None:
    assert_fails(sound, damage, set(ALL))


@each(HISTORY)
def test_a_hostile_past_is_not_restored_into_a_new_catalog(
    sound: Path, damage: Damage, tmp_path: Path
) -> None:
    shutil.copytree(sound / "warehouse", tmp_path / "warehouse")
    damage(Site(tmp_path))
    report = rebuild_catalog(f"sqlite:///{tmp_path}/new.db", f"{tmp_path}/warehouse")
    assert [name for name, _, _ in report.tables] == [OTHER]
    assert any(NAME in problem for problem in report.problems)
