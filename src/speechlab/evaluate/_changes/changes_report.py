"""Changes between two reports of one study, as a report, with those of paired times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from speechlab._arguments import build_argument_error
from speechlab._pandas import pd
from speechlab._platform import get_package_version
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._advice.evidence import FEW_SPEAKERS
from speechlab.evaluate._changes.changes_answer import build_changes_conclusion
from speechlab.evaluate._changes.tested import DEFAULT_NAMES, compare_report_rows, pair_rows
from speechlab.evaluate._statistics import MIN_PAIRS, estimate_paired_ratio
from speechlab.evaluate._study_columns import NO_SPEAKER, SIDES
from speechlab.evaluate._writing.contents import Contents, Finding, ShownRows
from speechlab.evaluate._writing.differences import (
    HEADINGS,
    build_differences_drawing,
    build_differences_view,
    describe_differences_by_verdict,
)
from speechlab.evaluate._writing.methods import describe_methods, list_distinct_values
from speechlab.evaluate._writing.record import join_service_names
from speechlab.evaluate._writing.recordings import SOUNDS
from speechlab.metrics import ALIKE, BETTER, DIFFERENCES, RATIO, UNPAIRED, WORSE, judge


def compare_reports(now: Contents, earlier: Contents, names: Sequence[str] = DEFAULT_NAMES) -> Contents:
    """Compare a report with an earlier one of the same study.

    Returns:
        ``table``: the rows that both have, those first that changed most: that of the later report, with
        ``hypothesis_earlier``, ``errors_earlier``, ``error_difference`` and ``status_earlier``; of translations
        ``translation_earlier`` and ``score_difference``. ``summary``: the differences of each voice and language, or
        direction, and of rows that failed: the columns of ``differences``, ``group``, ``only_now`` and
        ``only_earlier`` (rows without a partner). ``differences`` has those of speed, too, which are corrected by
        themselves.
    """
    if "listening" in {now.study, earlier.study}:
        # S. Zieliński, F. Rumsey, S. Bech, On some biases encountered in modern audio quality listening tests,
        # Journal of the Audio Engineering Society 56 (2008)
        message = (
            "two listening tests cannot be compared, since ratings depend on the other sounds of a test; put "
            "the recordings of both into one ListeningTest, as systems of their own, and look at its differences"
        )
        raise InvalidRequestError(message, parameter="earlier")
    called = first, second = _check_report_names(names)
    translated = now.study == earlier.study == "translation"
    table, rows = compare_report_rows(now, earlier)
    timed = compare_speed(now, earlier)
    tests, speed = (
        judge([{"blocks": row["n"], **row, "a": first, "b": f"{row['group']}: {second}"} for row in part])
        for part in (rows, timed)
    )
    about = _find_few_speakers(now, earlier)
    if about:
        tests["verdict"] = tests["verdict"].where(
            ~tests["verdict"].isin([WORSE, BETTER]) | (tests["unit"] == "row"), FEW_SPEAKERS
        )
    summary = tests[[*DIFFERENCES, "group", "only_now", "only_earlier"]]
    differences = pd.concat([part for part in (tests, speed) if len(part)], ignore_index=True)
    title = f"{'Changes' if called == DEFAULT_NAMES else f'{second} against {first}'}: {now.title}"
    tested = summary[summary["verdict"] != UNPAIRED]
    view = build_differences_view(summary, "What changed", "Of the rows that both reports have.", called)
    views = [view, *([build_differences_view(speed, "Speed", names=called)] if timed else [])]
    frame, shown = _choose_row_display(table, called, translated=translated)
    record = {"now": dict(now.record), "earlier": dict(earlier.record), "names": called, "title": now.title}
    reports = {"now": now, "earlier": earlier}
    compared = {name: report.to_study_rows() for name, report in reports.items()}
    compared["earlier"] = compared["earlier"].drop(columns=[*SOUNDS], errors="ignore")
    compared |= {f"speed_{name}": report.speed for name, report in reports.items() if len(report.speed)}
    steps = _list_method_steps(summary, timed=bool(timed), translated=translated)
    return Contents(
        title,
        table,
        summary,
        build_changes_conclusion(tests, speed, called, about),
        "changes",
        findings=tuple(_build_findings(summary, speed, called)),
        notes=tuple(_list_stored_row_notes(now)),
        differences=differences[[*DIFFERENCES, "group"]],
        tables={"tested": tested, **({} if frame is table else {"rows": frame}), **compared},
        views=tuple(views),
        drawings=(build_differences_drawing(tested, "Differences", "tested"),) if len(tested) else (),
        shown=shown,
        said=describe_methods(title, *steps, signatures=list_distinct_values(table, "signature")),
        facts=_collect_report_facts(record, called),
        record=record,
    )


def _find_few_speakers(now: Contents, earlier: Contents) -> str:
    """Return the speakers that both reports are about, if they are too few for others."""
    abouts = [str(dict(report.record).get("settings", {}).get("about") or "") for report in (now, earlier)]
    if any(abouts) or now.study != "recognition" or "voice" not in now.table:
        return next(filter(None, abouts), "")
    speakers = now.table.loc[now.table["voice"] != NO_SPEAKER, "voice"].dropna()
    few = speakers.duplicated().any() and speakers.nunique() < MIN_PAIRS
    return format_count(speakers.nunique(), "speaker", in_words=True) if few else ""


def _list_stored_row_notes(now: Contents) -> list[str]:
    """Return a note on rows of the later report that a store answered, so that they may be of an earlier day."""
    if not now.record.get("runs") or "status" not in now.table:
        return []
    count, total = int((now.table["status"] == "cached").sum()), len(now.table)
    if not count:
        return []
    which = f"All {total:,} rows" if count == total else f"{count:,} of {total:,} rows"
    return [f"{which} of the later report came from a store, and may be answers of an earlier day."]


def _build_findings(summary: pd.DataFrame, speed: pd.DataFrame, names: tuple[str, str]) -> list[Finding]:
    first, second = names
    direction = "" if names == DEFAULT_NAMES else f", from {first} to {second}"
    alone = ("in this report alone", "in the earlier one alone")
    alone = alone if names == DEFAULT_NAMES else (f"of {second} alone", f"of {first} alone")
    findings = _describe_tests(summary, direction)
    for name, what in zip(("only_now", "only_earlier"), alone, strict=True):
        if count := int(summary[name].sum()):
            words = f"{format_count(count, 'row')} {'is' if count == 1 else 'are'} {what} and not compared."
            findings.append(Finding(words, numbers={name: count}))
    return findings + _describe_tests(speed)


def _describe_tests(tests: pd.DataFrame, direction: str = "") -> list[Finding]:
    """Return a finding for each verdict; that nothing is shown stands behind the methods, for the table has it."""
    return [
        Finding(words, systems=tuple(groups), shown="method" if verdict == ALIKE else "page")
        for verdict, words, groups in describe_differences_by_verdict(tests, direction)
    ]


def _choose_row_display(
    table: pd.DataFrame, names: tuple[str, str], *, translated: bool
) -> tuple[pd.DataFrame, ShownRows]:
    """How the rows are shown: what was recognized earlier and now, against the reference."""
    output = "translation" if translated else "hypothesis"
    outputs = [f"{output}_earlier", output]
    if names != DEFAULT_NAMES:
        called = [f"{output}: {name}" for name in names]
        table, outputs = table.rename(columns=dict(zip(outputs, called, strict=True))), called
    sides = [name for name in SIDES if name in table.columns]
    columns = ["text", *outputs, "error_difference", "language", *sides, "voice_name"]
    roles = {"reference": "text", "language": "language"}
    if translated:
        references = ["reference"] if "reference" in table.columns else []
        columns = [*references, "text", *outputs, "score_difference"]
        roles = {**{name: name for name in references}, "language": "target_lang"}
    options = {**roles, "hypotheses": outputs, "columns": columns}
    return table, ShownRows("table" if names == DEFAULT_NAMES else "rows", options=options)


def _list_method_steps(summary: pd.DataFrame, *, timed: bool, translated: bool) -> list[str]:
    scores = summary[summary["unit"] != "row"]
    tested, low = bool(scores["p"].notna().any()), bool(scores["low"].notna().any())
    steps = ["chrf"] if translated else ["pooled"]
    steps += [("randomization" if translated else "sign-flip")] if tested else []
    steps += [("paired intervals" if translated else "intervals")] if low else []
    return [*steps, *(["ratios"] if timed else []), *(["holm"] if summary["p"].notna().any() else [])]


def _collect_report_facts(record: Mapping[str, Any], names: tuple[str, str]) -> dict[str, str]:
    """When both reports were made, and of which services."""
    facts = {"speechlab": get_package_version()}
    for key, name in zip(DEFAULT_NAMES, names, strict=True):
        if side := record[key]:
            details = [
                str(side.get("made", "")),
                f"speechlab {side.get('speechlab', '?')}",
                join_service_names(side),
            ]
            facts[name] = ", ".join(detail for detail in details if detail)
    return facts


def _check_report_names(names: Sequence[str]) -> tuple[str, str]:
    """Return the names of two reports."""
    texts: list[Any] = [] if isinstance(names, str) or not isinstance(names, list | tuple) else list(names)
    if len(texts) != 2 or not all(isinstance(text, str) and text.strip() for text in texts):
        raise build_argument_error(
            "names", names, "two texts, that of the report in brackets first: ('ours', 'theirs')"
        )
    if texts[0].strip() == texts[1].strip() or set(texts) & set(HEADINGS):
        message = f"names={names!r} coincide with each other or with the columns {', '.join(HEADINGS)}"
        raise InvalidRequestError(message, parameter="names")
    return texts[0], texts[1]


TIMES = {
    "first_byte_s": "time to the first samples",
    "first_audible_s": "time to the first sound",
    "first_word_s": "time to the first word",
    "total_s": "time to the end",
    "first_partial_s": "time to the first partial",
    "finalization_s": "time from the end of speech to the final text",
}


def compare_speed(now: Contents, earlier: Contents) -> list[dict[str, Any]]:
    """Compare the calls that both reports timed, voice by voice or system by system."""
    later, former = group_and_average_calls(now), group_and_average_calls(earlier)
    if not len(later) or not len(former):
        return []
    times = [name for name in TIMES if name in later.columns and name in former.columns]
    ambiguous = _has_duplicate_voice_names(later) or _has_duplicate_voice_names(former)
    keys = ("_group", *SIDES, *(["voice"] if ambiguous else []), "file", "text")
    pairs, _, _ = pair_rows(later, former, keys, times)
    rows = [
        {"group": str(group), "measure": TIMES[name], **_compare_paired_times(calls, name)}
        for group, calls in pairs.groupby("_group", sort=False)
        for name in times
    ]
    return [row for row in rows if row["n"]]


def group_and_average_calls(report: Contents) -> pd.DataFrame:
    """Timed calls without errors, each with its group."""
    timed = report.speed
    if "error" not in timed.columns or not len(timed):
        return pd.DataFrame()
    calls = timed[timed["error"].isna()]
    names = [*SIDES, *([] if report.study == "recognition" else ["voice_name"]), "language"]
    words = [calls[name].astype(str) for name in names if name in calls.columns]
    if {"source_lang", "target_lang"} <= set(calls.columns):
        words = [calls["system"].astype(str)] if (calls["system"] != "").any() else []
        words.append(calls["source_lang"].astype(str) + " → " + calls["target_lang"].astype(str))
    group = words[0].str.cat(pd.DataFrame(dict(enumerate(words[1:]))), sep=", ") if words[1:] else words[0]
    return _average_concurrent_calls(calls.assign(_group=group).reset_index(drop=True))


def _average_concurrent_calls(calls: pd.DataFrame) -> pd.DataFrame:
    """Calls that began together as one, with the geometric means of their times: they share what slows them."""
    callers = calls.get("concurrency", pd.Series(1, calls.index))
    at_once = (callers > 1).fillna(value=False)
    if not at_once.any():
        return calls
    items = [name for name in ("file", "text") if name in calls.columns]
    keys = [name for name in ("_group", "concurrency", "turn", *SIDES, "voice") if name in calls.columns]
    times = {name: _compute_geometric_mean for name in TIMES if name in calls.columns}
    by_turn = calls[at_once].groupby(keys, observed=True, sort=False)
    joined: dict[str, Any] = dict.fromkeys(items, lambda texts: "\x1f".join(sorted(texts.astype(str))))
    together = by_turn.agg({**times, **joined}).reset_index()
    together["_group"] += ", " + together["concurrency"].astype(str) + " at once"
    return pd.concat([calls[~at_once], together], ignore_index=True)


def _compute_geometric_mean(times: pd.Series[float]) -> float:
    measured = times.dropna().astype("float64")
    return float(np.exp(np.log(measured[measured > 0]).mean()))


def _has_duplicate_voice_names(calls: pd.DataFrame) -> bool:
    """Return whether several voices have the same name, so that only their ids differ."""
    if "voice" not in calls.columns:
        return False
    return bool(calls.drop_duplicates(["_group", "voice"])["_group"].duplicated().any())


def _compare_paired_times(calls: pd.DataFrame, name: str) -> dict[str, Any]:
    pairs = calls[[name, f"{name}_earlier"]].astype("float64").dropna()
    pairs = pairs[(pairs > 0).all(axis=1)]
    now, before = (pairs[column].to_numpy() for column in pairs.columns)
    if not len(pairs):
        return {"n": 0}
    return {
        "unit": RATIO,
        "n": len(pairs),
        "value_a": float(np.median(before)),
        "value_b": float(np.median(now)),
        **estimate_paired_ratio(now, before),
        "test": "Student's t of the logarithms",
        "more": "slower",
    }
