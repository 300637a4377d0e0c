"""The oracle accepts a sound history and rejects each of many spoilt ones, by the law it breaks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lakebed.testing.history import (
    Attempt,
    Claim,
    Ending,
    History,
    Kind,
    Link,
    Look,
    Part,
    Result,
    Row,
)
from lakebed.testing.oracle import LAWS, STATE_LAWS, check

T, U = "t", "u"


@dataclass
class Story:
    """A history, and the state that it left; spoilt by the tests in place."""

    history: History
    ending: Ending

    def link(self, table: str, version: int) -> Link:
        return self.ending.chains[table][version]

    def relink(self, table: str, version: int, **changes: Any) -> None:
        self.ending.chains[table][version] = replace(self.link(table, version), **changes)

    def attempt(self, serial: int) -> Attempt:
        return self.history.attempts[serial]

    def relook(self, place: int, **changes: Any) -> None:
        self.history.looks[place] = replace(self.history.looks[place], **changes)


def row(key: int, serial: int, number: int = 0) -> Row:
    return Row(key, serial, number)


class Author:
    """Writes a sound story, one attempt after the other."""

    def __init__(self) -> None:
        self.history = History()
        self.chains: dict[str, list[Link]] = {T: [], U: []}
        self.rows: dict[str, tuple[Row, ...]] = {}
        self.add_link(T, 0, "create", frozenset())
        self.add_link(U, 0, "create", frozenset())

    def add_link(
        self, table: str, serial: int, operation: str, files: frozenset[str], **more: Any
    ) -> None:
        chain = self.chains[table]
        before = chain[-1].files if chain else frozenset()
        version = len(chain)
        inherited = {"tags": chain[-1].tags, "columns": chain[-1].columns} if chain else {}
        chain.append(
            Link(
                version=version,
                snapshot_id=version + 100,
                parent_id=chain[-1].snapshot_id if chain else None,
                table_id=table,
                commit_id=f"c{serial}" if serial else f"base-{table}",
                serial=serial,
                timestamp_ms=1000 + version,
                operation=operation,
                files=files,
                needs=frozenset(f"{table}/{path}" for path in files),
                summary=(len(files - before), len(before - files), len(files)),
                **{**inherited, **more},
            )
        )

    def do(
        self, kind: Kind, parts: dict[str, Part], files: dict[str, frozenset[str]], **more: Any
    ) -> Attempt:
        """Make an attempt that is committed to each of its tables."""
        token = more.pop("token", None)
        attempt = self.history.begin("w1", kind, parts, token)
        for table in parts:
            self.add_link(table, attempt.serial, kind.value, files[table], token=token, **more)
            attempt.versions[table] = len(self.chains[table]) - 1
        attempt.result, attempt.commit_id = Result.COMMITTED, f"c{attempt.serial}"
        attempt.ended = self.history.tick()
        return attempt

    def look(self, table: str, actor: str = "r1") -> None:
        link = self.chains[table][-1]
        rows = tuple(row for path in link.files for row in self.rows[path])
        self.history.looks.append(
            Look(
                actor=actor,
                incarnation=0,
                table=table,
                began=self.history.tick(),
                ended=self.history.tick(),
                version=link.version,
                files=link.files,
                rows=rows,
            )
        )

    def story(self) -> Story:
        present = {f"{table}/{p}" for table in self.chains for p in self.rows}
        heads = {t: (chain[-1].version, chain[-1].commit_id) for t, chain in self.chains.items()}
        told = {t: [(each.version, each.commit_id) for each in c] for t, c in self.chains.items()}
        ending = Ending(
            chains=self.chains,
            rows=self.rows,
            present=frozenset(present),
            heads=heads,
            told=told,
        )
        return Story(self.history, ending)


def add(added: Row) -> Part:
    return Part(rows=frozenset({added}))


def sound() -> Story:
    author = Author()
    author.rows |= {"a": (row(1, 1),), "b": (row(2, 2),), "c": (row(1, 3),)}
    author.rows |= {"d": (row(2, 4),), "e": (row(1, 3), row(3, 8)), "f": (row(3, 8),)}
    author.do(Kind.APPEND, {T: add(row(1, 1))}, {T: frozenset("a")})  # 1: v1
    author.do(Kind.APPEND, {T: add(row(2, 2))}, {T: frozenset("ab")}, token=("app", 1))  # 2: v2
    author.look(T)
    part = Part(rows=frozenset({row(1, 3)}), removed=frozenset("a"))
    author.do(Kind.OVERWRITE, {T: part}, {T: frozenset("bc")})  # 3: v3
    author.do(
        Kind.APPEND,
        {T: add(row(2, 4)), U: add(row(2, 4))},
        {T: frozenset("bcd"), U: frozenset("d")},
    )
    author.do(Kind.DELETE, {T: Part(key=2)}, {T: frozenset("c")})  # 5: v5
    author.do(Kind.TAG, {T: Part(name="good")}, {T: frozenset("c")}, tags=frozenset({"good"}))
    author.do(Kind.EVOLVE, {T: Part(name="x")}, {T: frozenset("c")}, columns=("x",))  # 7: v7
    author.do(Kind.APPEND, {T: add(row(3, 8))}, {T: frozenset("cf")}, token=("app", 2))  # 8: v8
    both = frozenset({row(1, 3), row(3, 8)})
    part = Part(rows=both, removed=frozenset("cf"))
    author.do(Kind.REWRITE, {T: part}, {T: frozenset("e")})  # 9: v9
    author.look(T)
    author.do(Kind.ROLLBACK, {T: Part(target=8)}, {T: frozenset("cf")})  # 10: v10
    author.look(T)
    refused = author.history.begin("w2", Kind.DELETE, {T: Part(key=1)})  # 11
    refused.result, refused.ended = Result.FAILED, author.history.tick()
    lost = author.history.begin("w2", Kind.DELETE, {T: Part(key=1)})  # 12
    lost.result, lost.ended, lost.commit_id = Result.UNKNOWN, author.history.tick(), "c12"
    author.add_link(T, lost.serial, "delete", frozenset("f"))  # v11: landed after all
    lost.claims.append(Claim(commit_id="c12", versions={}, is_final=False))
    lost.claims.append(Claim(commit_id="c12", versions={T: 11}, is_final=True))
    repeat = author.history.begin("w2", Kind.APPEND, {T: add(row(2, 2))}, ("app", 2))  # 13
    repeat.result, repeat.is_repeated, repeat.ended = Result.COMMITTED, True, author.history.tick()
    repeat.versions, repeat.commit_id = {T: 8}, "c8"
    author.history.begin("w3", Kind.APPEND, {T: add(row(9, 9))})  # 14: died, and nothing came of it
    idle = author.history.begin("w3", Kind.DELETE, {T: Part(key=7)})  # 15
    idle.result, idle.versions, idle.ended = Result.IDLE, {T: 11}, author.history.tick()
    return author.story()


def head_is_elsewhere(story: Story) -> None:
    story.ending.heads[T] = (10, "c10")


def link_is_missing(story: Story) -> None:
    del story.ending.chains[T][4]


def add_twice(story: Story) -> None:
    """The same commit was applied again at the end."""
    last, first = story.link(T, 11), story.link(T, 1)
    story.ending.chains[T].append(
        replace(
            first,
            version=12,
            snapshot_id=112,
            parent_id=last.snapshot_id,
            timestamp_ms=last.timestamp_ms + 1,
            files=last.files | {"a"},
            summary=(1, 0, 2),
        )
    )
    story.ending.heads[T] = (12, first.commit_id)


def lose_a_row(story: Story) -> None:
    """A later version silently lacks what an earlier one added."""
    story.relink(T, 2, files=frozenset("b"), summary=(1, 1, 1))


def never_resolved(story: Story) -> None:
    story.attempt(12).claims.pop()


def land_before_it_was_sent(story: Story) -> None:
    story.attempt(13).versions[T] = 11
    story.attempt(12).began = story.history.tick()


SPOILT: list[tuple[str, Callable[[Story], Any]]] = [
    ("chain_is_unbroken", lambda s: s.relink(T, 3, parent_id=7)),
    ("chain_is_unbroken", lambda s: s.relink(T, 3, timestamp_ms=s.link(T, 2).timestamp_ms)),
    ("chain_is_unbroken", lambda s: s.relink(T, 3, table_id="other")),
    ("chain_is_unbroken", lambda s: s.relink(T, 0, parent_id=1)),
    ("chain_is_unbroken", lambda s: s.ending.chains.update({U: []})),
    ("chain_is_unbroken", link_is_missing),
    ("chain_is_unbroken", lambda s: s.ending.told[T].pop()),
    ("chain_is_unbroken", lambda s: s.ending.told[T].insert(3, (3, "ghost"))),
    ("chain_is_unbroken", head_is_elsewhere),
    ("ids_are_unique", lambda s: s.relink(T, 3, commit_id="c2")),
    ("ids_are_unique", lambda s: s.relink(T, 3, snapshot_id=102)),
    ("ids_are_unique", lambda s: s.relink(T, 8, token=("app", 1))),
    ("ids_are_unique", lambda s: s.relink(T, 8, token=("app", 0))),
    ("ids_are_unique", add_twice),
    ("nothing_dangles", lambda s: s.relink(T, 2, needs=frozenset({"t/metadata/manifest-1"}))),
    ("nothing_dangles", lambda s: s.ending.rows.pop("b")),
    ("lists_are_sound", lambda s: s.relink(T, 2, duplicates=("a",))),
    ("lists_are_sound", lambda s: s.relink(T, 2, summary=(2, 0, 2))),
    ("rows_are_never_doubled", lambda s: s.ending.rows.update({"b": (row(1, 1),)})),
    ("rows_are_never_doubled", lambda s: s.ending.rows.update({"a": (row(1, 1), row(1, 1))})),
    ("versions_are_explained", lambda s: s.history.attempts.pop(3)),
    ("versions_are_explained", lambda s: s.attempt(3).parts.update({U: s.attempt(3).parts.pop(T)})),
    ("versions_are_explained", add_twice),
    ("committed_is_there", lambda s: s.attempt(3).versions.update({T: 12})),
    ("committed_is_there", lambda s: s.attempt(3).versions.update({T: 4})),
    ("committed_is_there", lambda s: s.attempt(4).versions.pop(U)),
    ("committed_is_there", lambda s: s.relink(T, 8, token=("app", 3))),
    ("committed_is_there", lambda s: s.relink(T, 3, serial=14)),
    ("idle_was_right", lambda s: s.attempt(15).versions.update({T: 12})),
    ("idle_was_right", lambda s: s.attempt(15).versions.update({T: 9})),
    ("idle_was_right", lambda s: s.attempt(15).parts.update({T: Part(key=3)})),
    ("failed_is_not_there", lambda s: s.relink(T, 11, serial=15)),
    ("failed_is_not_there", lambda s: setattr(s.attempt(12), "result", Result.FAILED)),
    ("failed_is_not_there", lambda s: setattr(s.attempt(8), "is_repeated", True)),
    ("transactions_are_whole", lambda s: s.ending.chains[U].pop()),
    (
        "claims_hold",
        lambda s: s.attempt(12).claims.append(replace(s.attempt(12).claims[0], is_final=True)),
    ),
    (
        "claims_hold",
        lambda s: s.attempt(12).claims.append(replace(s.attempt(12).claims[1], versions={T: 9})),
    ),
    ("claims_hold", never_resolved),
    ("real_time_is_kept", lambda s: setattr(s.attempt(2), "began", s.attempt(6).began)),
    ("real_time_is_kept", land_before_it_was_sent),
    ("reads_are_versions", lambda s: s.relook(0, version=99)),
    ("reads_are_versions", lambda s: s.relook(0, files=frozenset("a"))),
    ("reads_are_versions", lambda s: s.relook(0, rows=(row(1, 1),))),
    ("reads_are_versions", lambda s: s.relook(0, rows=(row(1, 1), row(2, 2), row(2, 2)))),
    ("reads_are_versions", lambda s: s.relook(2, version=8, files=frozenset("cf"), began=0)),
    ("reads_are_versions", lambda s: s.relook(2, version=8, files=frozenset("cf"), actor="r2")),
    ("reads_are_versions", lambda s: setattr(s.attempt(2), "began", s.history.looks[0].ended + 1)),
    ("reads_are_versions", lambda s: s.relook(0, is_past=True, files=frozenset("b"))),
    ("replay_agrees", lose_a_row),
    ("replay_agrees", lambda s: s.relink(T, 1, files=frozenset("ab"), summary=(2, 0, 2))),
    ("replay_agrees", lambda s: s.relink(T, 3, files=frozenset("abc"), summary=(1, 0, 3))),
    ("replay_agrees", lambda s: s.relink(T, 5, files=frozenset("cd"), summary=(0, 1, 2))),
    ("replay_agrees", lambda s: s.relink(T, 5, files=frozenset(), summary=(0, 3, 0))),
    ("replay_agrees", lambda s: s.relink(T, 6, files=frozenset(), summary=(0, 1, 0))),
    ("replay_agrees", lambda s: s.relink(T, 6, tags=frozenset())),
    ("replay_agrees", lambda s: s.relink(T, 7, columns=())),
    ("replay_agrees", lambda s: s.ending.rows.update({"e": (row(1, 3),)})),
    ("replay_agrees", lambda s: s.relink(T, 10, files=frozenset("e"), summary=(0, 0, 1))),
    ("replay_agrees", lambda s: s.ending.rows.update({"b": (row(2, 2), row(2, 77))})),
]


def test_a_sound_history_is_accepted() -> None:
    story = sound()
    assert check(story.history, story.ending) == []


@pytest.mark.parametrize(("law", "spoil"), SPOILT)
def test_a_spoilt_history_is_rejected_by_its_law(law: str, spoil: Callable[[Story], Any]) -> None:
    story = sound()
    spoil(story)
    assert law in {complaint.split(":")[0] for complaint in check(story.history, story.ending)}


def test_every_law_has_its_offence() -> None:
    assert {law.__name__ for law in (*STATE_LAWS, *LAWS)} == {law for law, _ in SPOILT}


def test_a_look_at_an_old_version_may_be_old() -> None:
    story = sound()
    story.relook(2, version=8, files=frozenset("cf"), is_past=True)
    assert check(story.history, story.ending) == []


def test_serializable_deletes_leave_no_concurrent_append() -> None:
    story = sound()
    story.attempt(4).ended = story.attempt(5).began + 1  # now they overlap
    story.relink(T, 5, files=frozenset("cd"), summary=(0, 1, 2))
    story.relink(T, 6, files=frozenset("cd"), summary=(0, 0, 2))
    delete_complaints = [c for c in check(story.history, story.ending) if "v5 (" in c]
    assert delete_complaints == []
    story.history.is_serializable = True
    assert any("still there" in c and "v5 (" in c for c in check(story.history, story.ending))
