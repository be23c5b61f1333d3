"""The report of the study of voices."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from speechlab.evaluate._arguments import code_or_none
from speechlab.evaluate._choice.advice import choices
from speechlab.evaluate._choice.measured import sounds, voice_keys
from speechlab.evaluate._choice.order import full_names
from speechlab.evaluate._choice.tables import errors_view, sound_view, voices_view
from speechlab.evaluate._speech.answer import answer_of
from speechlab.evaluate._speech.report import speech_methods, speech_report
from speechlab.evaluate._speech.summary import summarized
from speechlab.evaluate._speech.tables import load_views
from speechlab.evaluate._writing.contents import Contents, Finding
from speechlab.evaluate._writing.differences import of_study
from speechlab.metrics import judge

if TYPE_CHECKING:
    from speechlab.evaluate._choice.order import Order

_ATTRIBUTED = (
    *("shared_rate", "engine_rate", "own_rate"),
    *("homophones", "homophone_errors", "number_errors", "spelling_errors"),
    *("endings_lost", "worst_utterance", "worst_share", "take_sd"),
)
_WHO = "speechlab: voice of a service"
_RANKED = ("group", "first_share", "p_best", "needed")


def voices_report(
    title: str, table: pd.DataFrame, text: str, language: str, order: Order, **facts: Any
) -> Contents:
    """Report measured rows of voices that were put in order.

    Args:
        title: Title of the report.
        table: The rows.
        text: Column of the sentences.
        language: Column of the languages.
        order: The order of the voices.
        **facts: Segments, speed, record and notes, as for :func:`speech_report`.
    """
    speed = facts["speed"]
    summary = summarized(table, language, speed, groups=text, items=text)
    summary = summary.merge(sounds(table, language), on=voice_keys(summary), how="left")
    summary = _with_order(summary, order)
    choice = _of_services(choices(order.rankings, order.open, _fully_named(speed)), table)
    pairs = [of_study(one.pairs, language=code) for code, one in order.rankings.items()]
    found = order.attribution
    findings = [Finding(row["order"], row["language"], shown="method") for row in choice.to_dict("records")]
    findings += [Finding(pattern) for pattern in (found.findings if found else ())]
    named = choice.assign(voice_name=full_names(choice)) if "system" in choice.columns else choice
    facts |= {"conclusion": answer_of(named.rename(columns={"voice_name": "name"})), "summary": summary}
    report = speech_report(title, table, text=text, language=language, **facts)
    shared = not summary["ranking_rate"].equals(summary["own_rate"])
    rates = {"rates": ["ranking_rate", *(["own_rate"] if shared else [])]}
    bars = [
        replace(one, options={**one.options, **rates}) for one in report.drawings if one.frames == ("rates",)
    ]
    timed = f"{len(speed)} calls, one at a time, voices in turns" if len(speed) else "not measured"
    none = pd.DataFrame()
    more = {"attributed": found.errors if found else none, "variance": found.variance if found else none}
    return replace(
        report,
        study="voices",
        findings=tuple(findings),
        differences=pd.concat(pairs, ignore_index=True) if pairs else judge([]),
        tables={**report.tables, "choice": choice, **more},
        views=(
            voices_view(summary),
            errors_view(summary),
            sound_view(summary, timed=len(speed) > 0),
            *load_views(speed),
        ),
        drawings=(*bars, *(one for one in report.drawings if one.frames != ("rates",))),
        said=speech_methods(
            title, table, summary, speed, *_done(table, order, compared=any(map(len, pairs)))
        ),
        facts={
            **report.facts,
            "intervals": f"{report.facts['intervals']}, sentences drawn as wholes",
            "order": "exact paired test by sentence, Holm, 5 % level",
            "speed": timed,
        },
    )


def _done(table: pd.DataFrame, order: Order, *, compared: bool) -> list[str]:
    """What the study did besides scoring, for the methods."""
    rated = "dnsmos_overall" in table.columns and table["dnsmos_overall"].notna().any()
    done = ["loudness", "pitch", *(["dnsmos"] if rated else [])]
    if order.attribution is not None:
        parted = order.attribution.variance["sd_utterance"].notna().any()
        done += ["attribution", *(["variance"] if parted else [])]
    return [*done, *(["groups", "sign-flip", "holm"] if compared else [])]


def _with_order(summary: pd.DataFrame, order: Order) -> pd.DataFrame:
    keys = [_WHO, "language"]
    summary = summary.assign(**{_WHO: full_names(summary)})
    placed = [one.systems[["system", *_RANKED]].assign(language=code) for code, one in order.rankings.items()]
    empty = pd.DataFrame(columns=[*keys, *_RANKED]).astype({_WHO: "string", "language": "string"})
    ranked = pd.concat(placed).rename(columns={"system": _WHO}) if placed else empty
    out = summary.merge(ranked, on=keys, how="left")
    if order.attribution is None:
        return out.reindex(columns=[*out.columns, *_ATTRIBUTED]).drop(columns=_WHO)
    found = order.attribution.voices[["voice", "language", *_ATTRIBUTED]]
    found = found.rename(columns={"voice": _WHO, "language": "_code"})
    out = out.assign(_code=out["language"].map(code_or_none))
    return out.merge(found, on=[_WHO, "_code"], how="left").drop(columns=["_code", _WHO])


def _fully_named(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(voice_name=full_names(rows))


def _of_services(choice: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return the advice, with a column for the service of each voice if there are several services."""
    if "system" not in table.columns:
        return choice
    voices = table[table["voice"].notna()].drop_duplicates(["system", "voice"])
    names = full_names(voices)
    found = {
        name: choice["voice_name"].map(dict(zip(names, voices[name], strict=True))).astype("string")
        for name in ("system", "voice_name")
    }
    return choice.assign(**found)[["language", "system", *choice.columns[1:]]]
