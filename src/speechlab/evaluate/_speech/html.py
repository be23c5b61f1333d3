"""HTML of a report of speech: the tables of voices, and rows with their sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_number
from speechlab.audio import AudioClip, sound_preview
from speechlab.display import Html, element, join, percent, table
from speechlab.errors import AudioError
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._speech.mixed import languages_of, mixed_normalizer
from speechlab.evaluate._speech.speed import first_time
from speechlab.evaluate._speech.summary import ENOUGH, FLAGS, NO_SPEAKER, ranking_rates, ranking_units
from speechlab.metrics import alignment_html

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import pandas as pd

_PLAYER = "width:100%;min-width:150px;max-width:230px"
_FLAGGED = {
    "loop": "the recogniser repeats itself",
    "hallucination": "text that nobody said",
    "tail_lost": "the end is missing",
}
_UNITS = {"word": "words", "char": "characters", "reading": "readings", "mixed": "words and characters"}


def summary_table(summary: pd.DataFrame) -> Html:
    """Return the error rates by voice, and by system and condition if there are several."""
    rows = []
    sides = [name for name in SIDES if name in summary.columns]
    flags = [name for name in FLAGS if name in summary.columns]
    for row in summary.assign(ranking_unit=ranking_units(summary)).to_dict("records"):
        unit = row["ranking_unit"]
        rows.append(
            [
                *(element("strong", unbroken(str(row[name]))) for name in sides),
                element("span" if sides else "strong", unbroken(str(row["voice_name"]))),
                row["language"],
                str(row["utterances"]),
                element("strong", percent(row["ranking_rate"])),
                interval_cell(row, "clips"),
                _UNITS.get(unit, unit) if isinstance(unit, str) else "–",
                percent(row["cer"]) if row["unit"] == "char" else "–",
                percent(row.get("tolerant_cer")),
                *(str(row[name]) if row[name] else "–" for name in flags),
            ]
        )
    heads = (
        *sides,
        "voice",
        "language",
        "clips",
        "error rate",
        "95 % interval",
        "counted in",
        "characters",
        "spellings forgiven",
        *(name.replace("_", " ") for name in flags),
    )
    heard = summary["ranking_rate"].notna().any()
    none = [name.replace("_", " ") for name in flags if heard and not summary[name].any()]
    caption = (
        f"Error rates by {'system' if sides else 'voice'}, the best of each language first. Japanese is ranked by "
        f"readings, as it sounds. An interval is given from {ENOUGH} clips on."
        + (f" None: {', '.join(none)}." if none else "")
    )
    right = {len(sides) + place for place in (2, 3, 4, 6, 7, *range(8, 8 + len(flags)))}
    optional = {"characters", "spellings forgiven", *heads[len(sides) + 8 :]}
    if sides and (summary["voice_name"] == NO_SPEAKER).all():
        optional.add("voice")
        rows = [[*row[: len(sides)], "–", *row[len(sides) + 1 :]] for row in rows]
    return filled_table(heads, rows, caption, optional=optional, right=right)


def speed_table(summary: pd.DataFrame) -> Html:
    """Return the speed of the voices, or of the recognisers."""
    first = first_time(summary.columns)
    hears = first == "total_s"
    sides = [name for name in SIDES if name in summary.columns]
    rows = [
        [
            *(element("strong", unbroken(str(row[name]))) for name in sides),
            element("span" if sides else "strong", unbroken(str(row["voice_name"]))),
            row["language"],
            str(row["timed_calls"]),
            _factor(row[first]),
            element("strong", _factor(row["rtf"])),
            element("small", unbroken(f"{_factor(row['rtf_low'])} to {_factor(row['rtf_high'])}")),
        ]
        for row in summary[summary["timed_calls"].fillna(0) > 0].to_dict("records")
    ]
    caption = (
        "Speed of recognition: medians of calls made one at a time, systems in turns, after one call of each that is "
        "not counted. The text comes whole. RTF: seconds until the text, for one second of recording."
        if hears
        else "Speed by voice: medians of calls made one at a time, voices in turns, after one call of each that is "
        "not counted. RTF: seconds until the last sound, for one second of sound; below 1 is fast enough."
    )
    waited = "text (s)" if hears else "first sound (s)"
    heads = (*sides, "voice", "language", "calls", waited, "RTF", "lowest to highest")
    return table(heads, rows, caption=caption, right=[len(sides) + place for place in (2, 3, 4, 5)])


def clip_rows(rows: pd.DataFrame, *, max_rows: int | None = None) -> Html:
    """Return a table of the utterances with their sound.

    Args:
        rows: Scored rows of a round trip.
        max_rows: Maximum number of rows, the worst first; None for all rows, in order of the texts.
    """
    by = ["id", "voice_name"] if "id" in rows.columns else ["voice_name"]
    shown = (
        rows.sort_values(by)
        if max_rows is None
        else rows.loc[ranking_rates(rows).sort_values(ascending=False, kind="stable").index].head(max_rows)
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
    rate = element("strong", percent(row["error_rate"]))
    notes = [
        element("small", f"{name} {percent(row[column])}")
        for name, column in (("readings", "reading_cer"), ("spellings forgiven", "tolerant_cer"))
        if is_number(row.get(column)) and row[column] == row[column]
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


def filled_table(
    heads: Sequence[str], rows: list[list[Any]], caption: str, *, optional: set[str], right: set[int]
) -> Html:
    """Return a table without optional columns that are empty."""
    keep = [
        place
        for place, head in enumerate(heads)
        if head not in optional or any(row[place] not in {"–", "0", "0.0%"} for row in rows)
    ]
    chosen = [[row[place] for place in keep] for row in rows]
    names = [heads[place] for place in keep]
    return table(
        names, chosen, caption=caption, right=[at for at, place in enumerate(keep) if place in right]
    )


def interval_cell(row: Mapping[Hashable, Any], what: str) -> Html:
    """The 95 % interval of a row of the summary, or the number of further clips or sentences for an interval."""
    low, high = percent(row["ranking_rate_low"]), percent(row["ranking_rate_high"])
    interval = f"{low} to {high}" if low != "–" else "–"
    if is_number(row["interval_needs"]) and row["interval_needs"] > 0:
        interval = f"takes {row['interval_needs']} more {what}"
    return element("small", unbroken(interval))


def unbroken(text: str) -> str:
    """A text without line breaks in a table."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _factor(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) and value == value else "–"
