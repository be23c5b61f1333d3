"""``speechlab study``: a question about a table, answered with a report; what changed since another, for CI jobs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from speechlab.cli._commands._studies.performing import (
    CODES,
    asked_again,
    columns_of,
    ended_with,
    performed,
    saved,
)
from speechlab.cli._options import (
    Command,
    Group,
    arguments_told,
    option,
    option_of,
    with_parameters,
)
from speechlab.errors import InvalidRequestError


class Change(StrEnum):
    """Changes that may fail a CI job."""

    WORSE = "worse"
    SLOWER = "slower"


_FAIL_IF = (
    "End with status 4 if a voice and language, a direction of translation, or the number of failed rows is "
    "significantly worse; or if a voice, system or direction is significantly slower. May be repeated."
)
STUDIES = ("recognition", "round-trip", "voices", "translation", "speech-to-speech")
"""The commands, each a function of :mod:`speechlab.evaluate`."""
_WORDS = list[str] | None
_INPUT = inspect.Parameter(
    "source",
    inspect.Parameter.KEYWORD_ONLY,
    annotation=Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="The table: .csv, .tsv, .jsonl or .parquet; or a folder in the layout of LibriSpeech or "
            "Common Voice.",
        ),
    ],
)
_FIRST = [
    ("out", Path, "--out", "REPORT", "Folder of the report, or one page that ends in .html."),
    ("service", _WORDS, "--service", "NAME=URL", """A service to compare; may be repeated. Without a URL it is the
    usual service. The key of NAME is SPEECHLAB_API_KEY_NAME, or else the one kept by speechlab login. [default: the
    usual service]"""),
    ("openai", _WORDS, "--openai", "NAME=JSON", """Service that speaks OpenAI's API, with its models (speech,
    transcription, translation) and its voices; may be repeated."""),
]  # fmt: skip
"""Options that all studies begin with: argument, type, option, its value, help."""
_COMPARED = [
    ("earlier", Path | None, "--earlier", "REPORT", """Folder of an earlier report of this study. Significant changes
    are reported."""),
    ("fail_if", list[Change] | None, "--fail-if", None, _FAIL_IF),
    ("junit", Path | None, "--junit", "FILE", """JUnit XML for a CI job: failed rows, the summary, and what is worse
    or slower."""),
    ("markdown", Path | None, "--markdown", "FILE", """Markdown to append the answer and the tables to, such as a CI
    job's summary."""),
]  # fmt: skip
_ROWS = [
    ("columns", _WORDS, "--column", "ROLE=NAME", """Name of a column in your table, such as text=sentence; may be
    repeated. Frequent names are recognised without it."""),
    ("split", _WORDS, "--split", None, "Part of a corpus, such as test; may be repeated."),
    ("n", int | None, "--sample", None, "Number of rows to draw at random, from each language its share."),
]  # fmt: skip
_SEED = "Seed of --sample and of noise. The same seed gives the same rows and noise."
_TERMS = ("keywords", _WORDS, "--keyword", "TERM", "Term to preserve; may be repeated.")
_CONTEXT = ("context", str | None, "--context", "TEXT", """Text that helps the translation, such as a description of
the source.""")  # fmt: skip
_OF_CALLS: dict[str, list[tuple[str, Any, str, str, str]]] = {
    "recognition": [("hotwords", _WORDS, "--hotword", "TERM", "Word to boost; may be repeated.")],
    "translation": [_TERMS, _CONTEXT],
    "speech-to-speech": [_TERMS, _CONTEXT],
}
"""Parameters of the calls that have options, besides the arguments of the study."""
_OTHERWISE = [
    ("voices", _WORDS, "--voice", "VOICE|NAME=VOICE", """Id or name of a voice; with several services NAME is its
    service. May be repeated. [default: all voices that speak the texts' languages]"""),
    ("voice", list[str], "--voice", "VOICE|NAME=VOICE", """Id or name of a voice that speaks this language; with
    several services one for each, where NAME is its service."""),
    ("settings", _WORDS, "--setting", "NAME=JSON", """Setting to compare: parameters of the call, under a name; may be
    repeated."""),
    ("hypotheses", _WORDS, "--hypothesis", "NAME=COLUMN|PATH", """Outputs that exist, under the name of a system: a
    column, or a file or folder of transcripts; may be repeated. Nothing is asked without --service."""),
    ("noise", str, "--noise", "KIND|FILE", """Kind of noise: speech (shaped like the recording), white, or a recording
    of noise."""),
    ("band_hz", _WORDS, "--band", "LOW-HIGH", "Limit the recordings to a band, in Hz; may be repeated."),
    ("glossary", Path | None, "--glossary", "FILE", """Terms to count in the translations: .json, .csv or .tsv
    (columns term and target), or a text with a term in each line."""),
    ("groups", str, "--groups", "COLUMN|none", """Column of recordings that belong together, such as those of one
    speaker, and count as one; none takes each row for itself."""),
]  # fmt: skip
"""Arguments that the command line writes in another way."""
_RECORDED = [
    ("audio_column", str | None, "--audio-column", "COLUMN", """Recordings that exist, in place of voices that speak:
    their column. Only the recogniser is asked: the usual service, or that of --service."""),
    ("voice_column", str | None, "--voice-column", "COLUMN", "Column of the voices or systems of these recordings."),
]  # fmt: skip
"""Options of studies of voices, whose recordings may exist."""


class Studies(Group):
    """The studies, whose options are read from their functions when they are needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(dict.fromkeys([*STUDIES, *super().list_commands(ctx)]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in STUDIES and cmd_name not in self.commands:
            self.add_command(command_of(cmd_name, performed), cmd_name)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    cls=Studies,
    help="Answer a question about a table with a report: a folder, or one page (.html). Exit status 0: done; 1: "
    "something failed, such as rows; 2: the command cannot be done as given; 4: --fail-if found a significant change "
    "for the worse.",
    no_args_is_help=True,
)


def command_of(name: str, perform: Callable[..., Any]) -> Any:
    """The command of a study, with its arguments as options, which calls a function of the study and of these."""
    from speechlab import batch, evaluate

    function = getattr(evaluate, name.replace("-", "_"))
    sources = map(arguments_told, (batch.run, evaluate.round_trip, function))
    texts = [item for source in sources for item in source.items()]
    descriptions = {parameter: text for parameter, text in texts if not text.startswith("As for ")}
    columns, otherwise = columns_of(function), {facts[0]: facts for facts in _OTHERWISE}
    options = [_INPUT, *(_option(facts) for facts in _FIRST)]
    parameters = inspect.signature(function).parameters
    for parameter in parameters.values():
        text, special = descriptions.get(parameter.name, ""), otherwise.get(parameter.name)
        if parameter.name in columns and parameter.name in CODES:
            text = f"Language code of all rows, if the table has no column {parameter.name}."
            options.append(option(parameter.name, str | None, None, help=text))
        elif special and (not text.startswith("Column of") or parameter.name == "groups"):
            options.append(_option(special, default=parameter.default))
        elif parameter.name not in {*columns, "audio", "voice", "seed", "stream"} and (
            plain_option := option_of(parameter, text)
        ):
            options.append(plain_option)
    options += [_option(facts) for facts in (_RECORDED if {"recogniser", "audio"} <= set(parameters) else ())]
    more = " The results with and without it are compared." if name in {"recognition", "translation"} else ""
    options += [_option(facts, more=more) for facts in _OF_CALLS.get(name, ())]
    options += [_option(facts) for facts in (_ROWS if name == "speech-to-speech" else [*_COMPARED, *_ROWS])]
    options.append(option("seed", int, 0, min=0, help=_SEED))
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    question = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
    alone.command(name, cls=Command, help=question)(with_parameters(partial(perform, function), options))
    return typer.main.get_command(alone)


def _option(
    facts: tuple[str, Any, str, str | None, str], *, default: Any = inspect.Parameter.empty, more: str = ""
) -> inspect.Parameter:
    name, kind, flag, metavar, text = facts
    needed = default is inspect.Parameter.empty and kind in {Path, list[str]}
    default_value = ... if needed else None if default is inspect.Parameter.empty else default or None
    return option(name, kind, default_value, flag, metavar=metavar, help=" ".join(text.split()) + more)


@app.callback(invoke_without_command=True)
def _again(
    ctx: typer.Context,
    report: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="REPORT", help="Saved report (folder or page): ask the same again, compare."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="REPORT", help="Where the new report goes, with --from.")
    ] = None,
    service: Annotated[list[str] | None, typer.Option(metavar="NAME=URL", help="As of the studies.")] = None,
    openai: Annotated[list[str] | None, typer.Option(metavar="NAME=JSON", help="As of the studies.")] = None,
    fail_if: Annotated[list[Change] | None, typer.Option(help=_FAIL_IF)] = None,
) -> None:
    if ctx.invoked_subcommand is not None:
        return
    if report is None or out is None:
        message = "--from REPORT --out REPORT asks the same again; or name a study, such as recognition"
        raise InvalidRequestError(message, parameter="from")
    asked_again(report, out, service or (), openai or (), fail_if or ())


@app.command("compare", cls=Command)
def compare(
    now: Annotated[Path, typer.Argument(metavar="REPORT", help="Folder of the later report.")],
    earlier: Annotated[Path, typer.Argument(metavar="EARLIER", help="Folder of the earlier report.")],
    out: Annotated[
        Path | None, typer.Option(metavar="REPORT", help="Folder, or page (.html), for what changed.")
    ] = None,
    fail_if: Annotated[list[Change] | None, typer.Option(help=_FAIL_IF)] = None,
) -> None:
    """Report the significant changes between two saved reports of one study."""
    from speechlab import evaluate

    if out is not None:
        evaluate.Report.check_path(out)
    ended_with(saved(now).compare(saved(earlier)), out, fail_if or ())
