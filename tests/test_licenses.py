"""docs/packages.csv lists every package that the toolkit and the embedded service bring along."""

from __future__ import annotations

import csv
import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PACKAGES = Path(__file__).parents[1] / "docs" / "packages.csv"


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


@pytest.mark.parametrize("extra", ["toolkit", "local"])
def test_every_package_is_listed(extra):
    with PACKAGES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["license"] for row in rows)
    listed = {row["package"] for row in rows}
    packages = brought_along(extra)
    assert len(packages) > 20
    assert not packages - listed
