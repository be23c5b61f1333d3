"""The options of studies come from a table and from signatures, whatever docstrings say."""

from __future__ import annotations

import inspect

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from speechlab import evaluate
from speechlab.cli import app
from speechlab.errors import InvalidRequestError

STUDIES = ("recognition", "round-trip", "voices", "translation")


def find_study(name):
    return getattr(evaluate, name.replace("-", "_"))


def list_options(name):
    studies = get_command(app).commands["study"]
    studies.commands.pop(name, None)  # or it would not be built anew
    return {parameter.name: parameter.opts for parameter in studies.get_command(None, name).params}


def test_no_word_of_a_docstring_decides_on_an_option(monkeypatch):
    for name in STUDIES:
        options = list_options(name)
        monkeypatch.setattr(
            find_study(name), "__doc__", "A question.\n\nArgs:\n    speed: Column of speeds.\n"
        )
        assert list_options(name) == options


def test_each_column_of_a_study_has_an_option(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n", "utf-8")
    for name in STUDIES:
        given = ["study", name, str(tmp_path / "a.csv"), "--out", str(tmp_path / "o"), "--column", "none=a"]
        with pytest.raises(InvalidRequestError, match="its columns are ") as refused:
            CliRunner().invoke(app, given, catch_exceptions=False)
        columns = set(str(refused.value).rpartition("its columns are ")[2].split(", "))
        parameters = inspect.signature(find_study(name)).parameters.values()
        of_recordings = {"audio", "voice"} if name in {"round-trip", "voices"} else set()
        by_default = {one.name for one in parameters if one.default == one.name} - of_recordings
        assert by_default <= columns, name


def test_margin_and_baseline_are_options():
    flags = {name: {flag for flags in list_options(name).values() for flag in flags} for name in STUDIES}
    assert {"--margin", "--baseline"} <= flags["recognition"] & flags["translation"]
    assert "--margin" in flags["voices"]
