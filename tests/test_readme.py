"""The README is a promise: what it shows runs as written, and what it names is there."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.engines
def test_its_python_runs_as_written(live_service, tmp_path, monkeypatch):
    monkeypatch.setenv("SPEECHLAB_BASE_URL", live_service.base_url)
    monkeypatch.setenv("SPEECHLAB_API_KEY", live_service.api_key)
    monkeypatch.setenv("SPEECHLAB_STORE", str(tmp_path / "store"))
    code = "\n".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL))
    checks = """
assert len(report.summary) >= 2 and report.summary["error_rate"].notna().all()
assert report._repr_html_().count("<audio") == 3
assert clip.duration_s > 1
assert spoken["status"].tolist() == ["ok", "ok", "error"]
lab.close()
"""
    done = subprocess.run(
        # the table has an empty cell, and the batch says so
        [sys.executable, "-W", "error", "-W", "ignore:1 of 3 rows failed", "-c", code + checks],
        check=False,
        capture_output=True,
        text=True,
        timeout=280,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_the_rate_that_it_states():
    from speechlab.metrics import error_rate

    (stated,) = re.findall(r"^(sl\.metrics\.error_rate.*)  # 0\.0$", README, re.MULTILINE)
    assert 'unit="reading"' in stated
    assert error_rate(["今日は良い天気"], ["きょうは良い天気"], unit="reading", language="ja").rate == 0.0


def test_its_two_commands():
    commands = re.findall(r"```bash\n(python3\.11 .*)\n```", README)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert [command.rpartition("&& ")[2] for command in commands] == [
        ".venv/bin/speechlab quickstart",
        ".venv/bin/pytest",
    ]
    for command in commands:
        for extra in re.findall(r"\[(\w+)\]", command):
            assert extra in extras


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text("utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), target
