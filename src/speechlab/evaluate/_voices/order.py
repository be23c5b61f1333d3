"""The order of voices: rankings by language, the attribution of errors, and the advice that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from speechlab.errors import InvalidRequestError
from speechlab.evaluate._arguments import languages_of
from speechlab.evaluate._speech.answer import advised
from speechlab.evaluate._speech.summary import ranking_scores
from speechlab.evaluate._writing.columns import named, plural
from speechlab.metrics import attribute, rank

if TYPE_CHECKING:
    from speechlab.metrics import Attribution, Ranking


class Order(NamedTuple):
    """Voices in order.

    ``attribution`` is None without scored rows; ``open`` has the reasons of languages without a ranking.
    """

    rankings: dict[str, Ranking]
    attribution: Attribution | None
    notes: list[str]
    open: dict[str, str]


def full_names(table: pd.DataFrame) -> pd.Series[str]:
    """The name of each row's voice; with several services ``alloy of theirs``."""
    names = table["voice_name"]
    return names + " of " + table["system"] if "system" in table.columns else names


def ordered(table: pd.DataFrame, text: str, language: str) -> Order:
    """Rank the voices of each language, Japanese by readings, and attribute their errors."""
    rankings: dict[str, Ranking] = {}
    ranked, notes, unranked = [], [], {}
    rows = table[table["voice"].notna() & table[language].map(lambda cell: bool(languages_of(cell)))]
    rows = rows.assign(voice_name=full_names(rows))
    for code, group in rows.groupby(language, observed=True, sort=True):
        scores = ranking_scores(group, text, language, ["voice", "voice_name", "engine"])
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
    "language": "string",
    "name": "string",
    "certainty": "string",
    "error_rate": "Float64",
    "items": "Int64",
    "more": "Int64",
    "order": "string",
    "lead": "string",
    "advice": "string",
}
_NAMES = {"name": "voice_name", "items": "sentences", "more": "more_sentences"}


def choices(rankings: dict[str, Ranking], unranked: dict[str, str], speed: pd.DataFrame) -> pd.DataFrame:
    """Return the advice for each language.

    Returns:
        ``language``; ``voice_name``, the recommended voice; ``certainty``: *settled* (significantly better than all
        others), *open*, or *none* (nothing to choose from); ``error_rate`` (fraction) on the ``sentences`` that all
        voices have; ``more_sentences``, the further sentences that would distinguish the voice from the runner-up
        (missing if they differ already, or if no practical number suffices); ``order``, a sentence; ``lead``, what
        to do; and ``advice``, how sure it is.
    """
    rows: list[dict[str, Any]] = []
    for code, ranking in rankings.items():
        timed = speed[speed["language"] == code].assign(system=lambda rows: rows["voice_name"])
        rows.append(
            {
                "language": code,
                "order": f"{named(code)}: {ranking.sentence}",
                **advised(ranking.systems.assign(excluded=ranking.excluded), timed),
            }
        )
    rows += [
        {"language": code, "certainty": "none", "order": f"{named(code)}: {why}.", "advice": why}
        for code, why in unranked.items()
    ]
    table = pd.DataFrame(rows, columns=list(_TYPES)).astype(_TYPES).rename(columns=_NAMES)
    return table.sort_values("language", ignore_index=True)
