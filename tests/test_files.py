"""Files that are there as a whole or not at all."""

from __future__ import annotations

import pytest

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
