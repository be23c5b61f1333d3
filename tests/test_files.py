"""Files that are there as a whole or not at all."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from speechlab import _files
from speechlab._files import compute_file_sha256, write_atomically


def test_a_file_takes_its_place_when_it_is_complete(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("before")
    with write_atomically(path) as draft:
        draft.write_text("after")
        assert path.read_text() == "before"
        assert draft.parent == tmp_path
        assert draft.name.startswith(".table.csv.")
    assert path.read_text() == "after"
    assert [each.name for each in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize("problem", [KeyboardInterrupt, ValueError, OSError])
def test_what_fails_leaves_what_was_there(tmp_path, problem):
    path = tmp_path / "table.csv"
    path.write_text("before")

    def fail():
        with write_atomically(path) as draft:
            draft.write_text("half")
            raise problem

    with pytest.raises(problem):
        fail()
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["table.csv"]


def test_the_error_names_the_file_and_not_the_draft(tmp_path):
    path = tmp_path / "nowhere" / "table.csv"
    with pytest.raises(FileNotFoundError) as caught, write_atomically(path) as draft:
        draft.write_text("text")
    assert caught.value.filename == str(path)


def test_the_hash_of_a_file(tmp_path):
    path = tmp_path / "three.txt"
    path.write_bytes(b"abc")
    assert compute_file_sha256(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_file_open_elsewhere_is_replaced_once_closed(tmp_path, monkeypatch, attempts):
    """Windows refuses to replace a file that another process has open."""
    refusals, replace = [1, 2], Path.replace

    def replace_later(source, target):
        if refusals:
            raise PermissionError(13, f"in use {refusals.pop()}")
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", replace_later)
    monkeypatch.setattr(_files, "_REPLACE_ATTEMPTS", attempts)
    monkeypatch.setattr(_files, "_REPLACE_PAUSE_S", 0)
    expected = pytest.raises(PermissionError, match="in use 2") if attempts == 1 else nullcontext()
    with expected, write_atomically(tmp_path / "a.txt") as draft:
        draft.write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ([] if attempts == 1 else ["a.txt"])
