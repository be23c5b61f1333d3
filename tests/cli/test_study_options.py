"""The options of studies come from a table and from signatures, whatever docstrings say."""

from __future__ import annotations

import inspect

from speechlab import evaluate
from speechlab.cli._commands._studies.performing import list_study_columns
from speechlab.cli._commands._studies.study import STUDIES, build_study_command


def test_no_word_of_a_docstring_decides_on_an_option(monkeypatch):
    def list_options(name):
        return [(parameter.name, parameter.opts) for parameter in build_study_command(name, print).params]

    for name in STUDIES:
        study = getattr(evaluate, name.replace("-", "_"))
        options, columns = list_options(name), list_study_columns(study)
        monkeypatch.setattr(study, "__doc__", "A question.\n\nArgs:\n    speed: Column of speeds.\n")
        assert list_options(name) == options
        assert list_study_columns(study) == columns


def test_each_column_of_a_study_is_in_the_table():
    for name in STUDIES:
        study = getattr(evaluate, name.replace("-", "_"))
        parameters = inspect.signature(study).parameters.values()
        of_recordings = {"audio", "voice"} if name in {"round-trip", "voices"} else set()
        by_default = {one.name for one in parameters if one.default == one.name} - of_recordings
        assert by_default == {column for column, is_needed in list_study_columns(study).items() if is_needed}


def test_margin_and_baseline_are_options():
    flags = {
        name: {flag for parameter in build_study_command(name, print).params for flag in parameter.opts}
        for name in STUDIES
    }
    assert {"--margin", "--baseline"} <= flags["recognition"] & flags["translation"]
    assert "--margin" in flags["voices"]
