"""The rooms hold: light imports, one door each, layers, names that are pinned."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import speechlab as sl

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "speechlab"
BEHIND_A_DOOR = re.compile(r"^\s*(?:from|import)\s+(?P<module>speechlab\.(?P<room>\w+)\._\w+)", re.MULTILINE)
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
HEAVY = (
    "pandas",
    "matplotlib",
    "ipywidgets",
    "soundfile",
    "onnxruntime",
    "httpx2",
    "numpy",
    "av",
    "pydantic",
    "rich",
)


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sorted(name for name in sys.modules if '.' not in name))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    return set(done.stdout.split())


def test_a_bare_import_loads_nothing_heavy():
    assert not loaded_after("import speechlab") & set(HEAVY)


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("contract", {"pandas", "matplotlib", "ipywidgets", "soundfile", "onnxruntime", "httpx2", "numpy"}),
        ("audio", {"pandas", "matplotlib", "ipywidgets", "soundfile", "onnxruntime", "httpx2", "av", "PIL"}),
        ("text", {"pandas", "matplotlib", "ipywidgets", "soundfile", "onnxruntime", "httpx2", "pyopenjtalk"}),
        ("client", {"pandas", "matplotlib", "ipywidgets", "soundfile", "onnxruntime", "starlette"}),
        ("engines", {"pandas", "matplotlib", "ipywidgets", "onnxruntime", "faster_whisper", "xllamacpp"}),
        ("metrics", {"matplotlib", "ipywidgets", "soundfile", "onnxruntime", "httpx2", "pandas"}),
        ("batch", {"matplotlib", "ipywidgets", "soundfile", "onnxruntime", "starlette"}),
    ],
)
def test_rooms_load_what_is_heavy_on_first_use(room, forbidden):
    assert not loaded_after(f"import speechlab.{room}") & forbidden


def test_public_names_are_pinned_and_there():
    assert sl.__all__ == sorted(sl.__all__, key=lambda name: (not name[0].isupper(), name))
    for name in sl.__all__:
        assert getattr(sl, name) is not None
        assert name in dir(sl)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sl.nothing


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_has_one_door(room):
    module = importlib.import_module(f"speechlab.{room}")
    assert module.__doc__, f"{room} does not say what it is"
    names = getattr(module, "__all__", [])
    assert len(names) == len(set(names))
    for name in names:
        assert hasattr(module, name)
    private = [path for path in (SOURCE / room).glob("*.py") if not path.name.startswith("_")]
    assert not private, f"{private} should be private, behind the door of its room"


def test_rooms_are_entered_by_their_doors():
    offenders = []
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0]
        for found in BEHIND_A_DOOR.finditer(path.read_text("utf-8")):
            if found["room"] != room:
                offenders.append(f"{path.relative_to(ROOT)}: {found['module']}")
    assert not offenders


def test_a_module_behind_a_door_is_recognised():
    found = BEHIND_A_DOOR.search("if True:\n    from speechlab.store._blobs import Blobs\n")
    assert found is not None
    assert (found["module"], found["room"]) == ("speechlab.store._blobs", "store")
    assert BEHIND_A_DOOR.search("import speechlab.store._blobs as blobs")
    assert not BEHIND_A_DOOR.search(
        "from speechlab.store import Store\nfrom speechlab._require import require"
    )


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == sl.__version__


def test_optional_packages_name_their_extra():
    from speechlab._require import EXTRAS, require

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(EXTRAS.values()) <= set(extras)
    EXTRAS["no_such_module"] = "local"
    try:
        with pytest.raises(sl.MissingDependencyError, match=r"pip install 'speechlab\[local\]'"):
            require("no_such_module")
    finally:
        del EXTRAS["no_such_module"]
