"""Every error of the tree survives pickling, with its text and its fields."""

import copy
import pickle

import pytest

from lakebed import errors

CLASSES = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_is_the_same_after_a_trip_to_another_process(
    kind: type[errors.LakebedError],
) -> None:
    error = kind("no such thing", hint="Look elsewhere", table="plant.readings", versions=[1, 2])
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert (back.message, back.hint) == ("no such thing", "Look elsewhere")
    assert back.fields == {"table": "plant.readings", "versions": [1, 2]}
    assert str(back) == str(error) == "no such thing. Look elsewhere"
    assert back.retryable is kind.retryable


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_without_hint_says_only_its_message(kind: type[errors.LakebedError]) -> None:
    back = copy.copy(kind("no such thing"))
    assert str(back) == "no such thing"
    assert back.fields == {}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_each_error_can_be_caught_as_the_base(kind: type[errors.LakebedError]) -> None:
    assert issubclass(kind, errors.LakebedError)


def test_the_list_of_names_is_every_class_of_the_module() -> None:
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.LakebedError)
    }
    assert set(errors.__all__) == classes
    assert errors.__all__ == sorted(errors.__all__)


def test_the_drawing_in_the_docstring_shows_every_class_below_its_parent() -> None:
    drawn: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        for word in line.split():
            if word in errors.__all__:
                drawn.append((line.index(word), word))
                break
    assert {word for _, word in drawn} == set(errors.__all__)
    for place, (column, word) in enumerate(drawn[1:], start=1):
        parent = next(name for left, name in reversed(drawn[:place]) if left < column)
        assert getattr(errors, word).__bases__ == (getattr(errors, parent),)


def test_only_what_may_succeed_when_repeated_is_retryable() -> None:
    retryable = {kind.__name__ for kind in CLASSES if kind.retryable}
    assert retryable == {"CommitConflictError", "UnavailableError"}


def test_an_unknown_commit_tells_the_id_to_resolve() -> None:
    error = errors.CommitUnknownError("no answer", commit_id="c1", table="t", base_version=3)
    assert pickle.loads(pickle.dumps(error)).commit_id == "c1"
    assert errors.CommitUnknownError("no answer").commit_id == ""
