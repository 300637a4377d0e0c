"""All that a version refers to is synced, with its name, before the version is there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.crash.durable import Disk
from tests.crash.workload import DATABASE, KINDS, content, open_catalog, states, steps

from lakebed.storage.local import LocalStore
from lakebed.table.catalog import Catalog

pytestmark = pytest.mark.crash

DECISIONS = ("create", "swap", "drop")


class Announcing:
    """A catalog that calls back as soon as it has decided something."""

    def __init__(self, inner: Any, then: Callable[[], None]) -> None:
        self._inner = inner
        self._then = then

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in DECISIONS:
            return found

        def decide(*args: Any) -> Any:
            result = found(*args)
            self._then()
            return result

        return decide


def images_of(root: Path, kind: str, patch: pytest.MonkeyPatch) -> list[Path]:
    """What a power failure would leave right after each decision of the workload."""
    root.mkdir()
    images: list[Path] = []
    catalog = open_catalog(root, kind)
    disk = Disk(root, patch)

    def fail() -> None:
        images.append(root.parent / f"image-{len(images)}")
        images[-1].mkdir()
        disk.after_power_failure(images[-1], lambda path: path.name.startswith(DATABASE))

    services = catalog._services
    announcing: Any = Announcing(services.backend, fail)
    watched = Catalog(announcing, services.warehouse, clock=services.clock, ids=services.ids)
    for step in steps(kind):
        step.act(watched)
    return images


@pytest.mark.parametrize("kind", KINDS)
def test_a_power_failure_right_after_the_swap_loses_nothing_of_the_version(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        images = images_of(tmp_path / "root", kind, patch)
    assert len(images) == len(steps(kind))
    for image, expected in zip(images, states(kind)[1:], strict=True):
        with open_catalog(image, kind) as catalog:
            for name in catalog.tables():
                assert catalog.doctor(name).problems == ()
            assert content(catalog) == expected


@pytest.mark.parametrize("lazy", ["content", "names"])
def test_a_store_that_leaves_a_sync_out_is_noticed(
    tmp_path: Path, lazy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above is not blind: without the one or the other sync its image has no table."""
    with monkeypatch.context() as patch:
        if lazy == "content":
            patch.setattr("lakebed.storage.local.Staged.sync", lambda _: None)
        else:
            patch.setattr("lakebed.storage.local.sync_directory", lambda _: None)
        images = images_of(tmp_path / "root", "sqlite", patch)
    with open_catalog(images[0], "sqlite") as catalog:
        assert catalog.tables()
        assert not list(LocalStore(images[0]).list("plant.readings/"))
