"""The rooms hold: light imports, one door each, small folders and functions, no circles, names that are pinned."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

import speechlab as sl
from support.public_names import PINNED, public_names

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
        (
            "segments",
            {"pandas", "matplotlib", "ipywidgets", "soundfile", "praatio", "pympi", "pysubs2", "pyannote"},
        ),
    ],
)
def test_rooms_load_what_is_heavy_on_first_use(room, forbidden):
    assert not loaded_after(f"import speechlab.{room}") & forbidden


def test_public_names_are_pinned_and_there():
    """A change of a public name is a line of a diff; ``poe names`` writes the file anew."""
    assert PINNED.read_text("utf-8").splitlines() == public_names()
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
    modules = [
        *(SOURCE / room).glob("*.py"),
        *(path.parent for path in (SOURCE / room).glob("*/__init__.py")),
    ]
    public = [path.name for path in modules if not path.name.startswith("_")]
    assert not public, f"{public} should be private, behind the door of its room"


def test_each_sub_room_says_what_it_is():
    silent = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*/__init__.py")
        if not path.read_text("utf-8").startswith('"""')
    ]
    assert not silent


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


@pytest.mark.parametrize(
    "path", sorted(SOURCE.glob("*/**/_*/__init__.py")), ids=lambda path: path.parent.name
)
def test_the_door_of_a_private_folder_only_says_what_is_in_it(path):
    assert re.fullmatch(r'"""[^\n]+\."""\n', path.read_text("utf-8"))


# The sizes of things, and circles. What is known to offend is being mended.

KNOWN = {
    "folders": {"client/_api", "client/_operations"},
    "module circles": {"batch", "client", "engines", "metrics"},
    "folder circles": {"batch", "client"},
    "classes": {
        "Answer", "Call", "Connections", "Job", "Lane", "Ledger", "Options", "RealtimeProtocol", "Recording",
        "Service", "Source", "Step", "Usage", "Word", "_Place",
    },
}  # fmt: skip


def test_a_folder_has_ten_modules_at_most():
    modules = Counter(
        path.parent.relative_to(SOURCE).as_posix()
        for path in SOURCE.glob("*/**/*.py")
        if path.name != "__init__.py"
    )
    assert {folder for folder, count in modules.items() if count > 10} <= KNOWN["folders"]


def functions(code):
    """All functions in compiled code: names, and how many lines their bodies have without docstrings."""
    for inner in code.co_consts:
        if not hasattr(inner, "co_code"):
            continue
        if inner.co_flags & 0x2 and not inner.co_name.startswith("<"):  # a function, not a class
            lines = [(first, last) for first, last, _, _ in inner.co_positions() if first and last]
            body = [pair for pair in lines if pair[0] > inner.co_firstlineno] or lines
            yield inner.co_qualname, max(last for _, last in body) - min(first for first, _ in body) + 1
        yield from functions(inner)


def test_a_function_has_sixty_lines_at_most():
    long = []
    for path in SOURCE.rglob("*.py"):
        code = compile(path.read_text("utf-8"), path, "exec")
        long += [f"{path.relative_to(SOURCE)}: {name}" for name, lines in functions(code) if lines > 60]
    assert not long


COUNTED = '''
def f(
    a,
):
    """Says.

    More.
    """
    if a:
        return (
            1
        )
class C:
    @property
    def g(self): return 1
'''


def test_the_lines_of_a_function_are_counted_without_its_docstring():
    assert list(functions(compile(COUNTED, "counted", "exec"))) == [("f", 4), ("C.g", 1)]


def test_a_name_is_that_of_one_class():
    classes = Counter(
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r"(?m)^class (\w+)", path.read_text("utf-8"))
    )
    assert {name for name, count in classes.items() if count > 1} <= KNOWN["classes"]


@pytest.fixture(scope="module")
def imports():
    """Which modules each module imports, be it inside a function or for type checkers; doors do not count."""
    graph = grimp.build_graph("speechlab", cache_dir=None)
    doors = {".".join(path.parent.relative_to(SOURCE.parent).parts) for path in SOURCE.rglob("__init__.py")}
    return {
        module: graph.find_modules_directly_imported_by(module) - doors for module in graph.modules - doors
    }


def circles(arrows):
    """The rooms in which things import each other in a circle, with one such circle each."""
    found = {}
    for room in {name.split(".")[1] for name in arrows}:
        inside = {name: set(to) for name, to in arrows.items() if name.split(".")[1] == room}
        try:
            TopologicalSorter(inside).prepare()
        except CycleError as error:
            found[room] = " < ".join(error.args[1])
    return found


def test_no_modules_import_each_other_in_a_circle(imports):
    found = circles(imports)
    assert set(found) <= KNOWN["module circles"], found


def test_no_folders_of_a_room_import_each_other_in_a_circle(imports):
    """What stands beside the folders of a room counts as a folder of its own."""
    arrows = {}
    for module, imported in imports.items():
        box = module.split(".")[:3]
        inside = {tuple(to.split(".")[:3]) for to in imported} - {tuple(box)}
        arrows.setdefault(".".join(box), set()).update(".".join(to) for to in inside if to[1] == box[1])
    found = circles(arrows)
    assert set(found) <= KNOWN["folder circles"], found


def test_a_circle_is_found():
    arrows = {"x.room.a": {"x.room.b"}, "x.room.b": {"x.room.a"}, "x.other.c": {"x.room.a"}}
    assert circles(arrows) in ({"room": f"x.room.{a} < x.room.{b} < x.room.{a}"} for a, b in ("ab", "ba"))


def test_tests_stand_in_the_folder_of_their_room():
    folders = {
        path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    assert folders - {"notebooks", "support"} <= set(ROOMS)


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
