"""Segments as captions, a few short lines for a few seconds; and texts that a recognizer may have made up."""

from __future__ import annotations

import math
import re
import unicodedata
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._arguments import build_argument_error, is_whole_number
from speechlab._pandas import pd
from speechlab._platform import get_text_dtype
from speechlab.errors import SegmentError
from speechlab.segments._frame.schema import frame, in_order, to_index
from speechlab.segments._frame.ticks import check_seconds
from speechlab.text import join_texts, loops

if TYPE_CHECKING:
    from numpy.typing import NDArray

LINE_WIDTH, LINES, LONGEST_S, PACE = 42, 2, 7.0, 17.0
# What a break costs after a sentence, a clause, a word, and within a word of a script without spaces.
_SENTENCE, _CLAUSE, _WORD, _WITHIN = 0.0, 0.3, 0.6, 1.2
_BREAKS = (
    (_SENTENCE, re.compile(r"[.!?…。！？][\"'”’)\]」』）]*$")),
    (_CLAUSE, re.compile(r"[,;:、，；：—–]$")),
)
_NOT_FIRST = frozenset(
    "、。，．！？；：）」』】〉》］｝ー…‥・ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮ々ゝゞ％℃"
)
_NOT_LAST = frozenset("（「『【〈《［｛")
# In Japanese, particles and endings are in hiragana, and most words begin in another script.
_PHRASE_END = re.compile(r"[ぁ-ん][^ぁ-ん]")


class _Token(NamedTuple):
    """A part of a text that is never broken, with the space after it, and the cost of a break there."""

    text: str
    width: int
    cost: float


def captions(
    table: pd.DataFrame,
    *,
    line_width: int = LINE_WIDTH,
    lines: int = LINES,
    longest_s: float = LONGEST_S,
    pace: float | None = None,
    words: pd.DataFrame | None = None,
) -> pd.DataFrame:
    r"""Divide segments into captions: texts in lines of a limited width, long segments split.

    A segment is split if its text needs more lines, or if it takes longer than a caption should stay. Splits and line
    breaks are at the ends of sentences and clauses, where speakers are likely to pause, otherwise between words. The
    parts have the times of their words, or else share that of the segment by the width of their texts. A segment that
    already fits is unchanged.

    Args:
        table: A segment frame.
        line_width: Characters in a line; a full-width character (Chinese, Japanese, Korean) counts as two.
        lines: Lines in a caption.
        longest_s: Seconds that a caption stays, where its segment has words enough to be split.
        pace: Reading speed: characters shown in a second, counted in the same way. The end of a caption that shows
            more is moved into the silence after it, as far as the next one of its recording. None to keep all ends.
        words: The words of the texts with their times, as :func:`speechlab.engines.align` gives them, of the same
            recordings.

    Returns:
        A segment frame with a row for each caption; other columns are repeated.

    Raises:
        SegmentError: The table is not a segment frame, an option is out of range, or the words are not those of a
            text.

    Example:
        >>> said = "Good morning, everybody. The weather is fine today, and it will be fine again tomorrow, they say."
        >>> shown = captions(frame([(0.0, 8.0, said)]), line_width=32)
        >>> shown[["start", "end", "text"]].values.tolist()[1]
        [4.289, 8.0, 'and it will be fine\nagain tomorrow, they say.']
    """
    checked = frame(table)
    for name, value in (("line_width", line_width), ("lines", lines)):
        if not is_whole_number(value) or value < 1:
            raise build_argument_error(name, value, "a whole number from 1 on")
    for name, seconds in (("longest_s", longest_s), ("pace", 1.0 if pace is None else pace)):
        check_seconds(seconds, name)
        if not seconds:
            raise SegmentError(f"{name}={seconds!r} is not above 0")
    places: list[int] = []
    shown_rows: list[tuple[float, float, str]] = []
    files = checked["file"].unique()
    spoken = None if words is None else frame(words, file=files[0] if len(files) == 1 else None)
    rows = zip(checked["start"].tolist(), checked["end"].tolist(), checked["text"].tolist(), strict=True)
    for place, (start, end, text) in enumerate(rows):
        clock = None if spoken is None else _find_letter_times(spoken, checked.iloc[place], place)
        pieces = _divide_into_captions(start, end, text, (line_width, lines, longest_s), clock)
        shown_rows += pieces
        places += [place] * len(pieces)
    result = checked.iloc[places].reset_index(drop=True)
    if shown_rows:
        result["start"], result["end"] = ([row[at] for row in shown_rows] for at in (0, 1))
        result["text"] = pd.array([row[2] for row in shown_rows], dtype=get_text_dtype())
    return result if pace is None else _lengthen_captions(result, pace)


def measure_width(text: str) -> int:
    """Return the width of a text in characters, of which full-width ones count as two."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
        if character != "\n"
    )


def fits_in_caption(text: str, line_width: int = LINE_WIDTH, lines: int = LINES) -> bool:
    """Return whether a text is a caption already."""
    shown_lines = text.split("\n")
    return len(shown_lines) <= lines and all(measure_width(line) <= line_width for line in shown_lines)


def _divide_into_captions(
    start: float,
    end: float,
    text: str,
    limits: tuple[int, int, float],
    clock: NDArray[np.float64] | None = None,
) -> list[tuple[float, float, str]]:
    line_width, lines, longest_s = limits
    duration = end - start
    if fits_in_caption(text, line_width, lines) and duration <= longest_s:
        return [(start, end, text)]
    tokens = _split_into_tokens(join_texts(text.split("\n")))
    width = sum(token.width for token in tokens)
    count = max(math.ceil(width / (line_width * lines)), math.ceil(duration / longest_s - 1e-9))
    count = min(count, len(tokens)) if duration else 1
    if count <= 1:
        caption = (
            text if fits_in_caption(text, line_width, lines) else _wrap_tokens(tokens, line_width, lines)
        )
        return [(start, end, caption)]
    while True:
        groups = _divide_tokens(tokens, count, line_width * lines)
        captions = [_wrap_tokens(group, line_width, lines) for group in groups]
        shares = [0, *accumulate(sum(token.width for token in group) for group in groups)]
        times = [start, *(round(start + duration * share / width, 3) for share in shares[1:-1]), end]
        spans = list(pairwise(times))
        if clock is not None:
            counts = [sum(len(token.text.strip()) for token in group) for group in groups]
            ends = list(accumulate(counts))
            spans = [
                (float(clock[last - count, 0]), float(clock[last - 1, 1]))
                for count, last in zip(counts, ends, strict=True)
            ]
        if count == len(tokens) or all(
            len(group) == 1
            or (fits_in_caption(caption_text, line_width, lines) and until - since <= longest_s)
            for group, caption_text, (since, until) in zip(groups, captions, spans, strict=True)
        ):
            return [(*span, caption_text) for span, caption_text in zip(spans, captions, strict=True)]
        count = min(len(tokens), count + 1 + count // 20)


def _find_letter_times(words: pd.DataFrame, row: pd.Series[Any], place: int) -> NDArray[np.float64]:
    """Return start and end of each letter of a row's text that is no space; those of a word share its time."""
    middles = (words["start"] + words["end"]) / 2
    own = words[(words["file"] == row["file"]) & (middles >= row["start"]) & (middles <= row["end"])]
    if "".join("".join(own["text"]).split()) != "".join(row["text"].split()):
        message = f"the words between {row['start']:g} and {row['end']:g} s are not those of the text of row {place}"
        raise SegmentError(f"{message}, {row['text']!r:.60}; align this text", rows=(place,))
    edges = [
        np.linspace(start, end, len("".join(text.split())) + 1)
        for start, end, text in zip(own["start"], own["end"], own["text"], strict=True)
    ]
    return np.concatenate(
        [np.stack([edge[:-1], edge[1:]], axis=1) for edge in edges] or [np.zeros((0, 2))]
    ).round(3)


def _split_into_tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    words = text.split()
    for number, word in enumerate(words):
        space = " " if number < len(words) - 1 else ""
        cuts = [
            0,
            *(at for at in range(1, len(word)) if _can_break_between(word[at - 1], word[at])),
            len(word),
        ]
        for first, last in pairwise(cuts):
            chunk = word[first:last]
            cost = next((cost for cost, form in _BREAKS if form.search(chunk)), None)
            if cost is None:
                at_end = last == len(word) or _PHRASE_END.match(word, last - 1)
                cost = _WORD if at_end else _WITHIN
            piece = chunk + (space if last == len(word) else "")
            tokens.append(_Token(piece, measure_width(piece), cost))
    return tokens


def _can_break_between(before: str, after: str) -> bool:
    """Return whether a line may end between two characters without a space between them."""
    wide = [unicodedata.east_asian_width(character) in "WF" for character in (before, after)]
    return any(wide) and after not in _NOT_FIRST and before not in _NOT_LAST and not before.isdigit()


def _divide_tokens(tokens: list[_Token], count: int, room: int) -> list[list[_Token]]:
    """Return the tokens in parts of about equal width, cut where a break costs little."""
    groups: list[list[_Token]] = []
    width_left = sum(token.width for token in tokens)
    first = 0
    for groups_left in range(count, 1, -1):
        target, width, best = width_left / groups_left, 0, (math.inf, first + 1, 0)
        for at in range(first, len(tokens) - groups_left + 1):
            width += tokens[at].width
            if at > first and width > min(1.4 * target, room + 1):
                break
            best = min(best, (abs(width / target - 1) + tokens[at].cost, at + 1, width))
        _, last, group_width = best
        groups.append(tokens[first:last])
        first, width_left = last, width_left - group_width
    return [*groups, tokens[first:]]


def _wrap_tokens(tokens: list[_Token], line_width: int, lines: int) -> str:
    """Return the tokens in as few lines as possible, of about equal width; more than ``lines`` if they need more."""
    text = "".join(token.text for token in tokens).strip()
    needed = max(1, math.ceil(measure_width(text) / line_width))
    for count in range(needed, min(lines, len(tokens)) + 1):
        groups = _divide_tokens(tokens, count, line_width)
        caption = "\n".join("".join(token.text for token in group).strip() for group in groups)
        if fits_in_caption(caption, line_width, lines):
            return caption
    filled = [""]
    for token in tokens:
        if filled[-1] and measure_width((filled[-1] + token.text).rstrip()) > line_width:
            filled.append("")
        filled[-1] += token.text
    return "\n".join(line.strip() for line in filled)


def _lengthen_captions(table: pd.DataFrame, pace: float) -> pd.DataFrame:
    stops = table["end"].to_numpy(copy=True)
    starts = table["start"].to_numpy()
    for places in table.groupby("file", sort=False).indices.values():
        later: Any = np.sort(starts[places])
        for place in places:
            needed = starts[place] + measure_width(table["text"].iloc[place]) / pace
            following = later[np.searchsorted(later, stops[place]) :]
            if len(following):
                stops[place] = max(stops[place], min(round(needed, 3), following[0]))
    return table.assign(end=stops)


_LONG_S = 5.0
_SPARSE = 1.0
_DENSE, _MANY = 40.0, 20
_RUN, _LETTERS = 3, 4
_SPEECH_S = 2.0
_SIGNS = re.compile(r"[\W_]+")
# Lines of subtitles that recognizers write where nobody speaks, because they were trained on videos.
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


def doubts(table: pd.DataFrame) -> pd.Series[str]:
    """Return why the text of each segment may be a hallucination of the recognizer, on noise, music or silence.

    The rules, in this order; letters are all characters but spaces and punctuation, and full-width ones count as two:

    - ``"stock phrase"``: the whole text is a line of subtitles, such as "Thanks for watching" or 谢谢观看;
    - ``"loop"``: a string of at least four letters three times in a row, or of twelve twice; or three segments of the
      recording in a row with the same text, of at least four letters;
    - ``"sparse"``: at least five seconds with less than one letter a second, such as "You" for twenty seconds;
    - ``"dense"``: more than forty letters a second, at least twenty in all, which nobody can say;
    - ``"no text"``: at least two seconds in which speech was detected, and none recognized.

    People do say things twice, and pause. A doubt is a reason to listen; drop the rows with
    ``table[doubts(table) == ""]`` where nobody will.

    Args:
        table: A segment frame with texts.

    Returns:
        The rule, or the empty text, by the index of the table.

    Raises:
        SegmentError: The table is not a segment frame.

    Example:
        >>> recognized = frame(
        ...     [(0.0, 2.0, "Good morning."), (2.0, 22.0, "You"), (22.0, 24.0, "Thanks for watching!")]
        ... )
        >>> doubts(recognized).tolist()
        ['', 'sparse', 'stock phrase']
    """
    checked = frame(table)
    letters = [_SIGNS.sub("", text).casefold() for text in checked["text"]]
    repeated = _find_repeated_segments(checked.assign(text=letters, place=range(len(checked))))
    reasons = [
        _find_doubt_reason(letters_said, text, end - start, again=place in repeated)
        for place, (letters_said, text, start, end) in enumerate(
            zip(letters, checked["text"], checked["start"], checked["end"], strict=True)
        )
    ]
    return pd.Series(reasons, to_index(table, checked), dtype=get_text_dtype(), name="doubt")


def _find_doubt_reason(letters: str, text: str, seconds: float, *, again: bool) -> str:
    width = measure_width(letters)
    if letters in _STOCK:
        return "stock phrase"
    if again or loops(text):
        return "loop"
    if letters and seconds >= _LONG_S and width < _SPARSE * seconds:
        return "sparse"
    if seconds and width >= _MANY and width > _DENSE * seconds:
        return "dense"
    return "no text" if seconds >= _SPEECH_S and not text.strip() else ""


def _find_repeated_segments(table: pd.DataFrame) -> set[int]:
    """Positions of segments in a row of one recording with the same letters."""
    ordered = in_order(table)
    rows = zip(ordered["file"], ordered["text"], ordered["place"], strict=True)
    runs = (
        [row[2] for row in run]
        for (_, text), run in groupby(rows, lambda row: row[:2])
        if len(text) >= _LETTERS
    )
    return {place for run in runs if len(run) >= _RUN for place in run}
