"""docs/packages.csv lists every package that the toolkit and the embedded service bring along."""

import csv
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "docs" / "packages.csv"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def brought_along(extra: str) -> set[str]:
    """All distributions that `speechlab[extra]` requires on this machine, directly or not."""
    found: set[str] = set()
    todo = [("speechlab", frozenset({extra}))]
    seen = set()
    while todo:
        name, extras = todo.pop()
        if (canonical(name), extras) in seen:
            continue
        seen.add((canonical(name), extras))
        found.add(canonical(name))
        for text in metadata.distribution(name).requires or []:
            requirement = Requirement(text)
            wanted = [{"extra": chosen} for chosen in (*extras, "")]
            if requirement.marker is None or any(map(requirement.marker.evaluate, wanted)):
                todo.append((requirement.name, frozenset(requirement.extras)))
    return found - {"speechlab"}


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["toolkit", "local"])
def test_every_package_is_listed(extra):
    with PACKAGES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["license"] for row in rows)
    listed = {row["package"] for row in rows}
    packages = brought_along(extra)
    assert len(packages) > 20
    assert not packages - listed


def test_the_locks_pin_all_that_is_asked_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = {"quickstart": [*project["dependencies"], *extras["toolkit"], *extras["local"], *extras["lab"]]}
    wanted["dev"] = [*wanted["quickstart"], *extras["formats"], *extras["dask"]]
    for name, texts in wanted.items():
        lines = (ROOT / "tools" / "locks" / f"{name}.txt").read_text().splitlines()
        pins = [Requirement(line) for line in lines]
        for asked in map(Requirement, texts):
            found = [pin for pin in pins if canonical(pin.name) == canonical(asked.name)]
            assert found or asked.name == "speechlab", f"{name}: {asked}"
            assert all(asked.specifier.contains(next(iter(pin.specifier)).version) for pin in found)
