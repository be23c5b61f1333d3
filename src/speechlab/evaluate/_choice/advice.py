"""Advice on the choice of a voice, by language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.evaluate._speech.answer import advised, named

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.metrics import Ranking

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
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for code, ranking in rankings.items():
        calls = speed[speed["language"] == code].assign(system=lambda rows: rows["voice_name"])
        rows.append(
            {
                "language": code,
                "order": f"{named(code)}: {ranking.sentence}",
                **advised(ranking.systems, calls),
            }
        )
    rows += [
        {"language": code, "certainty": "none", "order": f"{named(code)}: {why}.", "advice": why}
        for code, why in unranked.items()
    ]
    table = pd.DataFrame(rows, columns=list(_TYPES)).astype(_TYPES).rename(columns=_NAMES)
    return table.sort_values("language", ignore_index=True)
