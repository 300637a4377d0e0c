"""Whatever is on the disk, a typed error comes soon, nothing changes, nothing outside is opened."""

import json
import shutil
from pathlib import Path

import pytest
from tests.crash.test_killed import PROCESSES
from tests.hostile import damage_files, damage_metadata
from tests.hostile.damage_metadata import Damage
from tests.hostile.onlooker import Onlooker
from tests.hostile.ordeal import ALL, undergo
from tests.hostile.site import Site, make_sound

pytestmark = pytest.mark.slow

SECONDS_MAX = 120


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hostile") / "sound"
    make_sound(place)
    return place


def ends_of(sound: Path, damage: Damage) -> dict[str, str]:
    """How each operation on a damaged copy ends."""
    place = sound.parent / "damaged"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(sound, place)
    site = Site(place)
    damage(site)
    with Onlooker(site.outside) as onlooker:
        child = PROCESSES.Process(target=undergo, args=(place,))
        child.start()
        child.join(SECONDS_MAX)
        hangs = child.exitcode is None
        if hangs:
            child.kill()
            child.join()
        assert not hangs, "it takes for ever"
        assert child.exitcode == 0
        assert onlooker.seen() == []
    return dict(json.loads(place.with_suffix(".ends").read_text()))

def test_explore(sound: Path) -> None:
    groups = {"sound": {"sound": lambda site: None}, "snapshot": damage_metadata.SNAPSHOT, "history": damage_metadata.HISTORY, "definition": damage_metadata.DEFINITION,
      "manifest": damage_files.MANIFEST, "tail": damage_files.TAIL, "data": damage_files.DATA, "bombs": damage_files.BOMBS, "links": damage_files.LINKS, "catalog": damage_files.CATALOG}
    import time, sys
    for g, damages in groups.items():
        for name, damage in damages.items():
            t=time.time()
            try:
                ends = ends_of(sound, damage)
            except AssertionError as e:
                ends = {"ASSERT": str(e)[:200]}
            by = {}
            for op,e in ends.items(): by.setdefault(e,[]).append(op)
            print(f"{g}: {name} {time.time()-t:.1f}s", {e: (len(v) if len(v)>18 else " ".join(v)) for e,v in by.items()}, flush=True)
