"""HTML of a report of recognition: hotwords, and what was recognised where nobody spoke."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab._arguments import is_missing
from speechlab.display import Html, element, percent, table
from speechlab.evaluate._speech.html import player

if TYPE_CHECKING:
    import pandas as pd


def hotwords_table(hotwords: pd.DataFrame) -> Html:
    """Return how often hotwords came through, and what else happened, by system."""
    names = [name for name in ("language", "condition", "system") if name in hotwords.columns]
    rows = [
        [
            *(str(row[name]) for name in names),
            str(row["hotwords_said"]),
            str(row["hotwords_hit"]),
            element("strong", percent(row["recall"])),
            str(row["hotwords_added"]),
            percent(row["rest_rate"]),
        ]
        for row in hotwords.to_dict("records")
    ]
    heads = (*names, "hotwords said", "came through", "recall", "put in", "error rate of the rest")
    caption = "Hotwords: how many of those said came through, and how many were put where nobody said them."
    return table(heads, rows, caption=caption, right=range(len(names), len(heads)))


def speechless_table(speechless: pd.DataFrame, *, clips: int | None = None) -> Html:
    """Return what was recognised in recordings without speech; those with a text can be heard."""
    found = speechless[speechless["hallucination"].fillna(value=False).astype(bool)]
    shown = found if clips is None else found.head(clips)
    rows = [
        [
            row["system"] or "–",
            row["language"],
            row["sound"],
            f"{row['duration_s']:.1f}",
            player(str(row["audio"])),
            "" if is_missing(row["hypothesis"]) else element("span", row["hypothesis"], lang=row["language"]),
        ]
        for row in shown.to_dict("records")
    ]
    heads = ("system", "language", "sound", "length (s)", "sound (MP3 preview)", "what was recognised")
    caption = (
        f"Recordings in which nobody speaks: a text was recognised in {len(found)} of {len(speechless)}."
    )
    return table(heads, rows, caption=caption, right=(3,))
