"""A study performed for the command line: its table read, its report written, and the status that it ends with."""

from __future__ import annotations

import inspect
import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from speechlab._arguments import list_columns, propose_name
from speechlab._platform import get_text_dtype
from speechlab.cli._commands._studies.systems import connect_services, parse_columns, to_study_arguments
from speechlab.cli._console import (
    console,
    errors,
    exit_on_interrupt,
    print_headline,
    print_warnings,
    say,
    show_stages,
)
from speechlab.cli._options import check_writable
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.remote import find_file_name, hide_secrets, is_remote

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.evaluate import Report

# Exit status where ``--fail-if`` has found something: it goes before 2 (nothing can be said) and 1 (rows
# failed).
WORSE = 4
_NO_COMMON_ROWS = "no row is in both reports, so nothing can be said of what is worse; run the same rows"
_NO_COMMON_TIMES = (
    "not both reports timed the same items, so nothing can be said of speed; give --speed 6 to both"
)
_MAX_ERROR_KINDS = 3
# Characters that XML does not allow.
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Columns that a code for all rows can stand for.
CODES = ("language", "source_lang", "target_lang")
# What the stages of studies are called here.
_STAGE_NAMES = {"synthesize": "speaking", "transcribe": "recognizing", "translate": "translating"}


# The arguments of each study that name a column, in the order in which a table is checked for them.
_COLUMNS = {
    "recognition": ("audio", "text", "language", "entities"),
    "round_trip": ("text", "language"),
    "voices": ("text", "language"),
    "translation": ("text", "reference", "source_lang", "target_lang"),
}


def list_study_columns(study: Callable[..., Any]) -> dict[str, bool]:
    """Return the columns that a study reads, and whether it needs them."""
    parameters = inspect.signature(study).parameters
    needed_by_name = {name: parameters[name].default == name for name in _COLUMNS[study.__name__]}
    return needed_by_name | ({"speaker": False, "duration_s": False} if "audio" in needed_by_name else {})


def perform_study(
    study: Callable[..., Report],
    source: str | Path,
    out: Path | None = None,
    earlier: Path | None = None,
    fail_if: Sequence[str] | None = None,
    junit: Path | None = None,
    markdown: Path | None = None,
    **options: Any,
) -> None:
    """Make the study with the options of the command, write its report, and say what has changed."""
    from speechlab.evaluate import Report

    if out is None:
        name = find_file_name(source) if is_remote(source) else Path(source).absolute().name
        out = Path(f"{name.partition('.')[0]}-{study.__name__.replace('_', '-')}")
    Report.check_path(out)
    check_writable(junit, "junit")
    check_writable(markdown, "markdown")
    # the earlier report is read before the work, not after it
    if earlier is None and fail_if:
        message = f"--fail-if {fail_if[0]} needs something to compare with; give --earlier REPORT"
        raise InvalidRequestError(message, parameter="earlier")
    before: Report | None = None if earlier is None else load_report(earlier)
    if "slower" in (fail_if or ()) and not (options.get("speed") and len(getattr(before, "speed", ()))):
        raise InvalidRequestError(_NO_COMMON_TIMES, parameter="speed")
    report = read_and_run_study(study, source, before, **options)
    written = report.save(out)
    changes = None if before is None else report.compare(before)
    if junit is not None:
        junit.write_text(to_junit(report, changes), encoding="utf-8")
    if markdown is not None:
        with markdown.open("a", encoding="utf-8") as file:
            file.write("\n".join(each.to_markdown() for each in (report, changes) if each is not None))
    _print_outcome_and_exit(report, written, changes, fail_if or ())


def read_and_run_study(
    study: Callable[..., Report], source: str | Path, before: Report | None = None, **options: Any
) -> Report:
    """Read the table, and make the study with the options of the command, to be compared with an earlier one."""
    from speechlab import datasets

    def pop_options(*names: str) -> list[Any]:
        return [options.pop(name, None) for name in names]

    columns = list_study_columns(study)
    services, adapters, renamed = (texts or () for texts in pop_options("service", "openai", "columns"))
    split, n = pop_options("split", "n")
    column_names = parse_columns(renamed, (*columns, "split"))
    recorded = _apply_recording_options(column_names, services, *pop_options("audio_column", "voice_column"))
    codes = {name: options.pop(name) for name in CODES if name in columns}
    seed = options["seed"] if "seed" in inspect.signature(study).parameters else options.pop("seed")
    options = to_study_arguments(study.__name__, options, services)
    if before is not None:
        _check_earlier_report(
            before, study.__name__, _list_system_names(study.__name__, options.get("settings"), services)
        )
    with print_warnings():
        had = options.get("hypotheses") or {}
        files = {name: place for name, place in had.items() if Path(place).exists()}
        code = codes.get("language")
        rows = datasets.read(
            source, language=code, split=split or None, columns=column_names, transcripts=files
        )
        _check_hypotheses(had, files, rows)
        had.update({name: name for name in files})
        if n is not None:
            strata = [name for name in ("language",) if name in rows.columns]
            rows = datasets.sample(rows, n, by=strata, seed=seed)
    rows = rows.assign(**{name: code for name, code in codes.items() if code and name not in rows.columns})
    if "language" in columns and "language" not in rows.columns and "text" in rows.columns:
        rows = _add_guessed_language(rows)
    alone = bool(had) and not services
    needed = [name for name, needed in columns.items() if needed and not (alone and name == "audio")]
    _check_columns(source, rows, needed)
    if "audio" not in columns and not recorded:
        rows = rows.drop(columns=["audio", "duration_s"], errors="ignore")
    with _open_clients_and_progress(services, adapters, alone=alone) as (lab, progress):
        if recorded:
            recorded["recognizer"] = next(iter(lab.values())) if isinstance(lab, dict) else lab
        return study(None if recorded else lab, rows, progress=progress, **options, **recorded)


def _check_hypotheses(had: Mapping[str, str], files: Mapping[str, str], rows: pd.DataFrame) -> None:
    """Refuse a hypothesis that is neither a column nor a file or folder."""
    for name, place in had.items():
        if name not in files and place not in rows.columns:
            message = (
                f"--hypothesis {name}={place}: there is neither a column nor a file or folder of this name"
            )
            columns = f"the columns are {list_columns(rows)}{propose_name(map(str, rows.columns), place)}"
            raise InvalidRequestError(f"{message}; {columns}", parameter="hypothesis")


def _add_guessed_language(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the language that their texts seem to have, and say so."""
    from speechlab.text import guess_language

    code = guess_language(rows["text"].dropna().astype(str))
    if code is None:
        return rows
    say(f"language: {code}, by the texts; --language says another one")
    return rows.assign(language=code)


def repeat_study(
    path: Path,
    out: Path,
    services: Sequence[str],
    adapters: Sequence[str],
    fail_if: Sequence[str],
) -> None:
    """Make the study of a saved report again, write its report, and say what has changed."""
    from speechlab.evaluate import Report, open_report

    try:
        before = open_report(path)
    except StoreError as error:
        raise InvalidRequestError(str(error), parameter="from") from error
    Report.check_path(out)
    questions, store = before.record.get("asked", {}), out.with_name(f"{out.name}.unfinished")
    if several := [
        name
        for name in questions.get("services", ())
        if not any(text.startswith(f"{name}=") for text in services)
    ]:
        names = ", ".join(questions["services"])
        message = f"--service {several[0]}= is missing: the report is of the services {names}"
        raise InvalidRequestError(message, parameter="service")
    with _open_clients_and_progress(services, adapters, alone=bool(questions.get("alone"))) as (
        lab,
        progress,
    ):
        report = before.rerun(lab, store=str(store), progress=progress)
    written = report.save(out)
    shutil.rmtree(store, ignore_errors=True)
    _print_outcome_and_exit(report, written, report.compare(before), fail_if)


@contextmanager
def _open_clients_and_progress(
    services: Sequence[str], adapters: Sequence[str], *, alone: bool
) -> Iterator[tuple[Any, Callable[[str, int, int], None]]]:
    """The clients of a study, none if it needs none, and its progress: the estimate, and stages in our words."""
    with (
        exit_on_interrupt(),
        print_warnings(),
        nullcontext() if alone else connect_services(services, adapters) as lab,
        show_stages() as show_stage,
    ):

        def show_progress(stage: str, done: int, total: int) -> None:
            if not total and stage.startswith("estimate: "):
                say(stage)
                return
            name, comma, details = stage.partition(",")
            show_stage(_STAGE_NAMES.get(name, name) + comma + details, done, total)

        yield lab, show_progress


def _apply_recording_options(
    named: dict[str, str], services: Sequence[str], audio: str | None, voice: str | None
) -> dict[str, Any]:
    """The columns of recordings that exist, as arguments of a study, and in the names of columns; none without."""
    if audio is None:
        if voice is not None:
            message = "is of recordings that exist; give --audio-column as well, or choose voices by --voice"
            raise InvalidRequestError(f"--voice-column {message}", parameter="voice_column")
        return {}
    if len(services) > 1:
        message = "--audio-column takes one recognizer; give one --service, or none for the usual one"
        raise InvalidRequestError(message, parameter="service")
    named["audio"] = audio
    return {"audio": "audio", "voice": voice or "voice"}


def _list_system_names(
    study: str, settings: Mapping[str, object] | None, services: Sequence[str]
) -> set[str]:
    """Names of the systems that the report will have; none for one system without a name."""
    sides = [text.partition("=")[0].strip() for text in services] or [""]
    names = {", ".join(filter(None, pair)) for pair in product(sides, settings or [""])}
    return set() if study == "recognition" and len(names) == 1 else names - {""}


def _check_earlier_report(earlier: Report, study: str, systems: set[str]) -> None:
    """Refuse an earlier report, before the work, whose rows no row of this study can be compared with."""
    if ("target_lang" if study == "translation" else "language") not in earlier.columns:
        message = (
            f"the earlier report ({earlier.title}) is of another study; give --earlier a report of this one"
        )
        raise InvalidRequestError(message, parameter="earlier")
    before = set(earlier.table["system"].astype(str)) if "system" in earlier.table.columns else set()
    if (before or systems) and not before & systems:
        message = (
            f"the earlier report has {_format_systems(before)}, and this study {_format_systems(systems)}; "
            "give both the same services and settings"
        )
        raise InvalidRequestError(message, parameter="earlier")


def _format_systems(systems: set[str]) -> str:
    names = ", ".join(map(repr, sorted(systems)))
    return f"the system{'s' if len(systems) > 1 else ''} {names}" if systems else "one system without a name"


def load_report(folder: Path) -> Any:
    """Read a report that was saved."""
    from speechlab.evaluate import Report

    try:
        return Report.load(folder)
    except StoreError as error:
        if error.__cause__ is None or isinstance(error.__cause__, FileNotFoundError):
            raise InvalidRequestError(str(error), parameter="earlier") from error
        raise


def _check_columns(source: str | Path, rows: pd.DataFrame, needed: Sequence[str]) -> None:
    """Refuse a table that lacks a column, and say which options help."""
    for name in needed:
        if name not in rows.columns:
            remedies = [
                f"--column {name}=NAME",
                *([f"--{name.replace('_', '-')} CODE"] if name in CODES else []),
            ]
            unsure = (
                ", and its texts do not show theirs" if name == "language" and "text" in rows.columns else ""
            )
            message = (
                f"{hide_secrets(source)} has no column {name!r}{unsure}; it has {list_columns(rows)}. Give "
                f"{' or '.join(remedies)}, or rename one"
            )
            raise InvalidRequestError(message, parameter="column")


def to_junit(report: Report, changes: Report | None) -> str:
    """A study as JUnit XML: a case for each row of the summary and of the changes, and one for the failed rows."""
    suite = ET.Element("testsuite", name=_replace_invalid_characters(f"speechlab study: {report.title}"))
    cases: list[tuple[str, str, str, str]] = []
    failed = report.table[report.table["status"] == "error"]
    failure = f"{len(failed):,} of {len(report.table):,} rows failed" if len(failed) else ""
    cases.append(
        (
            "rows",
            "all rows were processed",
            failure,
            "\n".join(failed["error"].astype(str).unique()[:20]),
        )
    )
    tables = [("summary", report.summary)]
    tables += [] if changes is None else [("changes", changes.differences)]
    for kind, table in tables:
        for row in table.to_dict("records"):
            texts = [value for value in row.values() if isinstance(value, str) and value]
            words = [text for text in dict.fromkeys(texts) if "|" not in text]  # signatures have that
            verdict = "" if kind == "summary" else str(row.get("verdict", ""))
            bad = verdict if verdict in {"worse", "slower"} else ""
            facts = "\n".join(f"{name}: {value}" for name, value in row.items())
            cases.append((kind, ", ".join(words[:4]), bad, facts))
    for kind, name, failure, text in cases:
        case = ET.SubElement(
            suite, "testcase", classname=f"study.{kind}", name=_replace_invalid_characters(name)
        )
        tag, message = (
            ("failure", {"message": _replace_invalid_characters(failure)}) if failure else ("system-out", {})
        )
        if text:
            ET.SubElement(case, tag, message).text = _replace_invalid_characters(text)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(bool(failure) for _, _, failure, _ in cases)))
    ET.SubElement(suite, "system-out").text = _replace_invalid_characters(report.answer)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _replace_invalid_characters(text: str) -> str:
    """Return a text without characters that XML does not allow."""
    return _NOT_XML.sub("\ufffd", text)


def _print_outcome_and_exit(
    report: Report, written: Path, changes: Report | None, fail_if: Sequence[str]
) -> None:
    """Say what was found, and end with the status of the answer."""
    say(report.answer)
    print_headline(report.title, report.headline())
    for sentence in (*report.findings, *report.notes):
        say(str(sentence))
    console.print(f"report: {escape(str(written))}", soft_wrap=True)
    failed = report.table[report.table["status"].isin(["error", "skipped"])]
    if len(failed):
        errors.print(f"[yellow]{len(failed):,} of {len(report.table):,} rows failed:[/]")
        for error, count in (
            failed["error"].astype(get_text_dtype()).value_counts().head(_MAX_ERROR_KINDS).items()
        ):
            errors.print(f"  {count:,} like {escape(str(error))}", soft_wrap=True)
    if changes is not None:
        print_changes_and_exit(changes, None, fail_if)
    if len(failed):
        raise typer.Exit(1)


def print_changes_and_exit(changes: Report, out: Path | None, fail_if: Sequence[str]) -> None:
    """Print the changes, and end with their exit status."""
    say(changes.answer)
    print_headline("What changed", changes.headline())
    for finding in changes.findings:
        say(str(finding))
    if out is not None:
        console.print(f"report: {escape(str(changes.save(out)))}", soft_wrap=True)
    unknown = [] if changes.paired else [_NO_COMMON_ROWS]
    unknown += (
        [_NO_COMMON_TIMES] if "slower" in fail_if and "ratio" not in set(changes.differences["unit"]) else []
    )
    if ("worse" in fail_if and changes.worse) or ("slower" in fail_if and changes.slower):
        for message in unknown:
            errors.print(f"[yellow]{escape(message)}[/]", soft_wrap=True)
        raise typer.Exit(WORSE)
    if unknown:
        raise InvalidRequestError("; ".join(unknown), parameter="earlier")
