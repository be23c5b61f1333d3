"""Voices in order: a ranking for each language, what could overturn it, and whose the errors are."""

from __future__ import annotations

from typing import Any, NamedTuple

from speechlab._pandas import pd
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._advice.evidence import (
    AnswerEvidence,
    build_answer_evidence,
    list_mostly_failing_systems,
)
from speechlab.evaluate._speech.ranking import score_for_ranking
from speechlab.evaluate._speech.summary import build_full_voice_names
from speechlab.evaluate._study_arguments import find_language_codes
from speechlab.metrics import Attribution, Ranking, attribute, rank


class VoiceOrder(NamedTuple):
    """Voices in order.

    ``attribution`` is None without scored rows; ``open`` has the reasons of languages without a ranking, ``evidence``
    what could overturn one, and ``scores`` its rows.
    """

    rankings: dict[str, Ranking]
    attribution: Attribution | None
    notes: list[str]
    open: dict[str, str]
    evidence: dict[str, AnswerEvidence]
    scores: dict[str, pd.DataFrame]


def rank_voices(table: pd.DataFrame, text: str, language: str) -> VoiceOrder:
    """Rank the voices of each language, Japanese by readings, and attribute their errors."""
    rankings: dict[str, Ranking] = {}
    evidence: dict[str, AnswerEvidence] = {}
    scored: dict[str, pd.DataFrame] = {}
    ranked, notes, unranked = [], [], {}
    is_known = table[language].astype(object).map(lambda cell: bool(find_language_codes(cell)))
    rows = table[table["voice"].notna() & is_known]
    rows = rows.assign(voice_name=build_full_voice_names(rows))
    for code, group in rows.groupby(language, observed=True, sort=True):
        scores = score_for_ranking(group, text, language, ["voice", "voice_name", "engine"])
        alive = scores[scores["errors"].notna()]
        placed = scores[scores["voice_name"].isin(alive["voice_name"])]
        absent = list_mostly_failing_systems(placed, text, "voice_name")
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
        notes += [
            f"{name} ({code}) failed on too many sentences to have a place in the order." for name in absent
        ]
        present = alive[~alive["voice_name"].isin(absent)]
        try:
            ranking = rank(present, system="voice_name", utterance=text)
        except InvalidRequestError:
            why = "no sentence was heard from all voices; run the study again for the rows that failed"
            unranked[str(code)] = why
            continue
        rankings[str(code)] = ranking
        facts: dict[str, Any] = {"system": "voice_name", "block": None, "absent": (*absent, *failed)}
        scored[str(code)] = scores
        evidence[str(code)] = build_answer_evidence(scores, ranking, text, text, **facts)
        if ranking.excluded:
            were = "was" if ranking.excluded == 1 else "were"
            notes.append(
                f"{format_count(ranking.excluded, 'sentence')} ({code}) {were} left out of the order, because not "
                "all voices have them; the order is that of the other sentences. The same call asks again for "
                "what failed."
            )
    attribution = None
    if ranked:
        attribution = attribute(pd.concat(ranked), voice="voice_name", utterance=text, engine="engine")
    return VoiceOrder(rankings, attribution, notes, unranked, evidence, scored)
