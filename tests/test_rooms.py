"""The rooms hold: light imports, one door each, small folders and functions, no circles, names that are pinned."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.machinery import SourceFileLoader
from pathlib import Path

import grimp
import pytest

import speechlab as sl
from support.public_names import PINNED, public_names

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "speechlab"
BEHIND_A_DOOR = re.compile(r"^\s*(?:from|import)\s+(?P<module>speechlab\.(?P<room>\w+)\._\w+)", re.MULTILINE)
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
AT_THE_ROOT = [
    ".ci",
    ".gitattributes",
    ".github",
    ".gitignore",
    ".pre-commit-config.yaml",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "NOTICE",
    "README.md",
    "SECURITY.md",
    "benchmarks",
    "datasets",
    "deploy",
    "docs",
    "notebooks",
    "pyproject.toml",
    "src",
    "tests",
    "tools",
]
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


def loaded_after(statement: str, *, dots: bool = False) -> set[str]:
    code = (
        f"import sys\n{statement}\nprint(*sorted(name for name in sys.modules if {dots} or '.' not in name))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    return set(done.stdout.split())


def test_a_bare_import_loads_nothing_heavy():
    assert not loaded_after("import speechlab") & set(HEAVY)


@pytest.mark.slow
def test_the_client_loads_neither_tables_nor_the_room_for_them():
    loaded = loaded_after("import speechlab as sl; sl.Client; sl.AsyncClient; sl.connect", dots=True)
    assert "speechlab.client" in loaded
    assert not loaded & {"pandas", "pyarrow", "matplotlib", "ipywidgets", "soundfile", "speechlab.batch"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "order",
    [
        "import pandas; import speechlab as sl",
        "import speechlab as sl; sl.Client; import pandas; sl.batch",
    ],
)
def test_tables_know_speech_whichever_is_loaded_first(order):
    checks = [
        "pandas.DataFrame({'a': [1]}).speech.transcribe.__func__ is sl.batch.transcribe",
        "pandas.Series(['a']).speech.translate.__func__ is sl.batch.translate",
    ]
    loaded_after(f"{order}\nassert {' and '.join(checks)}")


WIDGETS_AND_ENGINES = {"matplotlib", "ipywidgets", "onnxruntime"}
TABLES_AND_SOUND = {"pandas", "soundfile"}


@pytest.mark.slow
def test_rooms_load_what_is_heavy_on_first_use():
    """One process loads the rooms after each other: what one may load comes after those that may not."""
    light = WIDGETS_AND_ENGINES | TABLES_AND_SOUND
    forbidden = {
        "contract": light | {"httpx2", "numpy"},
        "audio": light | {"httpx2", "av", "PIL"},
        "text": light | {"httpx2", "pyopenjtalk"},
        "metrics": light | {"httpx2"},
        "segments": light | {"praatio", "pympi", "pysubs2", "pyannote"},
        "engines": light | {"faster_whisper", "xllamacpp"},
        "listening": WIDGETS_AND_ENGINES | {"soundfile", "httpx2"},
        "client": light | {"starlette"},
        "batch": WIDGETS_AND_ENGINES | {"soundfile", "starlette"},
        "evaluate": WIDGETS_AND_ENGINES | {"soundfile", "starlette"},
    }
    code = f"""import importlib, sys
for room, forbidden in {forbidden}.items():
    importlib.import_module(f"speechlab.{{room}}")
    assert not forbidden & set(sys.modules), (room, forbidden & set(sys.modules))"""
    loaded_after(code)


def test_the_root_holds_what_is_listed():
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, timeout=60, check=True)
    assert sorted({path.split("/")[0] for path in done.stdout.decode().split("\0") if path}) == AT_THE_ROOT


def test_public_names_are_pinned_and_there():
    """A change of a public name is a line of a diff; ``poe names`` writes the file anew."""
    pinned, there = PINNED.read_text("utf-8").splitlines(), public_names()
    assert (set(pinned) - set(there), set(there) - set(pinned)) == (set(), set())
    assert pinned == sorted(pinned)
    for name in sl.__all__:
        assert getattr(sl, name) is not None
        assert (name in dir(sl)) is not hasattr(
            sl.errors, name
        )  # completion offers errors after ``sl.errors.`` alone
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sl.nothing


def test_each_room_has_one_door():
    for room in ROOMS:
        module = importlib.import_module(f"speechlab.{room}")
        assert module.__doc__, f"{room} does not say what it is"
        names = getattr(module, "__all__", [])
        assert len(names) == len(set(names)), room
        assert not [f"{room}.{name}" for name in names if not hasattr(module, name)]
        assert not names or set(dir(module)) == set(names), room  # what completion in a notebook offers
        folders = [path.parent for path in (SOURCE / room).glob("*/__init__.py")]
        public = [path.name for path in (*(SOURCE / room).glob("*.py"), *folders) if path.name[0] != "_"]
        assert not public, f"{room}: {public} should be private, behind the door of the room"


@pytest.mark.slow
def test_a_door_lends_what_others_take(monkeypatch):
    """A door imports what it promises, the values of that, and what another room, a test or a tool asks for."""
    monkeypatch.syspath_prepend(ROOT / "tools" / "site")
    from reference import values_of

    files = [
        path for folder in ("src", "tests", "tools", "benchmarks") for path in (ROOT / folder).rglob("*.py")
    ]
    words = {path: set(re.findall(r"\w+", path.read_text("utf-8"))) for path in files}
    idle = []
    for room in ROOMS:
        door = ast.parse((SOURCE / room / "__init__.py").read_text("utf-8"))
        names = {
            alias.asname or alias.name
            for node in ast.walk(door)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"speechlab.{room}.")
            for alias in node.names
        }
        promised = getattr(importlib.import_module(f"speechlab.{room}"), "__all__", ())
        lent = names - set(promised) - {value.name for value in values_of(f"speechlab.{room}")}
        taken = set().union(*(words[path] for path in files if SOURCE / room not in path.parents))
        idle += [f"{room}.{name}" for name in lent - taken]
    assert not idle


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


def test_a_module_behind_a_door_is_recognized():
    found = BEHIND_A_DOOR.search("if True:\n    from speechlab.store._blobs import Blobs\n")
    assert found is not None
    assert (found["module"], found["room"]) == ("speechlab.store._blobs", "store")
    assert BEHIND_A_DOOR.search("import speechlab.store._blobs as blobs")
    assert not BEHIND_A_DOOR.search(
        "from speechlab.store import Store\nfrom speechlab._require import require"
    )


def test_the_door_of_a_private_folder_only_says_what_is_in_it():
    doors = {path: path.read_text("utf-8") for path in SOURCE.glob("*/**/_*/__init__.py")}
    assert len(doors) > 50
    assert not [path for path, code in doors.items() if not re.fullmatch(r'"""[^\n]+\."""\n', code)]


# Sizes, and circles


def test_a_folder_has_ten_modules_at_most():
    modules = Counter(
        path.parent.relative_to(SOURCE).as_posix()
        for path in SOURCE.glob("*/**/*.py")
        if path.name != "__init__.py"
    )
    assert not {folder for folder, count in modules.items() if count > 10}


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


@pytest.mark.slow
def test_a_function_has_sixty_lines_at_most():
    long = []
    for path in SOURCE.rglob("*.py"):
        code = SourceFileLoader(path.stem, str(path)).get_code(path.stem)  # compiled already, as a rule
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


def test_lines_of_a_function_are_counted_without_docstring():
    assert list(functions(compile(COUNTED, "counted", "exec"))) == [("f", 4), ("C.g", 1)]


# Participles that do not end with -ed. Measures of the field keep their names.
_IRREGULAR = re.compile(
    "(told|heard|said|given|drawn|made|kept|held|found|shown|known|sent|built|lost|left|begun|written|taken|chosen|spoken"
    "|understood|gone|done|seen|met|paid)"
)
_MEASURES = {"timed_error_rate", "integrated_loudness"}


def _is_participle(name: str) -> bool:
    first = name.lstrip("_").split("_")[0]
    return _IRREGULAR.fullmatch(first) is not None or (
        len(first) > 4 and first.endswith("ed") and not first.endswith(("eed", "embed"))
    )


def test_functions_are_verbs():
    properties = {"property", "cached_property", "setter"}
    codes = {path: path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    wrong = [
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path, code in codes.items()
        if any(map(_is_participle, re.findall(r"\bdef\s+(\w+)", code)))  # the others need not be parsed
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _is_participle(node.name)
        and node.name not in _MEASURES
        and not any(getattr(d, "id", getattr(d, "attr", "")) in properties for d in node.decorator_list)
    ]
    assert wrong == [], "a function says what it does: recommend_voice, not recommended"
    assert [name for name in ("_told", "named", "feed", "read_checked") if _is_participle(name)] == [
        "_told",
        "named",
    ]


def test_a_name_is_that_of_one_class():
    classes = Counter(
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r"(?m)^class (\w+)", path.read_text("utf-8"))
    )
    assert not {name for name, count in classes.items() if count > 1}


def named_in_strings(code, package):
    """Modules of a package that code imports by ``import_module("…")``, ``__import__("…")`` or ``require("…")``."""
    if not re.search("import_module|__import__|require", code):
        return
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        function, text = getattr(node.func, "attr", getattr(node.func, "id", "")), node.args[0]
        if isinstance(text, ast.JoinedStr):  # the folder of f"package.folder.{name}"
            text = ast.Constant(str(getattr(text.values[0], "value", "")).rpartition(".")[0])
        if function not in {"import_module", "__import__", "require"} or not isinstance(text, ast.Constant):
            continue
        if str(text.value).split(".")[0] == package:
            yield str(text.value).partition(":")[0]


@cache
def imports(package):
    """Which modules each module imports: also in a function, for type checkers, or by a name in a string."""
    graph = grimp.build_graph(package, cache_dir=None)
    found = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    for module in found:
        code = Path(importlib.util.find_spec(module).origin).read_text("utf-8")
        found[module] |= set(named_in_strings(code, package)) & (set(found) - {module})
    return found


@pytest.mark.slow
def test_a_string_names_our_modules_only_in_the_root():
    by_strings = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if any(named_in_strings(path.read_text("utf-8"), "speechlab"))
    }
    assert by_strings == {"__init__.py"}


def test_rooms_take_pandas_from_one_place():
    """Tables have ``.speech`` whichever room loads pandas first."""
    loads = []
    for path in SOURCE.rglob("*.py"):
        code = path.read_text("utf-8")
        if not re.search(r"\bpandas\b", code):
            continue
        tree = ast.parse(code)
        checked = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in set(ast.walk(tree)) - checked:
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named = (
                isinstance(node, ast.Call) and node.args and getattr(node.args[0], "value", "") == "pandas"
            )
            by_name = named and ast.unparse(node.func) in {"later", "import_module", "require"}
            if by_name or any(module.partition(".")[0] == "pandas" for module in modules):
                loads.append(path.name)
    assert sorted(loads) == ["_accessor.py", "_pandas.py"]


@pytest.mark.slow
def test_no_modules_import_each_other_in_a_circle():
    TopologicalSorter(imports("speechlab")).prepare()


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, 3])
def test_no_folders_import_each_other_in_a_circle(depth):
    """Rooms, and the folders of a room; what stands beside those counts as a folder of its own."""
    folders = {}
    for module, imported in imports("speechlab").items():
        here, *there = (".".join(name.split(".")[:depth]) for name in (module, *imported))
        folders.setdefault(here, set()).update(set(there) - {here})
    TopologicalSorter(folders).prepare()


def test_a_circle_is_found_in_functions_and_in_strings(tmp_path, monkeypatch):
    for name, back in (
        ("circular", "import typing\nif typing.TYPE_CHECKING:\n    from circular import a\n"),
        ("stringed", "def f():\n    return importlib.import_module('stringed.a')\n"),
    ):
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "a.py").write_text(f"def f():\n    from {name}.b import g\n    g()\n")
        (package / "b.py").write_text(back)
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(CycleError, match=rf"{name}\.a.*{name}\.b|{name}\.b.*{name}\.a"):
            TopologicalSorter(imports(name)).prepare()


def test_tests_stand_in_the_folder_of_their_room():
    folders = {
        path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    assert folders - {"notebooks", "strangers", "support", "types"} <= set(ROOMS)


def test_tests_share_by_support_alone():
    shared = re.compile(r"^\s*(?:from|import) +(?:\.|tests\b|conftest\b)", re.MULTILINE)
    assert not [path for path in (ROOT / "tests").rglob("*.py") if shared.search(path.read_text("utf-8"))]


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == sl.__version__
    assert f"\nversion: {sl.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


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


def test_each_public_callable_has_an_example_or_a_reason():
    from support.examples import CALLABLES, SHOWN, WITHOUT

    excused = [name for names in WITHOUT.values() for name in names.split()]
    without = set(CALLABLES) - set(SHOWN)
    assert without - set(excused) == set(), "give each an example, or name it in WITHOUT with a reason"
    assert set(excused) - without == set(), "these have an example or are gone: take them out of WITHOUT"
    assert len(excused) == len(set(excused))
