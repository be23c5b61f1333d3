"""Segments whose text a recogniser may have made up: rules of text and time, without a reference or the sound."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from speechlab._platform import text_dtype
from speechlab.segments._changes.captions import width_of
from speechlab.segments._frame.schema import frame, in_order
from speechlab.text import loops

if TYPE_CHECKING:
    import pandas as pd

_LONG_S = 5.0
_SPARSE = 1.0
_DENSE, _MANY = 40.0, 20
_RUN, _LETTERS = 3, 4
_SIGNS = re.compile(r"[\W_]+")
_STOCK = frozenset(
    _SIGNS.sub("", phrase).casefold()
    for phrase in (
        *("Thanks for watching", "Thank you for watching", "Please subscribe to my channel"),
        *("Subtitles by the Amara.org community", "Subscribe to my channel", "Like and subscribe"),
        *("ご視聴ありがとうございました", "ご視聴ありがとうございます", "チャンネル登録お願いします"),
        *("最後までご視聴いただきありがとうございます", "最後までご視聴頂き有難うございました"),
        *("请不吝点赞订阅转发打赏支持明镜与点点栏目", "請不吝點贊訂閱轉發打賞支持明鏡與點點欄目"),
        *("字幕由Amara.org社区提供", "字幕由Amara.org社群提供", "感谢观看", "谢谢观看", "謝謝觀看"),
    )
)
"""Lines of subtitles that recognisers write where nobody speaks, because they were trained on videos."""


def doubts(table: pd.DataFrame) -> pd.Series[str]:
    """Return why the text of each segment may have been made up, as recognisers do of noise, music and silence.

    The rules, in this order; letters are all characters but spaces and punctuation, and full-width ones count as two:

    - ``"stock phrase"``: the whole text is a line of subtitles, such as "Thanks for watching" or 谢谢观看;
    - ``"loop"``: a string of at least four letters three times in a row, or of twelve twice; or three segments of the
      recording in a row with the same text, of at least four letters;
    - ``"sparse"``: at least five seconds with less than one letter a second, such as "You" for twenty seconds;
    - ``"dense"``: more than forty letters a second, at least twenty in all, which nobody can say.

    People do say things twice, and pause. A doubt is a reason to listen; drop the rows with
    ``table[doubts(table) == ""]`` where nobody will.

    Args:
        table: A segment frame with texts.

    Returns:
        The rule, or the empty text, by the index of the table.

    Raises:
        SegmentError: The table is not a segment frame.

    Example:
        >>> heard = frame(
        ...     [(0.0, 2.0, "Good morning."), (2.0, 22.0, "You"), (22.0, 24.0, "Thanks for watching!")]
        ... )
        >>> doubts(heard).tolist()
        ['', 'sparse', 'stock phrase']
    """
    import pandas as pd

    checked = frame(table)
    letters = [_SIGNS.sub("", text).casefold() for text in checked["text"]]
    repeated = _repeated(checked.assign(text=letters, place=range(len(checked))))
    reasons = [
        _reason(letters_said, text, end - start, again=place in repeated)
        for place, (letters_said, text, start, end) in enumerate(
            zip(letters, checked["text"], checked["start"], checked["end"], strict=True)
        )
    ]
    return pd.Series(reasons, table.index, dtype=text_dtype(), name="doubt")


def _reason(letters: str, text: str, seconds: float, *, again: bool) -> str:
    width = width_of(letters)
    if letters in _STOCK:
        return "stock phrase"
    if again or loops(text):
        return "loop"
    if letters and seconds >= _LONG_S and width < _SPARSE * seconds:
        return "sparse"
    return "dense" if seconds and width >= _MANY and width > _DENSE * seconds else ""


def _repeated(table: pd.DataFrame) -> set[int]:
    """Positions of segments in a row of one recording with the same letters."""
    ordered = in_order(table)
    rows = zip(ordered["file"], ordered["text"], ordered["place"], strict=True)
    runs = (
        [row[2] for row in run]
        for (_, text), run in groupby(rows, lambda row: row[:2])
        if len(text) >= _LETTERS
    )
    return {place for run in runs if len(run) >= _RUN for place in run}
