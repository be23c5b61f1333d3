"""The title of a first look at voices: too few sentences to say which of them is best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.display import format_count
from speechlab.evaluate._advice.evidence import format_row_name
from speechlab.evaluate._speech.ranking import choose_ranking_counts_by_row
from speechlab.evaluate._speech.summary import build_full_voice_names
from speechlab.evaluate._statistics import MIN_PAIRS
from speechlab.evaluate._study_columns import NO_SPEAKER
from speechlab.evaluate._writing.sentences import capitalize_unless_name, join_names, quote_name

if TYPE_CHECKING:
    import pandas as pd

# Error rate above which a voice is often misunderstood.
_MISUNDERSTOOD = 0.2
# Maximum number of voices that the title names.
_MAX_NAMES = 2


def describe_first_look(summary: pd.DataFrame, rated: pd.DataFrame) -> str:
    """Return that too few sentences were said to tell which voice is best, if so, and who is misunderstood."""
    voices = rated[rated["voice"] != NO_SPEAKER]
    several = voices.groupby("language")["voice_name"].transform("nunique") > 1
    compared = voices[several]
    if not len(compared) or (compared["utterances_scored"] >= MIN_PAIRS).any():
        return ""
    names = build_full_voice_names(summary[summary["voice"] != NO_SPEAKER]).dropna()
    count = format_count(int(names.nunique()), "voice")
    least, most = int(compared["utterances"].min()), int(compared["utterances"].max())
    span = f"{least} to " if least < most else ""
    said = f"{span}{format_count(most, 'sentence')} each"
    worst = voices.groupby("voice_name")["common_rate"].max().sort_values(ascending=False)
    bad = worst.index[worst > _MISUNDERSTOOD].tolist()
    few = f"{said} {'proves' if most == 1 else 'prove'} little"
    if len(bad) == len(worst):
        return f"No voice is well understood; {few}."
    if bad:
        who = f"{join_names(bad, most=_MAX_NAMES)} {'is' if len(bad) == 1 else 'are'} often misunderstood"
        return f"{capitalize_unless_name(who, bad)}; {few}."
    return f"{count}, {said}: too few to say which is best."


def describe_worst_sentence(rows: pd.DataFrame, voices: pd.Series[Any], text: str) -> str:
    """Return the sentence with most errors and its voice, of scored rows; nothing where several have most."""
    errors = choose_ranking_counts_by_row(rows)["errors"].astype("Float64").fillna(0).reset_index(drop=True)
    if not len(errors) or not errors.max() or (errors == errors.max()).sum() > 1:
        return ""
    place = int(errors.to_numpy(dtype="float64").argmax())
    row = rows.iloc[place].drop("file", errors="ignore")
    return f"worst sentence: {format_row_name(row, text)} by {quote_name(voices.iloc[place])}"
