"""A study performed for the command line: its table read, its report written, and the status that it ends with."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from speechlab.cli._commands._studies.systems import columns_of, connected
from speechlab.cli._console import console, errors, say, stages, warnings_told
from speechlab.cli._headline import headline
from speechlab.cli._words import in_options
from speechlab.errors import InvalidRequestError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

    from speechlab.evaluate import Changes, Report

WORSE = 4
"""Exit status where ``--fail-if`` has found something: it goes before 2 (nothing can be said) and 1 (rows failed)."""
_UNPAIRED = "no row is in both reports, so nothing can be said of what is worse; run the same rows"
_UNTIMED = "not both reports timed the same items, so nothing can be said of speed; give --speed 6 to both"
_ROWS_FAILED = r"[\d,]+ of [\d,]+ rows failed"
"""Warning of studies that the command tells in its own words, at the end."""
_KINDS_OF_ERRORS = 3
_NEEDED = {
    "recognition": ("audio", "text", "language"),
    "round_trip": ("text", "language"),
    "voices": ("text", "language"),
    "translation": ("text", "source_lang", "target_lang"),
    "speech_to_speech": ("audio", "text", "language"),
}
"""Columns that a study needs."""
_OPTIONAL = {
    "recognition": ("speaker", "duration_s"),
    "translation": ("reference",),
    "speech_to_speech": ("reference",),
}
"""Columns that it uses where there are any."""
_CODES = ("language", "source_lang", "target_lang")


def performed(
    study: str,
    source: Path,
    out: Path,
    given: dict[str, Any],
    *,
    column: list[str] | None,
    split: list[str] | None,
    sample: int | None,
    seed: int,
    store: Path | None,
    concurrency: int,
    give_up_after_s: float | None,
    earlier: Path | None = None,
    fail_if: Sequence[str] | None = None,
    language: str | None = None,
    codes: Mapping[str, str | None] = MappingProxyType({}),
    services: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> None:
    """Read the table, make the study, and write its report."""
    from speechlab import evaluate

    named = columns_of(column or (), (*_NEEDED[study], *_OPTIONAL.get(study, ()), "split"))
    evaluate.Report.check_path(out)
    before = _earlier(earlier, fail_if or (), timed=bool(given.get("speed")))
    if before is not None:
        _check_comparable(before, study, _systems(study, given.get("settings"), services[0]))
    with warnings_told(without=_ROWS_FAILED):
        rows = _rows(source, named, language, split, sample, seed)
    rows = rows.assign(**{name: code for name, code in codes.items() if code and name not in rows.columns})
    _check_columns(source, rows, _NEEDED[study])
    with _stoppable(), warnings_told(without=_ROWS_FAILED), connected(*services) as lab, stages() as told:
        given |= {
            "store": None if store is None else str(store),
            "concurrency": concurrency,
            "give_up_after_s": give_up_after_s,
        }
        report: Report
        if study == "recognition":  # one stage, whose progress has no name
            report = evaluate.recognition(
                lab, rows, progress=partial(told, "recognising"), seed=seed, **given
            )
        elif study == "translation":
            report = evaluate.translation(lab, rows, progress=partial(told, "translating"), **given)
        elif study == "speech_to_speech":
            told_of = partial(told, "recognising, translating, speaking")
            report = evaluate.speech_to_speech(lab, rows, progress=told_of, **given)
        else:
            texts = rows.drop(columns=["audio", "duration_s"], errors="ignore")
            makes: dict[str, Any] = {"round_trip": evaluate.round_trip, "voices": evaluate.voices}
            made = makes[study]
            report = made(
                lab, texts, progress=lambda stage, done, total: told(_plain(stage), done, total), **given
            )
    _end(report, out, before, fail_if or ())


@contextmanager
def _stoppable() -> Iterator[None]:
    """Say after an interrupt that nothing is lost, and end."""
    try:
        yield
    except KeyboardInterrupt:
        errors.print("stopped; what was finished is kept, and the same command goes on from there")
        raise typer.Exit(130) from None


def _plain(stage: str) -> str:
    return stage.replace("synthesize", "speaking").replace("transcribe", "recognising")


def _earlier(folder: Path | None, fail_if: Sequence[str], *, timed: bool) -> Report | None:
    """Read the earlier report before the work, not after it."""
    if folder is None and fail_if:
        message = f"--fail-if {fail_if[0]} needs something to compare with; give --earlier REPORT"
        raise InvalidRequestError(message, parameter="earlier")
    report: Report | None = None if folder is None else saved(folder)
    if "slower" in fail_if and not (timed and len(getattr(report, "speed", ()))):
        raise InvalidRequestError(_UNTIMED, parameter="speed")
    return report


def _systems(study: str, settings: Mapping[str, object] | None, services: Sequence[str]) -> set[str]:
    """Names of the systems that the report will have; none for one system without a name."""
    sides = [text.partition("=")[0].strip() for text in services] or [""]
    names = {", ".join(filter(None, pair)) for pair in product(sides, settings or [""])}
    return set() if study == "recognition" and len(names) == 1 else names - {""}


def _check_comparable(earlier: Report, study: str, systems: set[str]) -> None:
    """Refuse an earlier report, before the work, whose rows no row of this study can be compared with."""
    from speechlab import evaluate

    kind = evaluate.TranslationReport if study == "translation" else evaluate.SpeechReport
    if not isinstance(earlier, kind):
        message = (
            f"the earlier report ({earlier.title}) is of another study; give --earlier a report of this one"
        )
        raise InvalidRequestError(message, parameter="earlier")
    before = set(earlier.table["system"].astype(str)) if "system" in earlier.table.columns else set()
    if (before or systems) and not before & systems:
        message = (
            f"the earlier report has {_listed(before)}, and this study {_listed(systems)}; give both the same "
            "services and settings"
        )
        raise InvalidRequestError(message, parameter="earlier")


def _listed(systems: set[str]) -> str:
    names = ", ".join(map(repr, sorted(systems)))
    return f"the system{'s' if len(systems) > 1 else ''} {names}" if systems else "one system without a name"


def saved(folder: Path) -> Any:
    """Read a report that was saved.

    Raises:
        InvalidRequestError: There is none.
        StoreError: It is damaged.
    """
    from speechlab.evaluate import Report

    try:
        return Report.load(folder)
    except StoreError as error:
        if error.__cause__ is None or isinstance(error.__cause__, FileNotFoundError):
            raise InvalidRequestError(str(error), parameter="earlier") from error
        raise


def _rows(
    source: Path,
    columns: dict[str, str],
    language: str | None,
    split: list[str] | None,
    sample: int | None,
    seed: int,
) -> pd.DataFrame:
    from speechlab import datasets

    rows = datasets.read(source, language=language, split=split or None, columns=columns)
    if sample is None:
        return rows
    return datasets.sample(
        rows, sample, by=[name for name in ("language",) if name in rows.columns], seed=seed
    )


def _check_columns(source: Path, rows: pd.DataFrame, needed: Sequence[str]) -> None:
    """Refuse a table that lacks a column, and say which options help."""
    for name in needed:
        if name not in rows.columns:
            ways = [
                f"--column {name}=NAME",
                *([f"--{name.replace('_', '-')} CODE"] if name in _CODES else []),
            ]
            have = ", ".join(map(repr, rows.columns))
            message = (
                f"{source} has no column {name!r}; it has {have}. Give {' or '.join(ways)}, or rename one"
            )
            raise InvalidRequestError(message, parameter="column")


def _end(report: Report, out: Path, earlier: Report | None, fail_if: Sequence[str]) -> None:
    """Write the report, say what was found, and end with the status of the answer."""
    written = report.save(out)
    say(report.answer)
    headline(report.title, report.headline())
    for sentence in (*report.findings, *report.notes):
        say(str(sentence))
    console.print(f"report: {escape(str(written))}", soft_wrap=True)
    failed = report.table[report.table["status"].isin(["error", "skipped"])]
    if len(failed):
        errors.print(f"[yellow]{len(failed):,} of {len(report.table):,} rows failed:[/]")
        for error, count in failed["error"].astype("str").value_counts().head(_KINDS_OF_ERRORS).items():
            errors.print(f"  {count:,} like {escape(in_options(str(error)))}", soft_wrap=True)
    if earlier is not None:
        ended_with(report.compare(earlier), None, fail_if)
    if len(failed):
        raise typer.Exit(1)


def ended_with(changes: Changes, out: Path | None, fail_if: Sequence[str]) -> None:
    """Print the changes, and end with their exit status."""
    say(changes.answer)
    headline("What changed", changes.headline())
    for finding in changes.findings:
        say(str(finding))
    if out is not None:
        console.print(f"report: {escape(str(changes.save(out)))}", soft_wrap=True)
    unknown = [_UNPAIRED] if "worse" in fail_if and not changes.paired else []
    unknown += [_UNTIMED] if "slower" in fail_if and not len(changes.speed) else []
    if ("worse" in fail_if and changes.worse) or ("slower" in fail_if and changes.slower):
        for message in unknown:
            errors.print(f"[yellow]{escape(message)}[/]", soft_wrap=True)
        raise typer.Exit(WORSE)
    if unknown:
        raise InvalidRequestError("; ".join(unknown), parameter="earlier")
