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
    list_study_columns,
    load_report,
    perform_study,
    print_changes_and_exit,
    repeat_study,
)
from speechlab.cli._options import (
    Command,
    Group,
    option,
    parse_argument_help,
    to_option,
    wrap_with_parameters,
)
from speechlab.errors import InvalidRequestError


class Change(StrEnum):
    """Changes that may fail a CI job."""

    WORSE = "worse"
    SLOWER = "slower"


_FAIL_IF_HELP = (
    "End with status 4 if a voice and language, a direction of translation, or the number of failed rows is "
    "significantly worse; or if a voice, system or direction is significantly slower. May be repeated."
)
# The commands, each a function of :mod:`speechlab.evaluate`.
STUDIES = ("recognition", "round-trip", "voices", "translation")
_TextList = list[str] | None
_INPUT_ARGUMENT = inspect.Parameter(
    "source",
    inspect.Parameter.KEYWORD_ONLY,
    annotation=Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="The table: a folder of recordings (a.txt beside a.wav is its text), .csv, .tsv, .jsonl or "
            ".parquet; or a folder in the layout of LibriSpeech or Common Voice; or an archive, or the address of "
            "one of these (https://, s3://).",
        ),
    ],
)
# Options that all studies begin with: argument, type, option, its value, help.
_COMMON_OPTIONS = [
    ("out", Path | None, "--out", "REPORT", """Folder of the report, or one page that ends in .html. [default: the
    name of INPUT and of the study]"""),
    ("service", _TextList, "--service", "NAME=URL", """A service to compare; may be repeated. Without a URL it is the
    usual service. The key of NAME is SPEECHLAB_API_KEY_NAME, or else the one kept by speechlab login. [default: the
    usual service]"""),
    ("openai", _TextList, "--openai", "NAME=JSON", """Service that speaks OpenAI's API, with its models (speech,
    transcription, translation) and its voices; may be repeated."""),
]  # fmt: skip
_COMPARISON_OPTIONS = [
    ("earlier", Path | None, "--earlier", "REPORT", """Folder of an earlier report of this study. Significant changes
    are reported."""),
    ("fail_if", list[Change] | None, "--fail-if", None, _FAIL_IF_HELP),
    ("junit", Path | None, "--junit", "FILE", """JUnit XML for a CI job: failed rows, the summary, and what is worse
    or slower."""),
    ("markdown", Path | None, "--markdown", "FILE", """Markdown to append the answer and the tables to, such as a CI
    job's summary."""),
]  # fmt: skip
_ROW_OPTIONS = [
    ("columns", _TextList, "--column", "ROLE=NAME", """Name of a column in your table, such as text=sentence; may be
    repeated. Frequent names are recognized without it."""),
    ("split", _TextList, "--split", None, "Part of a corpus, such as test; may be repeated."),
    ("n", int | None, "--sample", None, "Number of rows to draw at random, from each language its share."),
]  # fmt: skip
_SEED_HELP = "Seed of --sample and of noise. The same seed gives the same rows and noise."
_KEYWORD_OPTION = ("keywords", _TextList, "--keyword", "TERM", "Term to preserve; may be repeated.")
_CONTEXT_OPTION = ("context", str | None, "--context", "TEXT", """Text that helps the translation, such as a
description of the source.""")  # fmt: skip
# Parameters of the calls that have options, besides the arguments of the study.
_CALL_OPTIONS: dict[str, list[tuple[str, Any, str, str, str]]] = {
    "recognition": [("hotwords", _TextList, "--hotword", "TERM", "Word to boost; may be repeated.")],
    "translation": [_KEYWORD_OPTION, _CONTEXT_OPTION],
}
# Help for arguments that all studies have in common.
_SHARED_HELP = {
    "store": "Where results are kept and reused.",
    "concurrency": "Maximum of calls at once.",
    "respell": "A lexicon (CSV) of words that voices misread, with the spellings that are sent.",
    "give_up_after_s": "Seconds without a success after which the run gives up the service and stops.",
    "speed_concurrency": "Timed calls that begin at the same time, from 1 to 256.",
}
# Arguments that the command line writes in another way.
_SPECIAL_OPTIONS = [
    ("voices", _TextList, "--voice", "VOICE|NAME=VOICE", """Id or name of a voice; with several services NAME is its
    service. May be repeated. [default: all voices that speak the texts' languages]"""),
    ("settings", _TextList, "--setting", "NAME=JSON", """Setting to compare: parameters of the call, under a name;
    may be repeated."""),
    ("hypotheses", _TextList, "--hypothesis", "NAME=COLUMN|PATH", """Outputs that exist, under the name of a system: a
    column, or a file or folder of transcripts; may be repeated. Nothing is asked without --service."""),
    ("noise", str, "--noise", "KIND|FILE", """Kind of noise: speech (shaped like the recording), white, or a recording
    of noise."""),
    ("band_hz", _TextList, "--band", "LOW-HIGH", "Limit the recordings to a band, in Hz; may be repeated."),
    ("glossary", Path | None, "--glossary", "FILE", """Terms to count in the translations: .json, .csv or .tsv
    (columns term and target), or a text with a term in each line."""),
    ("prices", Path | None, "--prices", "FILE", """JSON with the price of each system, such as {"ours": {"per_hour":
    0.36, "currency": "EUR"}}, for the cost, and for cheaper systems that are no worse."""),
    ("groups", str, "--groups", "COLUMN|none", """Column of recordings that belong together, such as those of one
    speaker, and count as one; none takes each row for itself."""),
]  # fmt: skip
# Arguments about systems of functions, which a command line has not.
_OF_FUNCTIONS = ("stream", "other_batch_size")
# Options of studies of voices, whose recordings may exist.
_RECORDING_OPTIONS = [
    ("audio_column", str | None, "--audio-column", "COLUMN", """Recordings that exist, in place of voices that speak:
    their column. Only the recognizer is asked: the usual service, or that of --service."""),
    ("voice_column", str | None, "--voice-column", "COLUMN", "Column of the voices or systems of these recordings."),
]  # fmt: skip


class StudyGroup(Group):
    """The studies, whose options are read from their functions when they are needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(dict.fromkeys([*STUDIES, *super().list_commands(ctx)]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in STUDIES and cmd_name not in self.commands:
            self.add_command(build_study_command(cmd_name, perform_study), cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.list_commands(ctx):  # the message proposes one of the commands that were made
            for name in STUDIES:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=StudyGroup,
    help="Answer a question about a table with a report: a folder, or one page (.html). Exit status 0: done; 1: "
    "something failed, such as rows; 2: the command cannot be done as given; 4: --fail-if found a significant change "
    "for the worse.",
    no_args_is_help=True,
)


def build_study_command(name: str, perform: Callable[..., Any]) -> Any:
    """The command of a study, with its arguments as options, which calls a function of the study and of these."""
    from speechlab import evaluate

    function = getattr(evaluate, name.replace("-", "_"))
    descriptions = parse_argument_help(function) | _SHARED_HELP
    columns = list_study_columns(function)
    otherwise = {facts[0]: facts for facts in _SPECIAL_OPTIONS}
    options = [_INPUT_ARGUMENT, *(_build_option_parameter(facts) for facts in _COMMON_OPTIONS)]
    parameters = inspect.signature(function).parameters
    for parameter in parameters.values():
        text, special = descriptions.get(parameter.name, ""), otherwise.get(parameter.name)
        if parameter.name in columns and parameter.name in CODES:
            text = f"Language code of all rows, if the table has no column {parameter.name}."
            options.append(option(parameter.name, str | None, None, help=text))
        elif special:
            options.append(_build_option_parameter(special, default=parameter.default))
        elif parameter.name not in {*columns, "audio", "voice", "seed", *_OF_FUNCTIONS} and (
            plain_option := to_option(parameter, text)
        ):
            options.append(plain_option)
    options += [
        _build_option_parameter(facts)
        for facts in (_RECORDING_OPTIONS if {"recognizer", "audio"} <= set(parameters) else ())
    ]
    more = " The results with and without it are compared." if name in {"recognition", "translation"} else ""
    options += [_build_option_parameter(facts, more=more) for facts in _CALL_OPTIONS.get(name, ())]
    options += [_build_option_parameter(facts) for facts in (*_COMPARISON_OPTIONS, *_ROW_OPTIONS)]
    options.append(option("seed", int, 0, min=0, help=_SEED_HELP))
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    question = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
    alone.command(name, cls=Command, help=question)(wrap_with_parameters(partial(perform, function), options))
    return typer.main.get_command(alone)


def _build_option_parameter(
    facts: tuple[str, Any, str, str | None, str], *, default: Any = inspect.Parameter.empty, more: str = ""
) -> inspect.Parameter:
    name, kind, flag, metavar, text = facts
    needed = default is inspect.Parameter.empty and kind in {Path, list[str]}
    default_value = ... if needed else None if default is inspect.Parameter.empty else default or None
    return option(name, kind, default_value, flag, metavar=metavar, help=" ".join(text.split()) + more)


@app.callback(invoke_without_command=True)
def _repeat_saved_study(
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
    service: Annotated[list[str] | None, typer.Option(metavar="NAME=URL", help="As in the studies.")] = None,
    openai: Annotated[list[str] | None, typer.Option(metavar="NAME=JSON", help="As in the studies.")] = None,
    fail_if: Annotated[list[Change] | None, typer.Option(help=_FAIL_IF_HELP)] = None,
) -> None:
    if ctx.invoked_subcommand is not None:
        return
    if report is None or out is None:
        message = "--from REPORT --out REPORT asks the same again; or name a study, such as recognition"
        raise InvalidRequestError(message, parameter="from")
    repeat_study(report, out, service or (), openai or (), fail_if or ())


@app.command("compare", cls=Command)
def compare(
    now: Annotated[Path, typer.Argument(metavar="REPORT", help="Folder of the later report.")],
    earlier: Annotated[Path, typer.Argument(metavar="EARLIER", help="Folder of the earlier report.")],
    out: Annotated[
        Path | None, typer.Option(metavar="REPORT", help="Folder, or page (.html), for what changed.")
    ] = None,
    fail_if: Annotated[list[Change] | None, typer.Option(help=_FAIL_IF_HELP)] = None,
) -> None:
    """Report the significant changes between two saved reports of one study."""
    from speechlab import evaluate

    if out is not None:
        evaluate.Report.check_path(out)
    print_changes_and_exit(load_report(now).compare(load_report(earlier)), out, fail_if or ())
