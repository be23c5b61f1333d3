"""Voices in order, the advice that follows, and their report: errors, whose they are, and how voices sound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.evaluate._advice.advice import Advice, Lead
from speechlab.evaluate._advice.choice import MARGIN, recommend_system
from speechlab.evaluate._advice.conclusions import build_choice_conclusion
from speechlab.evaluate._advice.findings import list_output_findings
from speechlab.evaluate._advice.no_worse import (
    apply_prices,
    build_contest,
    build_price_findings,
    compare_with_dearer,
)
from speechlab.evaluate._advice.speech_report import build_speech_report, describe_speech_methods
from speechlab.evaluate._speech.costs import build_cost_views, read_unit_prices
from speechlab.evaluate._speech.summary import (
    build_full_voice_names,
    build_load_views,
    build_name_columns,
    build_notation_column,
    build_rate_interval_column,
    choose_start_time_column,
    explain_ranking,
    is_in_first_group,
    summarize_speech,
    to_rate_rows,
)
from speechlab.evaluate._study_arguments import parse_language_code
from speechlab.evaluate._writing.columns import (
    DisplayColumn,
    View,
    build_charted_rate_column,
    build_count_column,
    build_count_of_total_column,
    build_number_column,
    build_rate_column,
    build_text_column,
    format_language,
)
from speechlab.evaluate._writing.contents import Contents, Finding
from speechlab.evaluate._writing.differences import build_study_differences
from speechlab.metrics import judge

if TYPE_CHECKING:
    from speechlab.evaluate._voice_ranks.voice_order import VoiceOrder

_MEDIANS = (
    *("loudness_lufs", "morae_per_s", "words_per_s", "characters_per_s", "leading_silence_s"),
    *("trailing_silence_s", "longest_pause_s", "f0_median_hz", "dnsmos_overall", "dnsmos_signal"),
    "dnsmos_background",
)
# Beginning of the columns of measures of the user.
RATED_PREFIX = "rated_"


_TYPES = {
    **dict.fromkeys(("language", "name", "certainty"), "string"),
    "error_rate": "Float64",
    **dict.fromkeys(("items", "more"), "Int64"),
    **dict.fromkeys(("order", "lead", "advice"), "string"),
}
_NAMES = {"name": "voice_name", "items": "sentences", "more": "more_sentences"}


def recommend_voices(
    order: VoiceOrder, speed: pd.DataFrame, margin: float = MARGIN, no_worse: pd.DataFrame | None = None
) -> dict[str, Advice]:
    """Return the advice for each language, by its code, on voices by their full names."""
    advice = {code: Advice("", Lead(), (why,), "none") for code, why in order.open.items()}
    for code, evidence in order.evidence.items():
        timed = speed[speed["language"] == code].assign(system=lambda rows: rows["voice_name"])
        advice[code] = recommend_system(evidence, timed, margin=margin)
        if no_worse is not None:
            tied = evidence.order.tied if evidence.runaway is None else ()
            advice[code] = apply_prices(advice[code], tied, no_worse[no_worse["language"] == code])
    return dict(sorted(advice.items()))


def _compare_with_dearer_voices(
    summary: pd.DataFrame, text: str, order: VoiceOrder, prices: Mapping[str, float], margin: float
) -> pd.DataFrame:
    """Return of each voice of a cheaper service whether it is no worse than one of a dearer service."""
    services = summary["system"].tolist() if prices and "system" in summary.columns else []
    named = zip(build_full_voice_names(summary), services, strict=False)
    contests = {
        (code, ""): build_contest(known, order.scores[code], "voice_name", text)
        for code, known in order.evidence.items()
        if services
    }
    prices = {name: prices[service] for name, service in named if service in prices}
    return compare_with_dearer(contests, prices, margin)


def build_choice_table(order: VoiceOrder, advice: Mapping[str, Advice], table: pd.DataFrame) -> pd.DataFrame:
    """Return the advice as a table.

    Returns:
        ``language``; ``system``, if there are several; ``voice_name``, the recommended voice; ``certainty``:
        *settled* (significantly better than all others), *open*, or *none* (nothing to choose from); ``error_rate``
        (fraction) on the ``sentences`` that all voices have; ``more_sentences``, the further sentences that would
        distinguish the voice from the runner-up (missing if they differ already, or if no practical number
        suffices); ``order``, a sentence; ``lead``, what to do; and ``advice``, how sure it is.
    """
    rows: list[dict[str, Any]] = []
    for code, one in advice.items():
        row: dict[str, Any] = {"language": code, "certainty": one.certainty, "advice": one.words}
        if one.name:
            systems = order.rankings[code].systems
            row |= {"name": one.name, "lead": str(one.lead), "more": one.more}
            row |= {"error_rate": systems.set_index("system")["error_rate"][one.name]}
            row |= {"items": systems["utterances"].iloc[0]}
        sentence = order.rankings[code].sentence if one.name else f"{order.open[code]}."
        rows.append({**row, "order": f"{format_language(code)}: {sentence}"})
    choice = pd.DataFrame(rows, columns=list(_TYPES)).astype(_TYPES).rename(columns=_NAMES)
    if "system" not in table.columns:
        return choice
    voices = table[table["voice"].notna()].drop_duplicates(["system", "voice"])
    names = build_full_voice_names(voices)
    columns = {
        name: choice["voice_name"].map(dict(zip(names, voices[name], strict=True))).astype("string")
        for name in ("system", "voice_name")
    }
    return choice.assign(**columns)[["language", "system", *choice.columns[1:]]]


def list_voice_key_columns(table: pd.DataFrame, language: str = "language") -> list[str]:
    """Columns that identify a voice in each language; with several services also that of the service."""
    return [*(["system"] if "system" in table.columns else []), "voice", language]


def summarize_sounds(table: pd.DataFrame, language: str) -> pd.DataFrame:
    """Return the sound of each voice: medians of the measures of its clips, and the numbers of suspect clips.

    Returns:
        ``system`` (if there are several), ``voice``, ``language``, medians of the measures under their names;
        ``clipped``, ``truncated`` and ``repeated`` (numbers of clips with samples at full scale, that stop within a
        sound, that repeat their end), and ``rated`` (number of clips with DNSMOS).
    """
    keys = list_voice_key_columns(table, language)
    groups = table[table["voice"].notna()].groupby(keys, observed=True)
    names = [name for name in _MEDIANS if name in table.columns]
    names += [name for name in table.columns if str(name).startswith(RATED_PREFIX)]
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


_ATTRIBUTION_COLUMNS = (
    *("shared_rate", "engine_rate", "own_rate"),
    *("homophones", "homophone_errors", "number_errors", "spelling_errors"),
    *("endings_lost", "worst_utterance", "worst_share", "take_sd"),
)
_VOICE_COLUMN = "speechlab: voice of a service"
_JUDGE_NOTE = (
    "A recognizer judged how well the voices are understood; how pleasant they are, listeners must say."
)
_RANKING_COLUMNS = ("group", "first_share", "p_best", "needed")


def build_voices_report(
    title: str, table: pd.DataFrame, text: str, language: str, order: VoiceOrder, **facts: Any
) -> Contents:
    """Report measured rows of voices that were put in order."""
    speed = facts["speed"]
    summary = summarize_speech(table, language, speed, groups=text, items=text)
    summary = summary.merge(summarize_sounds(table, language), on=list_voice_key_columns(summary), how="left")
    summary = _add_ranking_columns(summary, order)
    settings = (facts.get("record") or {}).get("settings", {})
    prices = read_unit_prices(settings)
    named_calls = speed.assign(voice_name=build_full_voice_names(speed))
    margin = settings.get("margin", MARGIN)
    no_worse = _compare_with_dearer_voices(summary, text, order, prices, margin)
    advice = recommend_voices(order, named_calls, margin, no_worse)
    choice = build_choice_table(order, advice, table)
    pairs = [
        order.evidence[code].qualify_verdicts(build_study_differences(ranking.pairs, language=code))
        for code, ranking in order.rankings.items()
    ]
    attribution = order.attribution
    findings = [Finding(row["order"], row["language"], shown="method") for row in choice.to_dict("records")]
    findings += build_price_findings(no_worse, "sentence")
    findings += list_output_findings(table[table["voice"].notna()], text, language)
    findings += [Finding(pattern) for pattern in (attribution.findings if attribution else ())]
    answer = build_choice_conclusion({format_language(code): one for code, one in advice.items()})
    facts |= {"conclusion": answer, "summary": summary}
    report = build_speech_report(title, table, text=text, language=language, **facts)
    timed = f"{len(speed)} calls, one at a time, voices in turns" if len(speed) else "not measured"
    errors, variance = (attribution.errors, attribution.variance) if attribution else [pd.DataFrame()] * 2
    return replace(
        report,
        study="voices",
        findings=tuple(findings),
        differences=pd.concat(pairs, ignore_index=True) if pairs else judge([]),
        tables={
            **report.tables,
            "choice": choice,
            "attributed": errors,
            "variance": variance,
            **({"no_worse": no_worse} if prices else {}),
        },
        views=(
            build_voices_view(summary),
            build_attribution_view(summary),
            build_sound_view(summary, timed=len(speed) > 0),
            *build_load_views(speed),
            *build_cost_views(report.summary),
        ),
        said=describe_speech_methods(
            title, table, summary, speed, *_list_method_steps(table, order, compared=any(map(len, pairs)))
        ),
        facts={
            **report.facts,
            "intervals": f"{report.facts['intervals']}, sentences drawn as wholes",
            "order": "exact paired test by sentence, Holm, 5% level",
            "speed": timed,
        },
    )


def _list_method_steps(table: pd.DataFrame, order: VoiceOrder, *, compared: bool) -> list[str]:
    """Return what the study did besides scoring, for the methods."""
    rated = "dnsmos_overall" in table.columns and table["dnsmos_overall"].notna().any()
    steps = ["loudness", "pitch", *(["dnsmos"] if rated else [])]
    if order.attribution is not None:
        has_variance = order.attribution.variance["sd_utterance"].notna().any()
        steps += ["attribution", *(["variance"] if has_variance else [])]
    return [*steps, *(["groups", "sign-flip", "holm"] if compared else [])]


def _add_ranking_columns(summary: pd.DataFrame, order: VoiceOrder) -> pd.DataFrame:
    keys = [_VOICE_COLUMN, "language"]
    summary = summary.assign(**{_VOICE_COLUMN: build_full_voice_names(summary)})
    placed = [
        ranking.systems[["system", *_RANKING_COLUMNS]].assign(language=code)
        for code, ranking in order.rankings.items()
    ]
    empty = pd.DataFrame(columns=[*keys, *_RANKING_COLUMNS]).astype(
        {_VOICE_COLUMN: "string", "language": "string"}
    )
    ranked = pd.concat(placed).rename(columns={"system": _VOICE_COLUMN}) if placed else empty
    out = summary.merge(ranked, on=keys, how="left")
    if order.attribution is None:
        return out.reindex(columns=[*out.columns, *_ATTRIBUTION_COLUMNS]).drop(columns=_VOICE_COLUMN)
    attributed = order.attribution.voices[["voice", "language", *_ATTRIBUTION_COLUMNS]]
    attributed = attributed.rename(columns={"voice": _VOICE_COLUMN, "language": "_code"})
    out = out.assign(_code=out["language"].map(parse_language_code))
    return out.merge(attributed, on=[_VOICE_COLUMN, "_code"], how="left").drop(
        columns=["_code", _VOICE_COLUMN]
    )


_PACES = (("morae_per_s", "morae/s"), ("words_per_s", "words/s"), ("characters_per_s", "characters/s"))
_FLAGS = {"clipped": "overdriven", "truncated": "cut off", "repeated": "with a repeated end"}


def build_voices_view(summary: pd.DataFrame) -> View:
    """Return the error rates of the voices, and the certainty of their order."""
    columns = [
        *build_name_columns(summary, by_voice=True),
        build_count_of_total_column("sentences", "utterances_scored", "utterances"),
        build_charted_rate_column("error rate", "ranking_rate", is_in_first_group),
        build_rate_interval_column("sentences"),
        build_notation_column(),
        build_text_column("group", "group"),
        *(
            [build_number_column("first sound (s)", choose_start_time_column(summary))]
            if choose_start_time_column(summary) in summary.columns
            else []
        ),
    ]
    note = (
        f"{explain_ranking(summary)} Voices with the same letter do not differ significantly. {_JUDGE_NOTE}"
    )
    return View.from_rows("The voices", columns, to_rate_rows(summary), note)


def build_attribution_view(summary: pd.DataFrame) -> View:
    """Return the attribution of the errors."""
    columns = [
        *build_name_columns(summary, by_voice=True),
        build_rate_column("this voice", "own_rate", strong=True),
        build_rate_column("its engine's", "engine_rate", optional=True),
        build_rate_column("text or recognizer", "shared_rate"),
        build_count_column(
            "homophones", "homophones", optional=True, counted=("homophone_differences", [1, None])
        ),
        build_count_column("numbers", "number_errors", optional=True),
        build_count_column("spellings", "spelling_errors", optional=True),
        DisplayColumn("takes vary by (points)", _format_take_spread, figure=True, optional=True),
    ]
    note = (
        "The recognizer's slips by chance are among this voice's errors. Homophones, numbers and spellings only "
        "look wrong, and are not among them."
    )
    return View.from_rows("Who causes the errors", columns, summary, note)


def build_sound_view(summary: pd.DataFrame, *, timed: bool) -> View:
    """Return the speed and the sound of the voices."""
    columns = [
        *build_name_columns(summary, by_voice=True),
        build_number_column(
            "first sound (s)", choose_start_time_column(summary), optional=True, with_range=True
        ),
        build_number_column("RTF", "rtf", optional=True, with_range=True),
        build_number_column("loudness (LUFS)", "loudness_lufs", ".1f"),
        DisplayColumn("speaking rate", _format_speaking_rate, figure=True),
        DisplayColumn("silence before, after (s)", _format_edge_silences, figure=True),
        build_number_column("longest pause (s)", "longest_pause_s"),
        build_number_column("DNSMOS (1 to 5)", "dnsmos_overall", optional=True),
        *(
            build_number_column(name.removeprefix(RATED_PREFIX), name)
            for name in summary.columns
            if str(name).startswith(RATED_PREFIX)
        ),
        DisplayColumn("clips that look wrong", _format_flag_counts, optional=True),
    ]
    speed = "Speed: medians of calls made one at a time, voices in turns, with their range. " if timed else ""
    return View.from_rows("Speed and sound", columns, summary, f"{speed}Sound: medians of the clips.")


def _format_speaking_rate(row: Mapping[Any, Any]) -> str | None:
    return next((f"{row[name]:.1f} {unit}" for name, unit in _PACES if not is_missing(row.get(name))), None)


def _format_edge_silences(row: Mapping[Any, Any]) -> str | None:
    before, after = row.get("leading_silence_s"), row.get("trailing_silence_s")
    if is_missing(before) or is_missing(after):
        return None
    return f"{before:.2f}, {after:.2f}"


def _format_take_spread(row: Mapping[Any, Any]) -> str | None:
    return None if is_missing(row.get("take_sd")) else f"±{100 * row['take_sd']:.1f}"


def _format_flag_counts(row: Mapping[Any, Any]) -> str | None:
    counts = {words: row.get(name) for name, words in _FLAGS.items()}
    return ", ".join(f"{n} {words}" for words, n in counts.items() if not is_missing(n) and n) or None
