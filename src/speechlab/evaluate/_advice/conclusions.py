"""Answers in several languages: one sentence to act on, and a line for each language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab.display import join_with_and
from speechlab.evaluate._writing.columns import format_language
from speechlab.evaluate._writing.contents import Conclusion
from speechlab.evaluate._writing.sentences import (
    LINE_WORDS,
    TITLE_WORDS,
    capitalize_unless_name,
    count_words,
    join_fitting_clauses,
    quote_name,
)

if TYPE_CHECKING:
    import pandas as pd


def build_choice_conclusion(choice: pd.DataFrame, where: str = "") -> Conclusion:
    """Return the answer for all languages: what to take, and a line for each language on how sure that is.

    Words on ``where`` that is, such as in which noise, come first.
    """
    rows = choice.to_dict("records")
    decided = [row for row in rows if not is_missing(row["name"]) and row["certainty"] != "none"]
    names = [row["name"] for row in decided]
    leads = {str(row["lead"]) for row in decided}
    if not decided:
        lead = "nothing can be advised"
    elif len(leads) == 1 and len(decided) == len(rows):
        (lead,) = leads
    elif all(_is_recommended(row) for row in decided):
        choices = [f"{quote_name(row['name'])} for {format_language(row['language'])}" for row in decided]
        lead = f"take {join_with_and(choices)}"
    else:
        lead = _join_advice_by_language(decided)
    if len(lead.split()) > TITLE_WORDS and len(decided) > 1:
        lead = _join_leaders_by_language(decided)
        is_named = lead.startswith("take ")
        rows = [
            row if is_named and _list_taken(row) else {**row, "advice": _put_lead_first(row)} for row in rows
        ]
    lines = [
        f"{format_language(row['language'])}: {_name_subject(row)}."
        if len(rows) > 1
        else f"{capitalize_unless_name(_remove_final_period(row['advice']), names)}."
        for row in rows
    ]
    first = f"{where}, {lead}." if where else f"{capitalize_unless_name(lead, names)}."
    return Conclusion(first, "\n".join(lines))


def _remove_final_period(words: object) -> str:
    return str(words).rstrip(".")


def _name_subject(row: dict[Any, Any]) -> str:
    """Return the advice of one of several languages, with the name of the system that it is about."""
    advice = _remove_final_period(row["advice"])
    return f"{quote_name(row['name'])} {advice[3:]}" if advice.startswith("it makes ") else advice


def _is_recommended(row: dict[Any, Any]) -> bool:
    return str(row["lead"]) == f"take {quote_name(row['name'])}"


def _list_taken(row: dict[Any, Any]) -> str:
    """Return the systems that the advice takes: ``a or b`` of *take a or b, not c*; empty where it takes none."""
    lead = str(row["lead"])
    if is_missing(row["name"]) or not lead.startswith("take "):
        return ""
    return re.split(r", not | over |, which |: (?=[^”]*(?:“|$))", lead.removeprefix("take "))[0]


def _join_leaders_by_language(rows: Sequence[dict[Any, Any]]) -> str:
    """Return whom to take in each language, and where that is open; of many languages their number."""
    taken = [row for row in rows if _list_taken(row)]
    others = [row for row in rows if not _list_taken(row)]
    choices = [f"{_list_taken(row)} in {format_language(row['language'])}" for row in taken]
    clauses = [f"take {', '.join(choices)}"] if taken else []
    languages = [format_language(row["language"]) for row in others]
    clauses += [f"which is best in {join_with_and(languages)} is open"] if others else []
    lead = "; ".join(clauses)
    if count_words(lead) <= TITLE_WORDS:
        return lead
    return f"{len(taken)} of {len(rows)} languages are decided" if taken else "no language is decided"


def _put_lead_first(row: dict[Any, Any]) -> str:
    """Return the advice of a language with what to do in it first, as far as a line has room."""
    if is_missing(row["name"]) or _is_recommended(row):
        return str(row["advice"])
    clauses = [str(row["lead"]), *_remove_final_period(row["advice"]).split("; ")]
    return join_fitting_clauses(clauses, LINE_WORDS - len(format_language(row["language"]).split()))


def _join_advice_by_language(rows: Sequence[dict[Any, Any]]) -> str:
    """Return what to do in each language in one sentence: what is taken first, then who is ahead."""
    clauses = []
    for row in sorted(rows, key=_is_recommended, reverse=True):
        name, language = quote_name(row["name"]), format_language(row["language"])
        if _is_recommended(row):
            clauses.append(f"take {name} for {language}")
        elif str(row["lead"]).startswith((f"{name} is ahead of ", "no difference shown between ")):
            clauses.append(f"in {language} no difference is shown")
        else:
            clauses.append(f"{language}: {row['lead']}")
    return "; ".join(clauses)
