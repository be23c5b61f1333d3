"""The answer on streamed recognition: when its text is final, and how much of it is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab.display import format_count, format_percent, join_with_and
from speechlab.evaluate._advice.choice import LEVEL
from speechlab.evaluate._recognition.conditions import AS_RECORDED
from speechlab.evaluate._speech.summary import UNITS, choose_ranking_units
from speechlab.evaluate._statistics import MIN_PAIRS
from speechlab.evaluate._writing.columns import capitalize_sentence, format_interval, format_language
from speechlab.evaluate._writing.contents import Conclusion

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.evaluate._systems import System

# Lines of a summary that the answer tells.
_MAX_CLAUSES = 3


def build_streams_conclusion(
    summary: pd.DataFrame, systems: Sequence[System], differences: pd.DataFrame, advice: Conclusion | None
) -> Conclusion:
    """Return when streamed text is final and how much of it is wrong, against whole recordings if there are any."""
    lines = summary[summary["streams"].notna() & summary["ranking_rate"].notna()]
    if "condition" in lines.columns:
        lines = lines[lines["condition"] == AS_RECORDED]
    if not len(lines):
        return Conclusion("No stream could be scored.", "The table of rows has the reasons.")
    rows = lines.assign(unit=choose_ranking_units(lines)).to_dict("records")
    waits = [
        None if is_missing(row.get("finalization_s")) else f"{row['finalization_s']:.2f} s" for row in rows
    ]
    if advice is not None:
        keys = ("system", "language") if len({row["language"] for row in rows}) > 1 else ("system",)
        timed_rows = zip(waits, rows, strict=True)
        times = [f"{wait} ({', '.join(row[name] for name in keys)})" for wait, row in timed_rows if wait]
        more = f" Streamed text is final {join_with_and(times)} after the end of speech." if times else ""
        return Conclusion(advice.text, f"{advice.certainty}{more}".strip())
    (live,) = (system for system in systems if system.is_streaming)
    partner, clauses, certainties = live.find_unstreamed_system(systems), [], []
    for wait, row in zip(waits[:_MAX_CLAUSES], rows[:_MAX_CLAUSES], strict=True):
        whole_rate = _find_unstreamed_rate(summary, partner, row)
        against = "" if is_missing(whole_rate) else f" (whole: {format_percent(whole_rate)})"
        share_wrong = (
            f"{format_percent(row['common_rate'])} of {UNITS.get(row['unit'], 'words')} are wrong{against}"
        )
        language = format_language(str(row["language"]))
        timing = f"is final {wait} after the end of speech" if wait else "has no times"
        clauses.append(f"{timing} in {language}, where {share_wrong}")
        certainties.append(
            f"{f'{language}: ' if len(rows) > 1 else ''}{_describe_stream_certainty(row, differences, partner)}"
        )
    return Conclusion(
        f"Streamed text {'; it '.join(clauses)}.", f"{capitalize_sentence('; '.join(certainties))}."
    )


def _find_unstreamed_rate(summary: pd.DataFrame, system: System | None, row: Mapping[Any, Any]) -> Any:
    """Return the error rate of the system on the same recordings whole, if there is one."""
    same = summary[summary["system"] == system.name] if system is not None else summary.iloc[:0]
    for name in ("voice", "language", *(["condition"] if "condition" in row else [])):
        same = same[same[name] == row[name]]
    return next(iter(same["common_rate"]), None)


def _describe_stream_certainty(
    row: Mapping[Any, Any], differences: pd.DataFrame, whole: System | None
) -> str:
    """How sure the difference from whole recordings is, and the times of streams."""
    count = format_count(int(row["utterances_scored"]), "recording")
    ends = format_interval(row.get("finalization_s_low"), row.get("finalization_s_high"))
    times = f"; final texts came after {ends} s" if ends else ""
    if not is_missing(most := row.get("finalization_s_p95")):
        times = f"; 95 of 100 texts are final within {most:.2f} s"
    differences_of_both = [
        difference
        for difference in differences.to_dict("records")
        if whole is not None
        and difference["language"] == row["language"]
        and difference["condition"] in {"", AS_RECORDED}
        if {difference["a"], difference["b"]} == {row["system"], whole.name}
    ]
    if not differences_of_both:
        return f"that is of {count}{times}"
    if differences_of_both[0]["n"] < MIN_PAIRS:
        return f"{count} cannot show whether the rates differ by chance; take {MIN_PAIRS} or more{times}"
    p = differences_of_both[0]["p_holm"]
    beyond = "is beyond chance" if not is_missing(p) and p < LEVEL else "may be chance"
    return f"the difference in errors {beyond} on {count}{times}"
