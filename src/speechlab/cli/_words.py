"""Messages of the package in the words of the command line: options take the place of Python's arguments."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperOption

from speechlab.errors import APIError, SpeechLabError

if TYPE_CHECKING:
    from collections.abc import Mapping

_ALIASES = {
    "n": "sample",
    "band_hz": "band",
    "store": "out",
    "format": "segments_format",
    "cost": "max_cost",
}
"""Arguments whose options have other names, in commands that have no option of the argument's name."""
_ARGUMENT = re.compile(
    r"""(?<!\S)(?P<name>[a-z_]+)=(?P<value>'[^']*'|"[^"]*"|\{[^{}]*\}|…|-?[\w.]*\w)?(?![^\s,.;:)])
    |\((?P<alone>[a-z]+_[a-z_]+)\) |--[\w-]+[ ]\S+ | (?<!\w)'[^']*' | "[^"]*" """,
    re.VERBOSE,
)
"""An argument with its value as a word of its own, not as part of a path or an address; or alone in brackets (none of
one word, which prose has there, too); or an option with its value, or a quotation, which stay as they are."""
_ENTRY = re.compile(r"'(\w+)': '?([^',]*)'?")
_OR_NONE = ", or None"
_OR_A_VARIABLE = re.compile(r"\bas \w+= or (?=in SPEECHLAB_)")
"""An argument that no command has, before the variable that does the same."""
_options: ContextVar[Mapping[str, TyperOption]] = ContextVar("options of the command")


class Command(TyperCommand):
    """A command whose messages name its own options where Python's would name arguments."""

    def invoke(self, ctx: Any) -> Any:
        token = _options.set(_by_argument(self.params))
        try:
            return super().invoke(ctx)
        except SpeechLabError as error:
            if not isinstance(error, APIError):  # whose message is the service's
                error.args = (_subject(error), *error.args[1:])
            if error.advice:
                error.advice = in_options(error.advice)
            raise
        finally:
            _options.reset(token)


def in_options(text: str) -> str:
    """Write the arguments that a message names as options of the command that runs: ``back=True`` as ``--back``."""
    options = _options.get({})

    def written(found: re.Match[str]) -> str:
        option = options.get(found["name"] or found["alone"] or "")
        if option is None:
            return found[0]
        return f"({option.opts[0]})" if found["alone"] else _with_value(option, found["value"] or "")

    return _ARGUMENT.sub(written, _OR_A_VARIABLE.sub("", text))


def _subject(error: SpeechLabError) -> str:
    """The message of an error; if it begins with the argument at fault, it then begins with the option."""
    first, space, rest = error.message.partition(" ")
    option = _options.get({}).get(first) if first == getattr(error, "parameter", None) else None
    if option is None:
        return in_options(error.message)
    return f"{option.opts[0]}{space}{in_options(rest.removesuffix(_OR_NONE))}"


def _with_value(option: TyperOption, value: str) -> str:
    name = option.secondary_opts[0] if value == "False" and option.secondary_opts else option.opts[0]
    if option.is_flag:
        return name
    plain = _ENTRY.sub(r"\1=\2", value[1:-1]) if value[:1] in {"{", "'", '"'} else value
    return f"{name} {plain}".rstrip()


def _by_argument(parameters: list[Any]) -> dict[str, TyperOption]:
    """Options by the names of the arguments that they stand for."""
    found = {one.name: one for one in parameters if isinstance(one, TyperOption) and one.name}
    several = {
        f"{name}s": option for name, option in found.items()
    }  # --voice may be repeated, voices= is a list
    others = {name: found[other] for name, other in _ALIASES.items() if other in found}
    return {**several, **others, **found}
