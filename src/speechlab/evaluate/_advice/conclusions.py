"""Answers in several languages: one sentence to act on, and a line for each language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from speechlab.display import join_with_and
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
    from speechlab.evaluate._advice.advice import Advice


def build_choice_conclusion(advice: Mapping[str, Advice], where: str = "") -> Conclusion:
    """Return the answer for all languages: what to take, and a line for each language on how sure that is.

    Words on ``where`` that is, such as in which noise, come first. Languages are words.
    """
    decided = {language: one for language, one in advice.items() if one.certainty != "none"}
    leads = list(dict.fromkeys(one.lead for one in decided.values()))
    names = [one.name for one in decided.values()]
    full: set[str] = set()  # languages of which the line repeats what to do
    if not decided:
        lead = "nothing can be advised"
    elif len(leads) == 1 and len(decided) == len(advice):
        lead = leads[0].describe(TITLE_WORDS - len(where.split()))
    else:
        lead = _join_leads(decided)
        if count_words(lead) > TITLE_WORDS:
            lead = _join_leads(decided, is_brief=True)
            full = {language for language, one in decided.items() if not one.lead.verb}
        if count_words(lead) > TITLE_WORDS:
            lead = _count_decided_languages(decided)
            full = {language for language, one in decided.items() if not one.lead.is_plain}
    lines = [
        f"{language}: {_describe_certainty(language, one, is_full=language in full)}."
        if len(advice) > 1
        else f"{capitalize_unless_name(one.words.rstrip('.'), names)}."
        for language, one in advice.items()
    ]
    first = f"{where}, {lead}." if where else f"{capitalize_unless_name(lead, names)}."
    return Conclusion(first, "\n".join(lines))


def _describe_certainty(language: str, advice: Advice, *, is_full: bool) -> str:
    """Return how sure the advice of one of several languages is, with what to do in it first if that is not said."""
    is_told = advice.lead.is_plain or advice.lead.is_provisional
    remarks = () if is_told or not advice.lead.verb else advice.lead.remarks[:1]
    clauses = [*([str(advice.lead)] if is_full else remarks), *advice.clauses]
    words = join_fitting_clauses(clauses, LINE_WORDS - len(language.split())).rstrip(".")
    return f"{quote_name(advice.name)} {words[3:]}" if words.startswith(("it makes ", "it is ")) else words


def _join_leads(decided: Mapping[str, Advice], *, is_brief: bool = False) -> str:
    """Return what to do in each language: what is kept, what is taken, that it is open, or what is too little."""
    clauses = [_join_choices(decided, verb) for verb in ("keep", "take")]
    others = {language: one.lead for language, one in decided.items() if not one.lead.verb}
    few: dict[str, list[str]] = {}  # languages by the sizes of their samples
    for language, lead in others.items():
        if lead.few:
            few.setdefault(lead.few, []).append(language)
    rest = {language: lead for language, lead in others.items() if not lead.few}
    if is_brief and rest:
        clauses.append(f"which is best in {join_with_and([*rest])} is open")
    else:
        clauses += [
            f"which is best in {language} is open" if lead.is_undecided else f"{language}: {lead}"
            for language, lead in rest.items()
        ]
    for count, languages in few.items():
        has = "has" if len(languages) == 1 else "have"
        clauses.append(f"{join_with_and(languages)} {has} {count}")
    return "; ".join(filter(None, clauses))


def _join_choices(decided: Mapping[str, Advice], verb: str) -> str:
    """Return whom to take, or to keep, in which languages, and in which of these others may be as good."""
    languages: dict[str, tuple[list[str], list[str]]] = {}
    for language, one in decided.items():
        if one.lead.verb == verb:
            languages.setdefault(one.lead.names, ([], []))[one.lead.is_provisional].append(language)
    choices, uncertain = [], []
    for names, (settled, provisional) in languages.items():
        if settled:
            also = [f"perhaps also for {join_with_and(provisional)}"] if provisional else []
            choices.append(", ".join([f"{names} for {join_with_and(settled)}", *also]))
        else:
            uncertain.append(f"{names} for {join_with_and(provisional)}")
    later = [f"perhaps {join_with_and(uncertain)}"] if uncertain else []
    if not choices:
        return f"perhaps {verb} {join_with_and(uncertain)}" if uncertain else ""
    return f"{verb} {join_with_and([*choices, *later])}"


def _count_decided_languages(decided: Mapping[str, Advice]) -> str:
    """Return in how many of many languages it is known whom to take, and that no other may be as good."""
    count = sum(bool(one.lead.verb) and not one.lead.is_provisional for one in decided.values())
    return f"{count} of {len(decided)} languages are decided" if count else "no language is decided"
