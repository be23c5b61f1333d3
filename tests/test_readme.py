"""The README is a promise: what it names is there. (tests/test_wheel.py runs what it shows.)"""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


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


def list_anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text("utf-8")
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text):
        if "://" not in target:
            path = (ROOT / page).parent / target if target else ROOT / page
            assert path.exists(), target
            if anchor and path.suffix == ".md":
                assert anchor in list_anchors(path), f"{target}#{anchor}"
