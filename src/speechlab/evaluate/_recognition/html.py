"""HTML of a report of recognition: differences of systems, hotwords, and recordings without speech."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab._arguments import is_missing
from speechlab.display import Html, element, percent, table
from speechlab.evaluate._report import ALIKE
from speechlab.evaluate._speech.html import player, unbroken
from speechlab.evaluate._speech.summary import ENOUGH

if TYPE_CHECKING:
    import pandas as pd


def pairs_table(pairs: pd.DataFrame) -> Html:
    """Return the differences of all pairs of systems, with test results."""
    names = [
        name for name in ("language", "condition") if name in pairs.columns and pairs[name].nunique() > 1
    ]
    rows = []
    for row in pairs.to_dict("records"):
        # Adding 0 turns -0.0 into 0.0.
        points, low, high = (round(100 * row[f"difference{end}"], 1) + 0.0 for end in ("", "_low", "_high"))
        better = row["a"] if row["difference"] > 0 else row["b"]
        verdict = element("strong", f"{better} is better") if row["significant"] else ALIKE
        rows.append(
            [
                *(unbroken(str(row[name])) for name in names),
                element("strong", f"{row['b']} − {row['a']}"),
                str(row["utterances"]),
                element("strong", f"{points:+.1f}" if points else "0.0"),
                None if is_missing(low) else unbroken(f"{low:+.1f} to {high:+.1f}"),
                _chance(row["p_holm"]),
                verdict,
            ]
        )
    heads = (*names, "systems", "recordings", "difference (points)", "95 % interval", "p", "verdict")
    caption = (
        "Differences of systems on the recordings that all of them have: below 0, the first named makes fewer "
        "errors. P is exact, paired by recording, and corrected by Holm's method for all rows of a language. "
        f"An interval is given from {ENOUGH} recordings on."
    )
    right = [len(names) + place for place in (1, 2, 3, 4)]
    return table(heads, rows, caption=caption, right=right)


def hotwords_table(hotwords: pd.DataFrame) -> Html:
    """Return the counts of hotwords and the error rates of the rest by system, with p against the setting without."""
    names = [name for name in ("language", "condition", "system") if name in hotwords.columns]
    rows = [
        [
            *(unbroken(str(row[name])) for name in names),
            str(row["hotwords_said"]),
            str(row["hotwords_hit"]),
            element("strong", percent(row["recall"])),
            _chance(row.get("p_missed")),
            str(row["hotwords_added"]),
            _chance(row.get("p_added")),
            percent(row["rest_rate"]),
            _chance(row.get("p_rest")),
            None if is_missing(row.get("verdict")) else row["verdict"],
        ]
        for row in hotwords.to_dict("records")
    ]
    heads = (
        *(*names, "hotwords said", "came through", "recall", "p"),
        *("put in", "p", "error rate of the rest", "p", "verdict"),
    )
    caption = (
        "Hotwords: how many of those said came through, and how many were put where nobody said them. Each p "
        "is exact, paired by recording, against the setting without them, and corrected by Holm's method for all of "
        "these."
    )
    return table(heads, rows, caption=caption, right=range(len(names), len(heads) - 1))


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


def _chance(p: object) -> str | None:
    if is_missing(p) or not isinstance(p, float):
        return None
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
