"""The report of a study of recognition: one system, or several beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from speechlab._pandas import pd
from speechlab.evaluate._advice.choice import MARGIN
from speechlab.evaluate._advice.findings import (
    add_reference_warning,
    list_output_findings,
    list_wrong_reference_findings,
)
from speechlab.evaluate._advice.no_worse import (
    Contest,
    build_contest,
    build_price_findings,
    compare_with_dearer,
)
from speechlab.evaluate._advice.rates import build_rates_conclusion
from speechlab.evaluate._advice.speech_report import (
    build_speech_report,
    build_wide_table,
    describe_speech_methods,
)
from speechlab.evaluate._recognition.comparisons import SystemOrder, build_systems_conclusion, rank_systems
from speechlab.evaluate._recognition.condition_effects import (
    build_condition_findings,
    build_conditions_conclusion,
    choose_loudest_or_last_condition,
    compare_conditions,
)
from speechlab.evaluate._recognition.conditions import AS_RECORDED
from speechlab.evaluate._recognition.hallucinations import (
    build_silence_findings,
    flag_hallucinations_and_truncation,
)
from speechlab.evaluate._recognition.hotwords import (
    HotwordEffects,
    add_hotword_effects,
    build_hotwords_view,
    measure_hotword_effects,
)
from speechlab.evaluate._recognition.recognition_measures import (
    add_stream_ratios,
    build_measures_view,
    build_streams_view,
)
from speechlab.evaluate._recognition.stream_answer import build_streams_conclusion
from speechlab.evaluate._speech.costs import read_unit_prices
from speechlab.evaluate._speech.ranking import READINGS
from speechlab.evaluate._speech.summary import FLAGS, choose_ranking_units, summarize_speech
from speechlab.evaluate._study_columns import NO_SPEAKER
from speechlab.evaluate._writing.contents import Conclusion, Contents, Drawing, ShownRows
from speechlab.evaluate._writing.differences import build_differences_drawing, build_differences_view
from speechlab.metrics import DIFFERENCES, judge

if TYPE_CHECKING:
    from speechlab.evaluate._systems import System
    from speechlab.evaluate._writing.columns import View

_BEYOND_DB = 10.0
_PAIRING_NOTE = "On the recordings that all systems have, by exact tests paired by recording."


def _build_recognition_views(
    summary: pd.DataFrame,
    differences: pd.DataFrame,
    hotwords: pd.DataFrame,
    measures: pd.DataFrame,
    *,
    streamed: bool,
) -> list[View]:
    """Return the tables that this study alone has, of those with any row."""
    views: list[View] = [build_streams_view(summary)] if streamed else []
    if len(differences):
        views.append(build_differences_view(differences, "Differences of systems", _PAIRING_NOTE))
    if len(hotwords) and hotwords[["hotwords_said", "hotwords_added"]].to_numpy().any():
        views.append(build_hotwords_view(hotwords))
    measured = [build_measures_view(measures)] if len(measures) else []
    return [*views, *measured]


def _build_contests(order: SystemOrder) -> dict[tuple[str, str], Contest]:
    """Return what the systems of each place have said of the same recordings."""
    return {
        place: build_contest(known, order.scores[place], "system", "recording")
        for place, known in order.evidence.items()
    }


def build_recognition_report(
    title: str,
    table: pd.DataFrame,
    text: str,
    language: str,
    *,
    systems: Sequence[System],
    nothing: pd.DataFrame,
    about: str,
    measures: pd.DataFrame,
    **facts: Any,
) -> Contents:
    """Flag scored rows, put their systems in order, and say what hotwords and conditions did."""
    hotwords = measure_hotword_effects(flag_hallucinations_and_truncation(table), systems, language)
    table, speed = hotwords.table, facts["speed"]
    items = "recording" if "recording" in table.columns else None
    summary = add_stream_ratios(table, summarize_speech(table, language, speed, items=items), language)
    names = list(dict.fromkeys(table["system"].astype(str))) if "system" in table.columns else []
    nothing_ranked = SystemOrder(pd.DataFrame(), judge([]), ())
    order = rank_systems(table, text, language, about) if names else nothing_ranked
    changes = compare_conditions(table, text, language) if "condition" in table.columns else judge([])
    conditions = build_condition_findings(changes)
    references, decisive = list_wrong_reference_findings(table, text, language)
    of_rows = (*list_output_findings(table, text, language), *references, *hotwords.verdicts)
    findings = (*order.verdicts, *of_rows, *build_silence_findings(nothing), *conditions)
    settings = (facts.get("record") or {}).get("settings", {})
    claims = {"margin": settings.get("margin", MARGIN), "baseline": settings.get("baseline", "")}
    prices = read_unit_prices(settings)
    summary = _add_groups(summary, order)
    no_worse = compare_with_dearer(_build_contests(order) if prices else {}, prices, **claims)
    findings = (*findings, *build_price_findings(no_worse))
    changed = [name for name in _list_conditions(table) if name != AS_RECORDED]
    live = [system.name for system in systems if system.is_streaming]
    if live:
        several = len(live) > 1
        choice = rank_systems(table[table["system"].isin(live)], text, language, about) if several else None
        answer = _build_streams_conclusion(summary, systems, order, choice, speed, claims)
    elif names:
        answer = build_systems_conclusion(order, speed, findings, changed, **claims, no_worse=no_worse)
    elif conditions:
        answer = build_conditions_conclusion(conditions, changed)
    else:
        answer = build_rates_conclusion(summary, table, text, language, of_speakers=True)
    decides = choose_loudest_or_last_condition(changed) if changed else ""
    answer = add_hotword_effects(answer, hotwords, decides)
    answer = add_reference_warning(answer, references) if decisive else answer
    facts |= {"summary": summary, "conclusion": answer}
    report = build_speech_report(title, table, text=text, language=language, **facts)
    tables = {"order": order.systems.drop(columns="excluded", errors="ignore"), "hotwords": hotwords.summary}
    tables |= {"speechless": nothing, "measures": measures}
    display, wide_tables = _choose_row_display(table, text, language, _sort_systems_best_first(names, order))
    drawn_tables, drawings = _order_figures_and_tables(report.drawings, order, summary, table)
    drawn_tables |= {"no_worse": no_worse} if prices else {}
    first, *timed = report.views
    own_views = _build_recognition_views(
        summary, order.differences, hotwords.summary, measures, streamed=bool(live)
    )
    tests = [rows for rows in (order.differences, changes, hotwords.differences) if len(rows)]
    methods = _list_method_steps(table, order, hotwords, changes, nothing, no_worse)
    noise_kind = str(settings.get("noise", "speech"))
    return replace(
        report,
        study="recognition",
        findings=findings,
        differences=pd.concat(tests, ignore_index=True)[[*DIFFERENCES, "blocks"]] if tests else judge([]),
        tables={**report.tables, **tables, **wide_tables, **drawn_tables},
        views=(first, *own_views, *timed),
        drawings=tuple(drawings),
        shown=display,
        said=describe_speech_methods(title, table, summary, speed, *methods, noise=noise_kind),
    )


def _add_groups(summary: pd.DataFrame, order: SystemOrder) -> pd.DataFrame:
    """Return a summary with the letters of systems; those that share one do not differ significantly.

    There are none where failed rows of the first or few speakers leave verdicts open.
    """
    letters = {
        (str(row["system"]), code, condition): row["group"]
        for (code, condition), known in order.evidence.items()
        if known.order.systems["system"].iloc[0] not in known.lacking and not known.about
        for row in known.order.systems.to_dict("records")
    }
    if not letters:
        return summary
    conditions = summary["condition"] if "condition" in summary.columns else [""] * len(summary)
    places = zip(summary["system"], summary["language"], conditions, strict=True)
    groups = [letters.get((str(name), str(code), str(condition))) for name, code, condition in places]
    return summary.assign(group=pd.array(groups, dtype="string"))


def _sort_systems_best_first(names: list[str], order: SystemOrder) -> list[str]:
    """Return the systems in their order; as they were given, if some have no place in it."""
    best_first = list(dict.fromkeys(order.systems["system"])) if len(order.systems) else names
    return sorted(names, key=best_first.index) if set(names) <= set(best_first) else names


def _build_streams_conclusion(
    summary: pd.DataFrame,
    systems: Sequence[System],
    order: SystemOrder,
    choice: SystemOrder | None,
    speed: pd.DataFrame,
    claims: dict[str, Any],
) -> Conclusion:
    """Return the answer on streams, with the choice between several of them."""
    advice = None if choice is None else build_systems_conclusion(choice, speed, choice.verdicts, **claims)
    return build_streams_conclusion(summary, systems, order.differences, advice)


def _list_conditions(table: pd.DataFrame) -> list[str]:
    return table["condition"].astype(str).unique().tolist() if "condition" in table.columns else []


def _order_figures_and_tables(
    figures: Sequence[Drawing], order: SystemOrder, summary: pd.DataFrame, table: pd.DataFrame
) -> tuple[dict[str, pd.DataFrame], list[Drawing]]:
    """The figures, the most important one first, without rates that another one shows; and the tables they draw."""
    rates = [figure for figure in figures if figure.function == "error_rates"]
    further = [figure for figure in figures if figure not in rates]
    tables = {"of_systems": order.differences} if len(order.differences) else {}
    systems = [
        build_differences_drawing(rows, "Differences of systems", name) for name, rows in tables.items()
    ]
    if "condition" not in summary.columns:
        if not systems or order.differences["low"].isna().all():  # one point each says less than the rates
            return tables, [*rates, *further]
        return tables, [*systems, *(rates if summary["system"].nunique() > 2 else []), *further]
    noise, levels = _compute_rates_by_noise(summary, table)
    if not len(noise):
        return tables, [*systems, *rates, *further]
    by = [name for name in ("system", "language") if name in noise.columns and noise[name].nunique() > 1]
    options = {"column": "snr_db", "by": by, "ticks": levels}
    drawing = Drawing("Error rate against noise", "error_by_measure", ("noise",), options)
    names = summary["condition"].astype(str)
    noisy = names.str.startswith("noise ") | (names == AS_RECORDED)
    return {**tables, "noise": noise}, [drawing, *systems, *([] if noisy.all() else rates), *further]


def _list_method_steps(
    table: pd.DataFrame,
    order: SystemOrder,
    words: HotwordEffects,
    conditions: pd.DataFrame,
    nothing: pd.DataFrame,
    no_worse: pd.DataFrame,
) -> list[str]:
    """Return what the study did besides scoring, for the methods."""
    names = set(table["condition"].astype(str)) if "condition" in table.columns else set()
    has_flags = bool(table["hallucination"].notna().any())
    tested = len(order.differences) or len(conditions)
    methods = {
        "streamed": "revisions" in table.columns,
        "made up": has_flags,
        "lost ends": has_flags,
        "noise": any(name.startswith("noise ") for name in names),
        "bands": any(name.endswith(" Hz") for name in names),
        "silence": len(nothing),
        "groups": len(order.differences),
        "hotwords": len(words.differences),
        "sign-flip": tested,
        "holm": tested or len(words.differences),
        "no worse": no_worse["p"].notna().any(),
    }
    return [name for name, applies in methods.items() if applies]


def _choose_row_display(
    table: pd.DataFrame, text: str, language: str, names: list[str]
) -> tuple[ShownRows, dict[str, pd.DataFrame]]:
    """How the rows are shown: the worst first, of two systems side by side, of more in one wide table."""
    present, roles = table.columns, {"reference": text, "language": language}
    of_files = "file" in present and not table["file"].astype(str).str.fullmatch(r"row \d+").all()
    leading = [*(["condition"] if "condition" in present else []), *(["file"] if of_files else [])]
    texts, rates = ([f"{column}_{name}" for name in names] for column in ("hypothesis", "error_rate"))
    if len(names) == 2:
        columns = [*leading, text, *texts, "fewer_errors", "error_difference", *rates, language]
        return ShownRows(scored=True, options={**roles, "names": names, "columns": columns}), {}
    if names:
        columns = [*leading, text, *texts, "error_spread", *rates, language]
        counted = [flag for flag in FLAGS.values() if flag in present and table[flag].any()]
        wide = build_wide_table(table, names, text, language, [*counted, "status"]).reset_index(drop=True)
        options = {**roles, "hypotheses": texts, "columns": columns}
        return ShownRows("side_by_side", options=options), {"side_by_side": wide}
    ranked = [
        name
        for name in (READINGS.rate, "tolerant_wer")
        if name in present and (table[name].notna() & (table[name] != table["error_rate"])).any()
    ]
    flags = [name for name in FLAGS.values() if name in present and table[name].any()]
    speaker_column = [] if (table["voice"] == NO_SPEAKER).all() else ["voice"]
    scores = [*ranked, "error_rate", "errors", "error_classes", *flags]
    columns = [*leading, text, "hypothesis", *scores, language, *speaker_column]
    return ShownRows(scored=True, options={**roles, "columns": columns}), {}


def _compute_rates_by_noise(
    summary: pd.DataFrame, table: pd.DataFrame
) -> tuple[pd.DataFrame, list[tuple[float, str]]]:
    """Return the rates by level of noise; recordings as they are stand 10 dB beyond the quietest noise."""
    if "snr_db" not in table.columns or not table["snr_db"].notna().any():
        return pd.DataFrame(), []
    noisy = table.dropna(subset="snr_db").drop_duplicates("snr_db")
    places = dict(zip(noisy["condition"].astype(str), noisy["snr_db"].astype(float), strict=True))
    places[AS_RECORDED] = max(places.values()) + _BEYOND_DB
    rated = summary.assign(unit=choose_ranking_units(summary))
    rated = rated[rated["condition"].astype(str).isin(places)]
    at = rated["condition"].astype(str).map(places).astype("float64")
    places_on_axis = {f"snr_db_{end}": at for end in ("from", "to", "mean")}
    rates = {f"error_rate{end}": rated[f"ranking_rate{end}"] for end in ("", "_low", "_high")}
    lines = rated.assign(**places_on_axis, **rates).sort_values("snr_db_mean", kind="stable")
    if "system" in table.columns:  # systems have one color in all panels
        names = list(dict.fromkeys(table["system"]))
        lines = lines.sort_values("system", key=lambda column: column.map(names.index), kind="stable")
    ticks = [(level, name if name == AS_RECORDED else f"{level:g}") for name, level in places.items()]
    return lines, ticks
