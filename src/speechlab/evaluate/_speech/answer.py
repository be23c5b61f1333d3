"""The answer of a study of speech without a choice: how much is understood, and where it is worst."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab._arguments import is_missing
from speechlab.display import percent
from speechlab.evaluate._finding import Answer
from speechlab.evaluate._speech.advice import named
from speechlab.evaluate._speech.summary import NO_SPEAKER, ranking_units
from speechlab.evaluate._writing.columns import listed, plural

if TYPE_CHECKING:
    import pandas as pd

_UNITS = {"word": "words", "char": "characters", "reading": "readings", "mixed": "words and characters"}
_OF = 2
"""Number of languages whose certainty a sentence tells."""


def rates_answer(summary: pd.DataFrame, table: pd.DataFrame) -> Answer:
    """Return how much was understood in each language, by which voice best and worst, and from how many rows."""
    lost = int(table["errors"].isna().sum())
    missing = (
        f"{lost:,} of {plural(len(table), 'row')} {'has' if lost == 1 else 'have'} no score and count nowhere"
    )
    rated = summary[summary["ranking_rate"].notna()].assign(unit=ranking_units(summary))
    if not len(rated):
        return Answer("Nothing could be scored.", f"{missing[:1].upper()}{missing[1:]}." if lost else "")
    parts = [(named(str(code)), lines) for code, lines in rated.groupby("language", sort=False)]
    lead = "; ".join(_rated(language, lines) for language, lines in parts)
    sure = [_sure(language, lines) for language, lines in parts[:_OF]]
    return Answer(f"{lead[:1].upper()}{lead[1:]}.", f"{'; '.join([*sure, *([missing] if lost else [])])}.")


def _rated(language: str, lines: pd.DataFrame) -> str:
    best = lines.iloc[0]
    unit = _UNITS.get(str(best["unit"]), "words")
    rate = percent(best["common_rate"])
    if len(lines) == 1:
        who = "" if best["voice"] == NO_SPEAKER else f" of {best['voice_name']}"
        return f"{rate} of the {language} {unit}{who} came out wrong"
    worst = lines.iloc[-1]
    told = f"in {language}, {best['voice_name']} is understood best ({rate} of {unit} wrong)"
    return f"{told}, {worst['voice_name']} worst ({percent(worst['common_rate'])})"


def _sure(language: str, lines: pd.DataFrame) -> str:
    best = lines.iloc[0]
    count = plural(int(best["utterances_scored"]), "recording")
    if len(lines) > 1:
        names = listed([count, f"{len(lines)} voices"])
        return f"{language}: {names}; whether they differ beyond chance was not tested"
    low, high = best["ranking_rate_low"], best["ranking_rate_high"]
    if is_missing(low):
        needs = best["interval_needs"]
        more = "" if is_missing(needs) or not needs else f", {needs} short of a 95 % interval"
        return f"{language}: {count}{more}"
    return f"{language}: {percent(low)} to {percent(high)} with 95 % confidence, {count}"
