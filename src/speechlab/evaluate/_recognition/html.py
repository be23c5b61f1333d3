"""HTML of recordings without speech in which a text was recognised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab._arguments import is_missing
from speechlab.display import Html, element, table
from speechlab.evaluate._speech.html import player

if TYPE_CHECKING:
    import pandas as pd


def speechless_table(speechless: pd.DataFrame, *, clips: int | None = None) -> Html:
    """Return the recordings without speech in which a text was recognised, with their sound."""
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
    heads = ("system", "language", "sound", "length (s)", "sound (Opus preview)", "what was recognised")
    caption = (
        f"Recordings in which nobody speaks: a text was recognised in {len(found)} of {len(speechless)}."
    )
    return table(heads, rows, caption=caption, right=(3,))
