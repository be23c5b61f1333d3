"""Voices in order, the advice that follows, and their report: errors, whose they are, and how voices sound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._arguments import code_or_none, languages_of
from speechlab.evaluate._speech.advice import advised, answer_of
from speechlab.evaluate._speech.ranking import score_for_ranking
from speechlab.evaluate._speech.report import speech_methods, speech_report
from speechlab.evaluate._speech.summary import (
    RANKED_NOTE,
    full_names,
    interval_column,
    load_views,
    ranked_rows,
    start_column,
    summarized,
)
from speechlab.evaluate._writing.columns import Shown, View, count, named, number, of_all, plural, rate, text
from speechlab.evaluate._writing.contents import Contents, Finding
from speechlab.evaluate._writing.differences import of_study
from speechlab.metrics import Attribution, Ranking, attribute, judge, rank

_MEDIANS = (
    *("loudness_lufs", "morae_per_s", "words_per_s", "characters_per_s", "leading_silence_s"),
    *("trailing_silence_s", "longest_pause_s", "f0_median_hz", "dnsmos_overall", "dnsmos_signal"),
    "dnsmos_background",
)
RATED = "rated_"
"""Beginning of the columns of measures of the user."""


class Order(NamedTuple):
    """Voices in order.

    ``attribution`` is None without scored rows; ``open`` has the reasons of languages without a ranking.
    """

    rankings: dict[str, Ranking]
    attribution: Attribution | None
    notes: list[str]
    open: dict[str, str]


def ordered(table: pd.DataFrame, text: str, language: str) -> Order:
    """Rank the voices of each language, Japanese by readings, and attribute their errors."""
    rankings: dict[str, Ranking] = {}
    ranked, notes, unranked = [], [], {}
    is_known = table[language].astype(object).map(lambda cell: bool(languages_of(cell)))
    rows = table[table["voice"].notna() & is_known]
    rows = rows.assign(voice_name=full_names(rows))
    for code, group in rows.groupby(language, observed=True, sort=True):
        scores = score_for_ranking(group, text, language, ["voice", "voice_name", "engine"])
        alive = scores[scores["errors"].notna()]
        failed = sorted(set(scores["voice_name"]) - set(alive["voice_name"]))
        if not len(alive):
            reasons = group["error"].dropna().astype(str).value_counts()
            why = f"; mostly: {reasons.index[0]:.200}" if len(reasons) else ""
            unranked[str(code)] = f"all {len(group)} rows failed{why}"
            continue
        ranked.append(alive)
        if failed:
            has = "has" if len(failed) == 1 else "have"
            notes.append(
                f"{'; '.join(failed)} ({code}) failed on all sentences, and {has} no place in the order."
            )
        try:
            ranking = rank(alive, system="voice_name", utterance=text)
        except InvalidRequestError:
            why = "no sentence was heard from all voices; run the study again for the rows that failed"
            unranked[str(code)] = why
            continue
        rankings[str(code)] = ranking
        if ranking.excluded:
            were = "was" if ranking.excluded == 1 else "were"
            notes.append(
                f"{plural(ranking.excluded, 'sentence')} ({code}) {were} left out of the order, because not all "
                "voices have them; its rates are those of the others. The same call asks again for what failed."
            )
    attribution = None
    if ranked:
        attribution = attribute(pd.concat(ranked), voice="voice_name", utterance=text, engine="engine")
    return Order(rankings, attribution, notes, unranked)


_TYPES = {
    **dict.fromkeys(("language", "name", "certainty"), "string"),
    "error_rate": "Float64",
    **dict.fromkeys(("items", "more"), "Int64"),
    **dict.fromkeys(("order", "lead", "advice"), "string"),
}
_NAMES = {"name": "voice_name", "items": "sentences", "more": "more_sentences"}


def choices(order: Order, speed: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return the advice for each language.

    Returns:
        ``language``; ``system``, if there are several; ``voice_name``, the recommended voice; ``certainty``:
        *settled* (significantly better than all others), *open*, or *none* (nothing to choose from); ``error_rate``
        (fraction) on the ``sentences`` that all voices have; ``more_sentences``, the further sentences that would
        distinguish the voice from the runner-up (missing if they differ already, or if no practical number
        suffices); ``order``, a sentence; ``lead``, what to do; and ``advice``, how sure it is.
    """
    rows: list[dict[str, Any]] = []
    for code, ranking in order.rankings.items():
        timed = speed[speed["language"] == code].assign(system=lambda rows: rows["voice_name"])
        advice = advised(ranking.systems.assign(excluded=ranking.excluded), timed)
        rows.append({"language": code, "order": f"{named(code)}: {ranking.sentence}", **advice})
    rows += [
        {"language": code, "certainty": "none", "order": f"{named(code)}: {why}.", "advice": why}
        for code, why in order.open.items()
    ]
    choice = pd.DataFrame(rows, columns=list(_TYPES)).astype(_TYPES).rename(columns=_NAMES)
    choice = choice.sort_values("language", ignore_index=True)
    if "system" not in table.columns:
        return choice
    voices = table[table["voice"].notna()].drop_duplicates(["system", "voice"])
    names = full_names(voices)
    columns = {
        name: choice["voice_name"].map(dict(zip(names, voices[name], strict=True))).astype("string")
        for name in ("system", "voice_name")
    }
    return choice.assign(**columns)[["language", "system", *choice.columns[1:]]]


def voice_keys(table: pd.DataFrame, language: str = "language") -> list[str]:
    """Columns that identify a voice in each language; with several services also that of the service."""
    return [*(["system"] if "system" in table.columns else []), "voice", language]


def sounds(table: pd.DataFrame, language: str) -> pd.DataFrame:
    """Return the sound of each voice: medians of the measures of its clips, and the numbers of suspect clips.

    Returns:
        ``system`` (if there are several), ``voice``, ``language``, medians of the measures under their names;
        ``clipped``, ``truncated`` and ``repeated`` (numbers of clips with samples at full scale, that stop within a
        sound, that repeat their end), and ``rated`` (number of clips with DNSMOS).
    """
    keys = voice_keys(table, language)
    groups = table[table["voice"].notna()].groupby(keys, observed=True)
    names = [name for name in _MEDIANS if name in table.columns]
    names += [name for name in table.columns if str(name).startswith(RATED)]
    medians = groups[names].median()
    counts = {
        "clipped": (table["clipping_ratio"] > 0).fillna(value=False),
        "truncated": table["truncated_ending"].fillna(value=False),
        "repeated": table["repeated_ending"].fillna(value=False),
    }
    if "dnsmos_overall" in table.columns:
        counts["rated"] = table["dnsmos_overall"].notna()
    for name, column in counts.items():
        medians[name] = column.astype("Int64").groupby([table[key] for key in keys], observed=True).sum()
    return medians.reset_index().rename(columns={language: "language"})


_ATTRIBUTED = (
    *("shared_rate", "engine_rate", "own_rate"),
    *("homophones", "homophone_errors", "number_errors", "spelling_errors"),
    *("endings_lost", "worst_utterance", "worst_share", "take_sd"),
)
_WHO = "speechlab: voice of a service"
_WHO_JUDGED = (
    "A recogniser judged how well the voices are understood; how pleasant they are, listeners must say."
)
_RANKED = ("group", "first_share", "p_best", "needed")


def voices_report(
    title: str, table: pd.DataFrame, text: str, language: str, order: Order, **facts: Any
) -> Contents:
    """Report measured rows of voices that were put in order."""
    speed = facts["speed"]
    summary = summarized(table, language, speed, groups=text, items=text)
    summary = summary.merge(sounds(table, language), on=voice_keys(summary), how="left")
    summary = _with_order(summary, order)
    named_calls = speed.assign(voice_name=full_names(speed))
    choice = choices(order, named_calls, table)
    pairs = [of_study(ranking.pairs, language=code) for code, ranking in order.rankings.items()]
    attribution = order.attribution
    findings = [Finding(row["order"], row["language"], shown="method") for row in choice.to_dict("records")]
    findings += [Finding(pattern) for pattern in (attribution.findings if attribution else ())]
    named_choice = choice.assign(voice_name=full_names(choice)) if "system" in choice.columns else choice
    answer = answer_of(named_choice.rename(columns={"voice_name": "name"}))
    if (choice["certainty"] != "none").any():
        answer = answer._replace(certainty=f"{answer.certainty} {_WHO_JUDGED}")
    facts |= {"conclusion": answer, "summary": summary}
    report = speech_report(title, table, text=text, language=language, **facts)
    timed = f"{len(speed)} calls, one at a time, voices in turns" if len(speed) else "not measured"
    errors, variance = (attribution.errors, attribution.variance) if attribution else [pd.DataFrame()] * 2
    return replace(
        report,
        study="voices",
        findings=tuple(findings),
        differences=pd.concat(pairs, ignore_index=True) if pairs else judge([]),
        tables={**report.tables, "choice": choice, "attributed": errors, "variance": variance},
        views=(
            voices_view(summary),
            errors_view(summary),
            sound_view(summary, timed=len(speed) > 0),
            *load_views(speed),
        ),
        said=speech_methods(
            title, table, summary, speed, *_methods_used(table, order, compared=any(map(len, pairs)))
        ),
        facts={
            **report.facts,
            "intervals": f"{report.facts['intervals']}, sentences drawn as wholes",
            "order": "exact paired test by sentence, Holm, 5 % level",
            "speed": timed,
        },
    )


def _methods_used(table: pd.DataFrame, order: Order, *, compared: bool) -> list[str]:
    """What the study did besides scoring, for the methods."""
    rated = "dnsmos_overall" in table.columns and table["dnsmos_overall"].notna().any()
    steps = ["loudness", "pitch", *(["dnsmos"] if rated else [])]
    if order.attribution is not None:
        has_variance = order.attribution.variance["sd_utterance"].notna().any()
        steps += ["attribution", *(["variance"] if has_variance else [])]
    return [*steps, *(["groups", "sign-flip", "holm"] if compared else [])]


def _with_order(summary: pd.DataFrame, order: Order) -> pd.DataFrame:
    keys = [_WHO, "language"]
    summary = summary.assign(**{_WHO: full_names(summary)})
    placed = [
        ranking.systems[["system", *_RANKED]].assign(language=code)
        for code, ranking in order.rankings.items()
    ]
    empty = pd.DataFrame(columns=[*keys, *_RANKED]).astype({_WHO: "string", "language": "string"})
    ranked = pd.concat(placed).rename(columns={"system": _WHO}) if placed else empty
    out = summary.merge(ranked, on=keys, how="left")
    if order.attribution is None:
        return out.reindex(columns=[*out.columns, *_ATTRIBUTED]).drop(columns=_WHO)
    attributed = order.attribution.voices[["voice", "language", *_ATTRIBUTED]]
    attributed = attributed.rename(columns={"voice": _WHO, "language": "_code"})
    out = out.assign(_code=out["language"].map(code_or_none))
    return out.merge(attributed, on=[_WHO, "_code"], how="left").drop(columns=["_code", _WHO])


_PACES = (("morae_per_s", "morae/s"), ("words_per_s", "words/s"), ("characters_per_s", "characters/s"))
_FLAGS = {"clipped": "overdriven", "truncated": "cut off", "repeated": "with a repeated end"}


def voices_view(summary: pd.DataFrame) -> View:
    """Return the error rates of the voices, and the certainty of their order."""
    columns = [
        *_who(summary),
        of_all("sentences", "utterances_scored", "utterances"),
        rate("error rate", "ranking_rate", strong=True),
        interval_column("sentences"),
        rate("with notation", "notation_rate", optional=True),
        text("group", "group"),
        *(
            [number("first sound (s)", start_column(summary))]
            if start_column(summary) in summary.columns
            else []
        ),
    ]
    note = f"{RANKED_NOTE} Those that share a letter cannot be told apart."
    return View.of("The voices", columns, ranked_rows(summary), note)


def errors_view(summary: pd.DataFrame) -> View:
    """Return the attribution of the errors."""
    columns = [
        *_who(summary),
        rate("the voice's own", "own_rate", strong=True),
        rate("its engine's", "engine_rate", optional=True),
        rate("whatever the voice", "shared_rate"),
        count("homophones", "homophones", optional=True),
        count("numbers", "number_errors", optional=True),
        count("spellings", "spelling_errors", optional=True),
        Shown("takes vary by (points)", _takes, figure=True, optional=True),
    ]
    note = (
        "The recogniser's slips by chance are among a voice's own errors. Homophones, numbers and spellings only "
        "look wrong, and are not among them."
    )
    return View.of("Whose the errors are", columns, summary, note)


def sound_view(summary: pd.DataFrame, *, timed: bool) -> View:
    """Return the speed and the sound of the voices."""
    columns = [
        *_who(summary),
        number("first sound (s)", start_column(summary), optional=True, with_range=True),
        number("RTF", "rtf", optional=True, with_range=True),
        number("loudness (LUFS)", "loudness_lufs", ".1f"),
        Shown("speaking rate", _speaking_rate, figure=True),
        Shown("silence before, after (s)", _silence, figure=True),
        number("longest pause (s)", "longest_pause_s"),
        number("DNSMOS (1 to 5)", "dnsmos_overall", optional=True),
        *(number(name.removeprefix(RATED), name) for name in summary.columns if str(name).startswith(RATED)),
        Shown("clips that look wrong", _flags, optional=True),
    ]
    speed = "Speed: medians of calls made one at a time, voices in turns, with their range. " if timed else ""
    return View.of("Speed and sound", columns, summary, f"{speed}Sound: medians of the clips.")


def _who(summary: pd.DataFrame) -> list[Shown]:
    sides = [text("system", "system")] if "system" in summary.columns else []
    return [*sides, text("voice", "voice_name", strong=True), text("language", "language")]


def _speaking_rate(row: Mapping[Any, Any]) -> str | None:
    return next((f"{row[name]:.1f} {unit}" for name, unit in _PACES if not is_missing(row.get(name))), None)


def _silence(row: Mapping[Any, Any]) -> str | None:
    before, after = row.get("leading_silence_s"), row.get("trailing_silence_s")
    if is_missing(before) or is_missing(after):
        return None
    return f"{before:.2f}, {after:.2f}"


def _takes(row: Mapping[Any, Any]) -> str | None:
    return None if is_missing(row.get("take_sd")) else f"±{100 * row['take_sd']:.1f}"


def _flags(row: Mapping[Any, Any]) -> str | None:
    counts = {words: row.get(name) for name, words in _FLAGS.items()}
    return ", ".join(f"{n} {words}" for words, n in counts.items() if not is_missing(n) and n) or None
