"""Advice on the choice of a voice: the best voice, the certainty, and the number of sentences for certainty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_number
from speechlab.evaluate._arguments import code_or_none
from speechlab.evaluate._report import listed
from speechlab.evaluate._speech.speed import first_time
from speechlab.evaluate._speech.summary import ENOUGH
from speechlab.evaluate._student import FEWEST
from speechlab.text import language_name

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.metrics import Ranking

_TYPES = {
    "language": "string",
    "voice_name": "string",
    "certainty": "string",
    "first_share": "Float64",
    "more_sentences": "Int64",
    "order": "string",
    "advice": "string",
}
_LIKELY = 0.8
_NAMED = 4
"""Maximum number of voices that a sentence names; of more voices it gives the number."""
_FAR = 5_000
"""Number of further sentences above which more sentences are no practical solution."""


def choices(rankings: dict[str, Ranking], unranked: dict[str, str], speed: pd.DataFrame) -> pd.DataFrame:
    """Return the advice for each language.

    Returns:
        ``language``; ``voice_name``, the recommended voice; ``certainty``: *settled* (significantly better than all
        others), *likely* (first in four of five resampled sets of at least six sentences), *open*, or *none*;
        ``first_share`` as in :func:`speechlab.metrics.rank`; ``more_sentences``, the further sentences that would
        distinguish the voice from the runner-up (missing if they differ already, or if no number suffices);
        ``order``, a sentence; and ``advice``.
    """
    import pandas as pd

    rows = [_choice(code, ranking, speed) for code, ranking in rankings.items()]
    rows += [
        {
            "language": code,
            "certainty": "none",
            "order": f"{_named(code)}: {why}.",
            "advice": "No voice is advised.",
        }
        for code, why in unranked.items()
    ]
    table = pd.DataFrame(rows, columns=list(_TYPES)).astype(_TYPES)
    return table.sort_values("language", ignore_index=True)


def _named(code: str) -> str:
    plain = code_or_none(code)
    return language_name(plain) if plain else code


def _choice(code: str, ranking: Ranking, speed: pd.DataFrame) -> dict[str, Any]:
    systems = ranking.systems
    best, tied = str(systems["system"].iloc[0]), ranking.tied
    share = systems["first_share"].iloc[0]
    facts = {"language": code, "voice_name": best, "first_share": share}
    facts["order"] = f"{_named(code)}: {ranking.sentence}"
    count = int(systems["utterances"].iloc[0])
    if len(systems) == 1:
        return facts | {"certainty": "none", "advice": "One voice is no choice; give two or more."}
    if len(tied) == 1:
        return facts | {"certainty": "settled", "advice": f"Take {best}: all others are significantly worse."}
    if not is_number(share) or count < 2:
        told = f"One sentence tells no voice from another; take {ENOUGH} or more."
        return facts | {"certainty": "none", "more_sentences": ENOUGH - count, "advice": told}
    if count < FEWEST:
        told = f"{count} sentences tell no voice from another; take {ENOUGH} or more."
        advice = " ".join([told, *_fastest(tied, code, speed)])
        return facts | {"certainty": "open", "more_sentences": ENOUGH - count, "advice": advice}
    more = {
        row["system"]: max(int(row["needed"]) - count, 1)
        for row in systems.to_dict("records")
        if row["system"] in tied[1:] and is_number(row["needed"])
    }
    equal = [name for name in tied[1:] if name not in more]
    certainty = "likely" if share >= _LIKELY else "open"
    often = f"in {share:.0%} of 2,000 resampled sets of these sentences"
    told = (
        f"{best} is the best guess: it came first {often}."
        if certainty == "likely"
        else f"It is open between {best}, which came first {often}, and {_several(tied[1:])}."
    )
    parts = [told, *_settling(best, more, equal), *_fastest(tied, code, speed)]
    runner_up = more.get(tied[1])
    near = runner_up if runner_up is not None and runner_up <= _FAR else None
    return facts | {"certainty": certainty, "more_sentences": near, "advice": " ".join(parts)}


def _settling(best: str, more: dict[str, int], equal: list[str]) -> list[str]:
    """The number of further sentences that would distinguish the best voice from others."""
    parts = []
    near = {name: count for name, count in more.items() if count <= _FAR}
    if near:
        if len(near) <= _NAMED:
            told = listed([f"{_about(count)} from {name}" for name, count in near.items()])
        else:
            most = max(near, key=lambda name: near[name])
            told = f"{_about(min(near.values()))} to {_about(near[most])} from others (the most from {most})"
        parts.append(
            f"How many more sentences like these would tell {best} apart, with a chance of 80 % and if differences "
            f"are as large as they look: {told}."
        )
    if close := [*equal, *(name for name in more if name not in near)]:
        parts.append(
            f"{_several(close)} {'is' if len(close) == 1 else 'are'} too close to {best} for more sentences to tell."
        )
    return parts


def _fastest(tied: list[str], code: str, speed: pd.DataFrame) -> list[str]:
    """Return a sentence on the one of the indistinguishable voices whose slowest call is faster than all others."""
    done = speed[speed["error"].isna() & (speed["language"] == code) & speed["voice_name"].isin(tied)]
    spans = done.groupby("voice_name")[first_time(done.columns)].agg(["min", "max", "count"])
    if len(spans) < 2 or spans["count"].min() < 2:
        return []
    first = str(spans["max"].idxmin())
    slowest = float(spans["max"].min())
    if slowest >= float(spans["min"].drop(first).min()):
        return [f"The first sounds of {_several(tied)} come after times that overlap: speed does not decide."]
    alike = "Of the voices that cannot be told apart"
    return [f"{alike}, {first} is the first to sound in every call (after {slowest:.2f} s at most)."]


def _about(count: int) -> str:
    """Write an estimated number with two significant digits."""
    return f"{count}" if count < 100 else f"{round(count, 2 - len(str(count))):,}"


def _several(names: list[str]) -> str:
    return listed(names) if len(names) <= _NAMED else f"{names[0]} and {len(names) - 1} others"
