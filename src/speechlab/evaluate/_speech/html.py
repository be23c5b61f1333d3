"""HTML of rows with their sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_number
from speechlab.audio import AudioClip, sound_preview
from speechlab.display import Html, element, join, percent, table
from speechlab.errors import AudioError
from speechlab.evaluate._arguments import languages_of
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._speech.mixed import mixed_normalizer
from speechlab.evaluate._speech.summary import ranking_rates
from speechlab.metrics import alignment_html

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import pandas as pd

_PLAYER = "width:100%;min-width:150px;max-width:230px"
_FLAGGED = {
    "loop": "the recogniser repeats itself",
    "hallucination": "text that nobody said",
    "tail_lost": "the end is missing",
}
_OTHERS = {
    "error_rate": "with notation",
    "reading_cer": "readings",
    "tolerant_wer": "without notation",
    "tolerant_cer": "without notation",
}
"""Rates of a row, and their names beside the one that ranks it."""


def clip_rows(rows: pd.DataFrame, *, max_rows: int | None = None) -> Html:
    """Return a table of the utterances with their sound.

    Args:
        rows: Scored rows of a round trip.
        max_rows: Maximum number of rows, the worst first; None for all rows, in order of the texts.
    """
    by = ["id", "voice_name"] if "id" in rows.columns else ["voice_name"]
    rows = rows.assign(ranking_rate=ranking_rates(rows))
    shown = (
        rows.sort_values(by)
        if max_rows is None
        else rows.sort_values("ranking_rate", ascending=False, kind="stable").head(max_rows)
    )
    lines = [_line(row) for row in shown.to_dict("records")]
    more = len(rows) - len(shown)
    caption = "Reference and what was understood: missing text struck out, added text underlined."
    if more:
        caption += f" The worst {len(shown)} of {len(rows)} rows."
    return table(
        ("voice", "sound (Opus preview)", "reference and hypothesis", "errors"), lines, caption=caption
    )


def _line(row: Mapping[Hashable, Any]) -> list[object]:
    language = str(row.get("language", ""))
    if not isinstance(row.get("hypothesis"), str):
        return [row["voice_name"] or "–", "–", element("span", str(row.get("error") or "no result")), "–"]
    codes = languages_of(language)
    way: dict[str, Any] = {"normalize": mixed_normalizer(codes)} if len(codes) > 1 else {"language": language}
    difference = alignment_html(str(row["text"]), str(row["hypothesis"]), unit=str(row["unit"]), **way)
    language = next(iter(codes), "")  # HTML has one language for a text
    said = element("span", difference, lang=language)
    text = element("small", "text: ", element("span", str(row["text"]), lang=language))
    heard = element("small", "heard: ", element("span", str(row["hypothesis"]), lang=language))
    ranked = row["ranking_rate"]
    rate = element("strong", percent(ranked))
    notes = [
        element("small", f"{name} {percent(row[column])}")
        for column, name in _OTHERS.items()
        if is_number(row.get(column)) and row[column] == row[column] and row[column] != ranked
    ]
    notes += [element("strong", words) for flag, words in _FLAGGED.items() if row.get(flag) is True]
    names = dict.fromkeys(str(row[name]) for name in (*SIDES, "voice_name", "file", "id") if row.get(name))
    return [
        join(Html("<br>"), [element("span" if not at else "small", name) for at, name in enumerate(names)]),
        player(str(row["audio"])),
        join(Html("<br>"), [said, text, heard]),
        join(Html("<br>"), [rate, *notes]),
    ]


def player(path: str) -> Html:
    """Return a player with a preview of a file, or a note that there is no sound."""
    try:
        clip = AudioClip.from_file(path)
    except (AudioError, OSError):
        return element("span", "the file is gone")
    if not clip.frames:
        return element("span", "the clip is empty")
    return element("audio", src=sound_preview(clip).url, controls=True, preload="metadata", style=_PLAYER)
