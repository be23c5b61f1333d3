"""The exception tree: drawn as built, survives pickling, says something."""

import copy
import pickle
import re

import pytest

from speechlab import errors

CLASSES = [getattr(errors, name) for name in errors.__all__]


def test_the_drawing_is_the_tree():
    drawn: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"([│├└─ ]*)([A-Z]\w+(?:Error|Miss))\b", line):
            drawn.append((len(found[1]) // 4, found[2]))
    assert {name for _, name in drawn} == set(errors.__all__)
    parents: dict[int, str] = {}
    for depth, name in drawn:
        parents[depth] = name
        if depth:
            assert issubclass(getattr(errors, name), getattr(errors, parents[depth - 1]))


@pytest.mark.parametrize("kind", CLASSES)
def test_errors_survive_pickling_and_copying(kind):
    error = kind("what was wrong")
    error.attempts = 3
    for twin in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(twin) is kind
        assert vars(twin) == vars(error)
        assert str(twin) == str(error)
        assert "what was wrong" in str(twin)


def test_facts_of_api_errors():
    error = errors.RateLimitError(
        "slow down", status=429, name="ErrRateLimited", attempts=4, retry_after_s=2.5
    )
    assert (
        str(error) == "HTTP 429 ErrRateLimited: slow down (after 4 attempts; the service asked to wait 2.5 s)"
    )
    assert error.retryable
    assert error.retry_after_s == 2.5
    assert not errors.BadRequestError("no", status=400).retryable
