"""HTML of a round trip's report: the table of voices, and rows that can be heard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.audio import AudioClip
from speechlab.display import Html, data_url, element, join, percent, table
from speechlab.errors import AudioError
from speechlab.metrics import alignment_html

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import pandas as pd

_FEW = 10
_PLAYER = "width:100%;min-width:150px;max-width:230px"
_UNITS = {"word": "words", "char": "characters", "reading": "readings"}


def summary_table(summary: pd.DataFrame) -> Html:
    """Return the error rates by voice."""
    rows = []
    for row in summary.to_dict("records"):
        low, high = percent(row["error_rate_low"]), percent(row["error_rate_high"])
        rows.append(
            [
                element("strong", _unbroken(str(row["voice_name"]))),
                row["language"],
                str(row["utterances"]),
                element("strong", percent(row["error_rate"])),
                element("small", _unbroken(f"{low} to {high}") if low != "–" else "–"),
                _UNITS.get(str(row["unit"]), str(row["unit"])),
                percent(row.get("reading_cer")),
                _factor(row["tts_rtf"]),
                _factor(row["asr_rtf"]),
            ]
        )
    heads = (
        "voice",
        "language",
        "clips",
        "error rate",
        "95% interval",
        "counted in",
        "readings",
        "speaking RTF",
        "listening RTF",
    )
    caption = (
        "Error rates by voice. RTF: seconds of work for one second of audio (median); below 1 is fast enough."
    )
    if (summary["utterances_scored"] < _FEW).any():
        caption += f" Intervals from fewer than {_FEW} clips are rough."
    return table(heads, rows, caption=caption, right=(2, 3, 4, 6, 7, 8))


def clip_rows(rows: pd.DataFrame, *, max_rows: int | None = None) -> Html:
    """Return a table in which each utterance can be heard.

    Args:
        rows: Scored rows of a round trip.
        max_rows: Show no more than these, the worst first; None for all of them, text by text.
    """
    by = ["id", "voice_name"] if "id" in rows.columns else ["voice_name"]
    shown = (
        rows.sort_values(by)
        if max_rows is None
        else rows.sort_values("error_rate", ascending=False).head(max_rows)
    )
    lines = [_line(row) for row in shown.to_dict("records")]
    more = len(rows) - len(shown)
    caption = "Reference and what was understood: missing text struck out, added text underlined."
    if more:
        caption += f" The {len(shown)} rows with the most errors of {len(rows)}."
    return table(
        ("voice", "sound (MP3 preview)", "reference and hypothesis", "errors"), lines, caption=caption
    )


def _line(row: Mapping[Hashable, Any]) -> list[object]:
    language = str(row.get("language", ""))
    if not isinstance(row.get("hypothesis"), str):
        return [row["voice_name"] or "–", "–", element("span", str(row.get("error") or "no result")), "–"]
    difference = alignment_html(
        str(row["text"]), str(row["hypothesis"]), unit=str(row["unit"]), language=language
    )
    said = element("span", difference, lang=language)
    text = element("small", "text: ", element("span", str(row["text"]), lang=language))
    heard = element("small", "heard: ", element("span", str(row["hypothesis"]), lang=language))
    rate = element("strong", percent(row["error_rate"]))
    reading = row.get("reading_cer")
    reading_note = element("small", f"readings {percent(reading)}") if isinstance(reading, float) else None
    return [
        join(Html("<br>"), [row["voice_name"], element("small", row.get("id"))]),
        _player(str(row["audio"])),
        join(Html("<br>"), [said, text, heard]),
        join(Html("<br>"), [part for part in (rate, reading_note) if part is not None]),
    ]


def _player(path: str) -> Html:
    try:
        preview = AudioClip.from_file(path).encode("mp3")
    except (AudioError, OSError):
        return element("span", "the file is gone")
    return element(
        "audio",
        src=data_url(preview, "audio/mpeg"),
        controls=True,
        preload="metadata",
        style=_PLAYER,
    )


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _factor(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) and value == value else "–"
