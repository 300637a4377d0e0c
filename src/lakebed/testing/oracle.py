"""The laws that every history must keep: plain Python over sets, none of the product's code.

Each law is a generator of complaints over what is in the store and what the actors were told. The
chain of versions is replayed on sets of rows: what an append, an overwrite, a delete means is
written down here a second time, as simply as it can be said.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from lakebed.testing.history import Attempt, Ending, History, Kind, Link, Result, Row

Complaints = Iterator[str]
StateLaw = Callable[[Ending], Complaints]
Law = Callable[[History, Ending], Complaints]


def check(history: History, ending: Ending) -> list[str]:
    """Every broken law, as `law: what is wrong`."""
    found = [f"{law.__name__}: {text}" for law in STATE_LAWS for text in law(ending)]
    return found + [f"{law.__name__}: {text}" for law in LAWS for text in law(history, ending)]


def chain_is_unbroken(ending: Ending) -> Complaints:
    """Version v leads to v+1, each names its parent, time goes forth, the head is the last."""
    for table, chain in ending.chains.items():
        if not chain:
            yield f"{table} has no versions"
            continue
        if chain[0].parent_id is not None:
            yield f"{table}: the first version has a parent"
        for before, link in pairwise(chain):
            place = f"{table} v{link.version}"
            if link.version != before.version + 1:
                yield f"{place} follows v{before.version}"
            if link.parent_id != before.snapshot_id:
                yield f"{place} names another parent than v{before.version}"
            if link.timestamp_ms <= before.timestamp_ms:
                yield f"{place} is not later than its parent"
            if link.table_id != before.table_id:
                yield f"{place} belongs to another table"
        if ending.heads.get(table) != (chain[-1].version, chain[-1].commit_id):
            yield f"{table}: the catalog's head {ending.heads.get(table)} is not the last version"
        if ending.told[table] != [(link.version, link.commit_id) for link in chain]:
            yield f"{table}: the history as told is {ending.told[table]}"


def ids_are_unique(ending: Ending) -> Complaints:
    """No commit id, snapshot id or token occurs twice; the tokens of an app only grow."""
    for table, chain in ending.chains.items():
        for name in ("commit_id", "snapshot_id"):
            counts = Counter(getattr(link, name) for link in chain)
            for value, count in counts.items():
                if count > 1:
                    yield f"{table}: {name} {value} occurs {count} times"
        last: dict[str, int] = {}
        for link in chain:
            if link.token is not None:
                app, number = link.token
                if number <= last.get(app, number - 1):
                    yield f"{table} v{link.version}: token {link.token} after {last[app]}"
                last[app] = max(number, last.get(app, number))


def nothing_dangles(ending: Ending) -> Complaints:
    """Every object that any version needs is there, and its data files can be read."""
    for table, chain in ending.chains.items():
        for link in chain:
            for path in sorted(link.needs - ending.present):
                yield f"{table} v{link.version} needs {path}, which is not there"
            for path in sorted(path for path in link.files if path not in ending.rows):
                yield f"{table} v{link.version} lists {path}, which holds no rows"


def lists_are_sound(ending: Ending) -> Complaints:
    """No file is listed twice, and the summary says what the list shows."""
    for table, chain in ending.chains.items():
        before: frozenset[str] = frozenset()
        for link in chain:
            place = f"{table} v{link.version}"
            for path in link.duplicates:
                yield f"{place} lists {path} twice"
            shown = (len(link.files - before), len(before - link.files), len(link.files))
            if link.summary != shown:
                yield f"{place} says (added, removed, total) = {link.summary}, shows {shown}"
            before = link.files


def rows_are_never_doubled(ending: Ending) -> Complaints:
    """In no version does a row occur twice."""
    for table, chain in ending.chains.items():
        for link in chain:
            for row, count in Counter(_rows(ending, link.files)).items():
                if count > 1:
                    yield f"{table} v{link.version} has {count} times the row {row}"


def versions_are_explained(history: History, ending: Ending) -> Complaints:
    """Each version was made by one attempt, each attempt made at most one version per table."""
    for table, chain in ending.chains.items():
        made = Counter(link.serial for link in chain if link.serial)
        for serial, count in made.items():
            attempt = history.attempts.get(serial)
            if attempt is None or table not in attempt.parts:
                yield f"{table}: nobody asked for the version of serial {serial}"
            elif count > 1:
                yield f"{table}: attempt {serial} ({attempt.kind}) was applied {count} times"


def committed_is_there(history: History, ending: Ending) -> Complaints:
    """An acknowledged attempt is in the chain of each of its tables, at the version it was told."""
    for attempt in history.attempts.values():
        if attempt.result is not Result.COMMITTED:
            continue
        if set(attempt.versions) != set(attempt.parts):
            yield f"{_name(attempt)} was told of {attempt.versions} for {set(attempt.parts)}"
        for table, version in attempt.versions.items():
            link = _link(ending, table, version)
            if link is None:
                yield f"{_name(attempt)} was acknowledged as {table} v{version}: not there"
            elif link.commit_id != attempt.commit_id:
                yield f"{_name(attempt)} was acknowledged as {table} v{version}: another is there"
            elif attempt.is_repeated and link.token != attempt.token:
                yield f"{_name(attempt)} was told that {table} v{version} has its token"
            elif not attempt.is_repeated and link.serial != attempt.serial:
                yield f"{_name(attempt)} was told that {table} v{version} is its own"


def idle_was_right(history: History, ending: Ending) -> Complaints:
    """A delete that found nothing to do was told of a version that has no such row."""
    for attempt in history.attempts.values():
        if attempt.result is not Result.IDLE:
            continue
        for table, version in attempt.versions.items():
            link = _link(ending, table, version)
            key = attempt.parts[table].key
            if link is None:
                yield f"{_name(attempt)} looked at {table} v{version}, which does not exist"
            elif any(row.key == key for row in _rows(ending, link.files)):
                yield f"{_name(attempt)} found nothing in {table} v{version}, which has rows"
            elif version < _acknowledged(history, table, attempt.began):
                yield f"{_name(attempt)} looked at {table} v{version}, which was old by then"


def failed_is_not_there(history: History, ending: Ending) -> Complaints:
    """What was definitely refused is in no version, and its rows neither."""
    for attempt in history.attempts.values():
        is_absent = attempt.result in (Result.FAILED, Result.IDLE) or attempt.is_repeated
        if not is_absent:
            continue
        for table, chain in ending.chains.items():
            for link in chain:
                if link.serial == attempt.serial:
                    yield f"{_name(attempt)} was refused, but is {table} v{link.version}"


def transactions_are_whole(history: History, ending: Ending) -> Complaints:
    """An attempt on several tables is in all of them or in none."""
    for attempt in history.attempts.values():
        made = {
            table
            for table in attempt.parts
            if any(link.serial == attempt.serial for link in ending.chains.get(table, ()))
        }
        if made and made != set(attempt.parts):
            yield f"{_name(attempt)} is in {sorted(made)} only"


def claims_hold(history: History, ending: Ending) -> Complaints:
    """What was said of a commit id when asked stays true; in the end every answer is final."""
    for attempt in history.attempts.values():
        for claim in attempt.claims:
            actual = {
                table: link.version
                for table, chain in ending.chains.items()
                for link in chain
                if link.commit_id == claim.commit_id
            }
            if (claim.versions or claim.is_final) and claim.versions != actual:
                yield f"{_name(attempt)}: said to be {claim.versions}, is {actual}"
        if attempt.result is Result.UNKNOWN and not any(c.is_final for c in attempt.claims):
            yield f"{_name(attempt)} was unknown and never resolved"


def real_time_is_kept(history: History, ending: Ending) -> Complaints:
    """What had ended before another began has the lower version."""
    for table, chain in ending.chains.items():
        done = [
            (attempt.ended, attempt.versions[table])
            for attempt in history.attempts.values()
            if attempt.ended is not None and table in attempt.versions
        ]
        for link in chain:
            attempt = history.attempts.get(link.serial)
            if attempt is None:
                continue
            last = max((made for ended, made in done if ended < attempt.began), default=-1)
            if last >= link.version:
                yield f"{_name(attempt)} is {table} v{link.version}, but v{last} was done before"


def reads_are_versions(history: History, ending: Ending) -> Complaints:
    """A read shows exactly one version, one not older than what was acknowledged before it."""
    seen: dict[tuple[str, int, str], int] = {}
    for look in sorted(history.looks, key=lambda look: look.ended):
        place = f"{look.actor} read {look.table} v{look.version}"
        link = _link(ending, look.table, look.version)
        if link is None:
            yield f"{place}, which does not exist"
            continue
        if look.files is not None and look.files != link.files:
            yield f"{place}: its files differ by {sorted(look.files ^ link.files)}"
        if look.rows is not None and Counter(look.rows) != Counter(_rows(ending, link.files)):
            yield f"{place}: its rows are not those of the version"
        if _began_after(history, link, look.ended):
            yield f"{place} before anybody asked for it"
        if look.is_past:
            continue
        acknowledged = _acknowledged(history, look.table, look.began)
        if look.version < acknowledged:
            yield f"{place} after v{acknowledged} had been acknowledged"
        reader = (look.actor, look.incarnation, look.table)
        if look.version < seen.get(reader, 0):
            yield f"{place} after v{seen[reader]}"
        seen[reader] = max(look.version, seen.get(reader, 0))


def _acknowledged(history: History, table: str, moment: int) -> int:
    """The highest version that anybody had been told of at some moment."""
    return max(
        (
            attempt.versions[table]
            for attempt in history.attempts.values()
            if table in attempt.versions and (attempt.ended or 0) < moment
        ),
        default=0,
    )


def _began_after(history: History, link: Link, moment: int) -> bool:
    """Whether the attempt that made a version had not even begun at some moment."""
    attempt = history.attempts.get(link.serial)
    return attempt is not None and attempt.began > moment


@dataclass(frozen=True, slots=True)
class _Step:
    """One version with all that is needed to judge it."""

    history: History
    ending: Ending
    table: str
    attempt: Attempt
    before: frozenset[str]
    link: Link


def replay_agrees(history: History, ending: Ending) -> Complaints:
    """Applied one after the other to plain sets, the attempts give exactly what is there."""
    for table, chain in ending.chains.items():
        before: frozenset[str] = frozenset()
        for link in chain:
            attempt = history.attempts.get(link.serial)
            if attempt is not None and table in attempt.parts:
                for text in _replay(_Step(history, ending, table, attempt, before, link)):
                    yield f"{table} v{link.version} ({_name(attempt)}): {text}"
            before = link.files


def _replay(step: _Step) -> Complaints:
    kind, part, link = step.attempt.kind, step.attempt.parts[step.table], step.link
    added, removed = link.files - step.before, step.before - link.files
    new, gone = set(_rows(step.ending, added)), set(_rows(step.ending, removed))
    match kind:
        case Kind.APPEND:
            if removed or new != part.rows:
                yield f"removed {sorted(removed)}, added {sorted(new)}, not {sorted(part.rows)}"
        case Kind.OVERWRITE | Kind.REWRITE:
            if removed != part.removed or new != part.rows:
                yield f"removed {sorted(removed)}, not {sorted(part.removed)}, or added {new}"
            if kind is Kind.REWRITE and new != gone:
                yield f"rows changed: {sorted(gone - new)} gone, {sorted(new - gone)} new"
        case Kind.DELETE | Kind.REPLACE:
            yield from _replay_delete(step)
        case Kind.ROLLBACK:
            target = _link(step.ending, step.table, -1 if part.target is None else part.target)
            if target is None or link.files != target.files:
                yield f"the files are not those of v{part.target}"
        case Kind.CREATE | Kind.TAG | Kind.EVOLVE:
            if added or removed:
                yield f"a change of the definition added {added} or removed {removed}"
    names = link.tags if kind is Kind.TAG else link.columns
    if part.name and part.name not in names:
        yield f"{part.name} is not among {sorted(names)}"


def _replay_delete(step: _Step) -> Complaints:
    """Rows with the key are gone, but for those that a blind append may have added after it."""
    part = step.attempt.parts[step.table]
    old, new = set(_rows(step.ending, step.before)), set(_rows(step.ending, step.link.files))
    if new - old != part.rows:
        yield f"added {sorted(new - old)}, not {sorted(part.rows)}"
    if any(row.key != part.key for row in old - new):
        yield f"rows of other keys are gone: {sorted(old - new)}"
    left = {row for row in old & new if row.key == part.key}
    if not step.history.is_serializable:
        left -= _appended_meanwhile(step)
    if left:
        yield f"rows that it had to remove are still there: {sorted(left)}"


def _appended_meanwhile(step: _Step) -> set[Row]:
    """Rows of blind appends that were not acknowledged yet when the attempt began."""
    found: set[Row] = set()
    for link in step.ending.chains[step.table]:
        made = step.history.attempts.get(link.serial)
        if made is None or link.version >= step.link.version or made.kind is not Kind.APPEND:
            continue
        if made.result is not Result.COMMITTED or (made.ended or 0) > step.attempt.began:
            found |= made.parts[step.table].rows
    return found


def _rows(ending: Ending, files: frozenset[str]) -> list[Row]:
    return [row for path in files for row in ending.rows.get(path, ())]


def _link(ending: Ending, table: str, version: int) -> Link | None:
    chain = ending.chains.get(table, [])
    place = version - chain[0].version if chain else -1
    return chain[place] if 0 <= place < len(chain) else None


def _name(attempt: Attempt) -> str:
    return f"{attempt.actor}'s {attempt.kind} {attempt.serial}"


STATE_LAWS: tuple[StateLaw, ...] = (
    chain_is_unbroken,
    ids_are_unique,
    nothing_dangles,
    lists_are_sound,
    rows_are_never_doubled,
)

LAWS: tuple[Law, ...] = (
    versions_are_explained,
    committed_is_there,
    idle_was_right,
    failed_is_not_there,
    transactions_are_whole,
    claims_hold,
    real_time_is_kept,
    reads_are_versions,
    replay_agrees,
)
