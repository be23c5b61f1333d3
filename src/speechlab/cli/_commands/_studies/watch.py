"""``speechlab watch``: a pinned set asked again, and whether anything has become worse since the first time."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.markup import escape

from speechlab._files import compute_file_sha256
from speechlab.cli._commands._studies.performing import WORSE, read_and_run_study
from speechlab.cli._commands._studies.study import STUDIES, build_study_command
from speechlab.cli._console import console, errors, print_headline, say
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.evaluate import Report

_WATCH_KEYS = {"study", "input", "out"}
# Options of a study that a watch has no use for.
_EXCESS_OPTIONS = {"store", "earlier", "fail-if", "junit", "markdown"}
_EXAMPLE = 'study = "recognition", input = "set.csv" and out = "watched"'
_PIN_FILE = "pinned.json"


def watch(
    study: Annotated[
        Path,
        typer.Argument(metavar="STUDY", help="A TOML file: study, input, out, and options of the study."),
    ],
    again: Annotated[
        bool, typer.Option("--again/--look", help="Ask once more, or only look at the runs so far.")
    ] = True,
) -> int:
    """Repeat a study on a fixed set, and test whether its results have become worse.

    Run it on a schedule of your own, by cron or in CI. Each run is a folder in ``out``, and report.html there shows
    the series, what has changed, and the first run against the newest. The exit status is 4 if something is shown to
    have become worse, 1 if rows of this run failed, and 2 if the study cannot be made as given.
    """
    from speechlab import evaluate

    options = _read_watch_file(study)
    home = study.absolute().parent
    source, folder = (home / Path(str(options.pop(name))).expanduser() for name in ("input", "out"))
    name = str(options.pop("study"))
    pinned = _check_and_hash_table(source, folder)
    runs = [evaluate.Report.load(record.parent) for record in sorted(folder.glob("*/record.json"))]
    failed = _repeat_and_save_study(name, options, source, folder, runs) if again else 0
    if again:
        (folder / _PIN_FILE).write_bytes(orjson.dumps(pinned))
    report = evaluate.watch(runs, title=f"Watch: {study.stem}")
    written = report.save(folder / "report.html")
    say(report.answer)
    print_headline(report.title, report.headline())
    for sentence in (*(finding for finding in report.findings if finding.shown), *report.notes):
        say(str(sentence))
    console.print(f"report: {escape(str(written))}", soft_wrap=True)
    if failed:
        errors.print(f"[yellow]{failed:,} rows of this run failed[/]")
    return WORSE if report.summary["changed"].any() else int(bool(failed))


def _read_watch_file(study: Path) -> dict[str, Any]:
    """Return the file of a watch: what is asked, and the options of the study by their long names."""
    try:
        table = tomllib.loads(study.read_text("utf-8"))
    except (OSError, ValueError) as error:
        message = f"{study} cannot be read ({error}); give a TOML file with {_EXAMPLE}"
        raise InvalidRequestError(message, parameter="study") from error
    options = {name.replace("_", "-"): value for name, value in table.items()}
    if absent := [name for name in ("study", "input", "out") if name not in options]:
        message = f"{study} has no {absent[0]!r}; a watch begins with {_EXAMPLE}"
        raise InvalidRequestError(message, parameter="study")
    if options["study"] not in STUDIES:
        message = f"{study}: study = {options['study']!r} cannot be watched; {', '.join(STUDIES)} can"
        raise InvalidRequestError(message, parameter="study")
    if reserved := sorted(_EXCESS_OPTIONS & set(options)):
        message = f"{study}: {reserved[0]} is no option of a watch, which asks anew and compares by itself; remove it"
        raise InvalidRequestError(message, parameter="study")
    return options


def _check_and_hash_table(source: Path, folder: Path) -> dict[str, str]:
    """Return the hash of the table; another than that of the first run is refused."""
    if not source.exists():
        raise InvalidRequestError(f"{source} is not there; give the table as input", parameter="study")
    pin, digest = folder / _PIN_FILE, compute_file_sha256(source) if source.is_file() else ""
    if pin.is_file() and orjson.loads(pin.read_bytes()).get("sha256") != digest:
        message = (
            f"{source} is not the table of the first run any more; a watched set stays as it is, so put the old one "
            "back, or begin another watch by another `out`"
        )
        raise InvalidRequestError(message, parameter="study")
    return {"input": source.name, "sha256": digest}


def _repeat_and_save_study(
    name: str, options: Mapping[str, Any], source: Path, folder: Path, runs: list[Report]
) -> int:
    """Make the study anew, keep it with the earlier ones, and return how many rows failed."""
    from speechlab import evaluate

    store = folder / "unfinished"  # a run that was stopped resumes from there
    words = [str(source), "--out", str(folder), "--store", str(store), *_format_option_arguments(options)]
    command = build_study_command(name, _run_study)
    report = command.main(args=words, prog_name=f"speechlab study {name}", standalone_mode=False)
    evaluate.watch([*runs, report])  # refuses other rows, before they are kept
    report.save(folder / f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}")
    shutil.rmtree(store, ignore_errors=True)
    runs.append(report)
    return len(report.failures())


def _run_study(study: Callable[..., Report], source: Path, out: Path, **options: Any) -> Report:
    del out
    named_arguments = {name.replace("-", "_") for name in _EXCESS_OPTIONS - {"store"}}
    return read_and_run_study(
        study, source, **{name: value for name, value in options.items() if name not in named_arguments}
    )


def _format_option_arguments(options: Mapping[str, Any]) -> list[str]:
    """Options as they are typed: a list repeats its option, a table has NAME=VALUE for each of its lines."""
    words: list[str] = []
    for name, value in options.items():
        if name in _WATCH_KEYS:
            continue
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
            continue
        pairs = value.items() if isinstance(value, dict) else ()
        several = [f"{key}={_format_value(item)}" for key, item in pairs] or (
            value if isinstance(value, list) else [value]
        )
        for item in several:
            words += [f"--{name}", _format_value(item)]
    return words


def _format_value(value: object) -> str:
    return orjson.dumps(value).decode() if isinstance(value, dict) else str(value)
