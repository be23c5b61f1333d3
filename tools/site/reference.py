"""Pages of the reference: one for each room, and one for the command, from what the package says of itself.

Each public name of ``tests/public_names.txt`` gets an entry: functions, classes and errors from their docstrings,
constants and types from the docstring below their definition. A name that belongs to another room points there. Below
them are the values that they take and return, whose attributes are promised, but not the names of their classes.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sphinx.pycode import ModuleAnalyzer

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOMS = (
    "client", "batch", "metrics", "segments", "evaluate", "widgets", "plots", "audio", "text", "datasets", "errors",
    "notebook", "conform", "contract", "display", "engines", "service", "store", "cli",
)  # fmt: skip
"""In the order of the contents: what people use in notebooks first."""

MEMBERS = re.compile(r"<(\w+\.\w+): [^<>]*>")
"""Members of enumerations, as their repr has them."""
_LONGEST_VALUE = 200
_COMMAND_LISTS = re.compile(r"\*\*Commands\*\*:\n\n(\* .*\n)+\n?")
"""Lists of subcommands, whose texts typer cuts off; a section for each follows."""


@dataclass(frozen=True)
class Name:
    """A public name: the door that it comes through, what it is called there, and what it stands for."""

    door: str
    name: str
    value: Any

    @classmethod
    def at(cls, path: str) -> Self:
        """Look a name up, such as ``speechlab.metrics.error_rate``."""
        door, _, name = path.rpartition(".")
        return cls(door, name, getattr(importlib.import_module(door), name))

    @property
    def path(self) -> str:
        """As users write it, such as ``speechlab.metrics.error_rate``."""
        return f"{self.door}.{self.name}"

    @property
    def kind(self) -> str:
        """What Sphinx calls it: module, exception, class, function or data."""
        if inspect.ismodule(self.value):
            return "module"
        if inspect.isclass(self.value):
            return "exception" if issubclass(self.value, BaseException) else "class"
        return "function" if inspect.isroutine(self.value) else "data"

    @property
    def home(self) -> str:
        """The path under which its docstring is shown: its own, or that of the room that defines it."""
        if self.kind in {"data", "module"}:
            return self.path
        door, name = self.value.__module__, self.value.__qualname__
        promised = "._" not in door and name in getattr(importlib.import_module(door), "__all__", ())
        return f"{door}.{name}" if promised else self.path


def write_reference(names: list[str], folder: Path) -> None:
    """Write ``index.rst``, ``speechlab.rst``, a page for each room and ``command.md``.

    Args:
        names: The public names, with their doors.
        folder: Where the pages go.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pages: dict[str, list[Name]] = {"speechlab": [], **{f"speechlab.{room}": [] for room in ROOMS}}
    for path in names:
        member = Name.at(path)
        pages[member.door].append(member)
    for door, members in pages.items():
        members.extend(values_of(door))
    pages["speechlab.errors"] = [
        Name("speechlab.errors", one.name, one.value) for one in pages["speechlab"] if one.kind == "exception"
    ]
    for door, members in pages.items():
        write(folder / f"{door.removeprefix('speechlab.')}.rst", "\n".join(_page(door, members)))
    write(folder / "index.rst", "\n".join(_index()))
    write(folder / "command.md", _command())


def values_of(door: str) -> list[Name]:
    """Classes that no door promises, but of which promised functions and classes take, return or hold values."""
    module = importlib.import_module(door)
    promised = getattr(module, "__all__", ())
    reached = [getattr(module, name) for name in promised]
    lent = {
        name: value
        for name, value in sorted(vars(module).items())
        if name not in promised and inspect.isclass(value) and value.__module__ == door
    }
    values = []
    for value in reached:  # grows meanwhile
        words = _words_of(value)
        new = [name for name in lent if name in words and lent[name] not in reached]
        reached += [lent[name] for name in new]
        values += [Name(door, name, lent[name]) for name in new]
    return values


def _words_of(value: Any) -> set[str]:
    """The words of all annotations of a function or class."""
    members = [*vars(value).values()] if inspect.isclass(value) else [value]
    words = " ".join(map(str, getattr(value, "__annotations__", {}).values()))
    for function in filter(callable, (getattr(member, "fget", member) for member in members)):
        with suppress(ValueError, TypeError):
            words += str(inspect.signature(function))
    return set(re.findall(r"\w+", words))


def lent_names() -> list[str]:
    """Classes that a door lends to other rooms: signatures name them, and no page has them."""
    doors = {room: importlib.import_module(f"speechlab.{room}") for room in ROOMS}
    return [
        f"speechlab.{room}.{name}"
        for room, door in doors.items()
        for name, value in vars(door).items()
        if inspect.isclass(value) and name not in getattr(door, "__all__", ())
    ]


def resolve_annotations() -> None:
    """Give each module of the package the names that only type checkers import, so that annotations can be read."""
    for module in [module for name, module in sys.modules.items() if name.startswith("speechlab.")]:
        for line in _lines_for_type_checkers(Path(module.__file__ or "")):
            with suppress(ImportError, AttributeError):  # of what has stubs alone, or is not installed
                _import(line, vars(module))


def _lines_for_type_checkers(source: Path) -> Iterator[ast.stmt]:
    for node in ast.parse(source.read_text("utf-8")).body if source.suffix == ".py" else ():
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from node.body


def _import(line: ast.stmt, names: dict[str, Any]) -> None:
    if isinstance(line, ast.ImportFrom):
        source = importlib.import_module(line.module or "")
        for alias in line.names:
            names.setdefault(alias.asname or alias.name, getattr(source, alias.name))
    elif isinstance(line, ast.Import):
        for alias in line.names:
            names.setdefault(alias.asname or alias.name, importlib.import_module(alias.name))


def write(path: Path, text: str) -> None:
    """Write a page, unless it stands there already: Sphinx then reads it only once."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def _index() -> Iterator[str]:
    yield from _title("Reference", "=")
    yield "Every public name, from its docstring: one page for each room, one for the command, two for the contract."
    yield from ("", ".. toctree::", "   :hidden:", "", "   command", "   speechlab")
    yield from (f"   {page}" for page in (*ROOMS, "readings", "checks"))
    yield from ("", ".. list-table::", "   :class: summary", "   :widths: 1 2", "")
    yield from ("   * - :doc:`command`", "     - The commands and their options, as ``--help`` has them.")
    for page in ("speechlab", *ROOMS):
        room = importlib.import_module("speechlab" if page == "speechlab" else f"speechlab.{page}")
        yield from (f"   * - :doc:`{page}`", f"     - {_first_sentence(room)}")
    yield from (
        "   * - :doc:`readings`",
        "     - What the contract leaves open, and how service and client read it.",
        "   * - :doc:`checks`",
        "     - The checks of a deployment, by the statement that each tries.",
    )


def _page(door: str, members: list[Name]) -> Iterator[str]:
    yield from _title(door, "=")
    yield from (f".. automodule:: {door}", "   :no-members:", "")
    for title, kinds in (
        ("Rooms", {"module"}),
        ("Functions", {"function"}),
        ("Classes", {"class"}),
        ("Errors", {"exception"}),
        ("Values", {"class"}),
        ("Constants and types", {"data"}),
    ):
        promised = vars(sys.modules[door]).get("__all__", ())
        found = [
            one for one in members if one.kind in kinds and (one.name not in promised) == (title == "Values")
        ]
        if not found:
            continue
        yield from _title(title, "-")
        if kinds != {"data"}:
            yield from (".. list-table::", "   :class: summary", "   :widths: 1 2", "")
            for member in found:
                yield f"   * - :py:obj:`{member.name} <{member.home}>`"
                yield f"     - {_first_sentence(member.value)}"
            yield ""
        for member in found:
            yield from _entry(member)


def _entry(member: Name) -> Iterator[str]:
    if member.kind == "module" or member.home != member.path:
        return  # a row of the table leads to its page
    if member.kind == "data":
        yield from (
            f".. py:data:: {member.name}",
            f"   :module: {member.door}",
            f"   :value: {_value(member.value)}",
            "",
        )
        yield from (f"   {line}" for line in _text_below(member))
    else:
        yield f".. auto{member.kind}:: {member.path}"
        if member.kind != "function":
            yield "   :members:"
            if any(
                base.__module__.startswith("speechlab") and not _is_private(base)
                for base in member.value.__bases__
            ):
                yield "   :show-inheritance:"
        if member.kind == "class" and (above := _inherited_from(member.value)):
            yield f"   :inherited-members: {above}"
        yield ""


def _inherited_from(cls: type) -> str:
    """Classes at which inherited members end, where private classes of ours are among its bases; else nothing."""
    private = [
        base for base in cls.__mro__[1:] if base.__module__.startswith("speechlab") and _is_private(base)
    ]
    return ",".join(base.__name__ for base in cls.__mro__[1:] if base not in private) if private else ""


def _is_private(cls: type) -> bool:
    return "._" in cls.__module__ or cls.__name__.startswith("_")


def _first_sentence(value: Any) -> str:
    paragraph = (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
    sentence = re.split(r"(?<=\.) ", paragraph, maxsplit=1)[0]
    return re.sub(r":\w+:`~?([\w.]+)`", r"``\1``", sentence)  # roles may be relative to their class


def _value(value: Any) -> str:
    shown = (
        f"frozenset({{{', '.join(sorted(map(repr, value)))}}})"
        if isinstance(value, frozenset)
        else repr(value)
    )
    text = re.sub(r"<class '([\w.]+)'>", r"\1", MEMBERS.sub(r"\1", shown))
    text = re.sub(r"speechlab\.(\w+\.)*(?=[A-Z])|typing\.|collections\.abc\.", "", text)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE].rpartition(',')[0]}, …"


def _text_below(member: Name) -> list[str]:
    """The docstring below the definition of a constant, in the module that its door took it from."""
    module, name = member.door, member.name
    while True:
        source = Path(inspect.getfile(importlib.import_module(module)))
        text = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name))
        if text is not None:
            return text
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                taken = [alias.name for alias in node.names if (alias.asname or alias.name) == name]
                if taken:
                    module, name = node.module or "", taken[0]
                    break
        else:
            raise LookupError(f"{member.path} has no docstring below its definition")


def _title(text: str, line: str) -> tuple[str, str, str]:
    return text, line * len(text), ""


def _command() -> str:
    """The texts of ``--help``, as typer writes them down."""
    shown = subprocess.run(
        [sys.executable, "-m", "typer", "speechlab.cli._app", "utils", "docs", "--name", "speechlab"],
        check=True,
        capture_output=True,
        encoding="utf-8",
    ).stdout
    return _COMMAND_LISTS.sub("", shown.replace("# `speechlab`\n", "# The `speechlab` command\n", 1))
