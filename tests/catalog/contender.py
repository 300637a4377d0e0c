"""A process that commits to one table until it has won often enough; run as a script."""

import sys
from dataclasses import replace

from lakebed.catalog.backend import CatalogBackend
from lakebed.catalog.postgres import PostgresCatalog
from lakebed.catalog.sqlite import SqliteCatalog
from lakebed.catalog.store import StoreCatalog
from lakebed.format.pointer import Move, Pointer
from lakebed.ids import SystemIds
from lakebed.storage.local import LocalStore
from lakebed.testing.moves import add_actions, next_move

IDS = SystemIds()


def open_catalog(kind: str, place: str) -> CatalogBackend:
    if kind == "sqlite":
        return SqliteCatalog(place)
    if kind == "postgres":
        return PostgresCatalog(place)
    return StoreCatalog(LocalStore(place), IDS)


def step_from(kind: str, place: str, head: Pointer) -> Move:
    if kind == "store":
        document = (
            LocalStore(place).child(head.name).read(head.snapshot_path, size_bytes_max=1 << 20)
        )
        return next_move(Move(expected=head, new=head, document=document))
    new = replace(head, version=head.version + 1, commit_id=IDS.new())
    return Move(expected=head, new=new, document=b"", actions=add_actions(2))


def main(kind: str, place: str, name: str, win_count: int) -> None:
    catalog = open_catalog(kind, place)
    print("ready", flush=True)
    sys.stdin.readline()
    has_lost = False
    while win_count:
        if has_lost:  # As the commit loop does: after a lost race, wait in line.
            with catalog.queue([name]):
                has_won = catalog.swap([step_from(kind, place, catalog.load(name))])
        else:
            has_won = catalog.swap([step_from(kind, place, catalog.load(name))])
        has_lost = not has_won
        win_count -= has_won
    catalog.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
