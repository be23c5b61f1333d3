"""References that are likely wrong: all systems agree against them, or they do not fit their sound."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from speechlab._arguments import has_column, is_missing, require_columns
from speechlab.errors import InvalidRequestError
from speechlab.metrics._columns import add_columns
from speechlab.metrics._differences.compare import classify_differences, has_difference_classes
from speechlab.metrics._differences.differences import HARMLESS_CLASSES
from speechlab.metrics._inputs import to_texts
from speechlab.metrics._rates.error_rate import error_rate
from speechlab.text import language_code

if TYPE_CHECKING:
    import pandas as pd

# A text is far too long or too short for its sound if its pace is this many times the language's median pace.
_MANY_TIMES = 2.5
_FEW_ROWS = 10  # fewer rows of a language have no median pace to rely on
_TYPES = {"suggestion": "string", "agreed_differences": "Int64", "certainty": "category", "why": "string"}


def suspects(
    frame: pd.DataFrame,
    hypotheses: Iterable[str],
    *,
    reference: str = "text",
    language: str = "language",
    duration_s: str | None = "duration_s",
) -> pd.DataFrame:
    """Find rows whose reference is likely wrong, with a suggestion for each, the most certain first.

    A reference is suspected where all systems that transcribed the row differ from it at the same place in the same
    way, by more than notation. It is *likely* wrong if they recognized other words there, and *possibly* wrong if the
    words sound alike, because recognizers that learned from alike texts choose the same spelling. It is suspected as
    well if its pace, in characters a second, is more than 2.5 times or less than 1 / 2.5 of the median of its
    language, while the transcripts agree on another length. Systems that share a model agree in their errors, too:
    compare independent ones.

    Args:
        frame: One row for each recording.
        hypotheses: Columns with the transcripts of two systems or more, or of a system and of a person.
        reference: Column of references.
        language: Column of languages; or, if there is no such column, the language of all rows.
        duration_s: Column of the lengths of the recordings in seconds; None, or a column that is not there, for no
            test of the pace.

    Returns:
        The suspected rows of ``frame`` with ``suggestion`` (a text for the reference), ``agreed_differences`` (the
        places where all systems agree against the reference), ``certainty`` (``"likely"`` or ``"possible"``) and
        ``why`` (a sentence).

    Raises:
        InvalidRequestError: A column is missing or ``hypotheses`` are fewer than two.

    Example:
        >>> rows = {"text": ["ten cats"], "a": ["ten hats"], "b": ["Ten hats."], "language": ["en"]}
        >>> suspects(pd.DataFrame(rows), ["a", "b"])["suggestion"].tolist()
        ['ten hats']
    """
    names = to_texts(hypotheses, "hypotheses", "name columns of transcripts")
    if len(names) < 2:
        message = (
            f"hypotheses={names!r} names {len(names)} column; give the transcripts of two systems or more"
        )
        raise InvalidRequestError(message, parameter="hypotheses")
    frame = require_columns(frame, reference, *names, hint="Name the right one, as in reference='text'")
    languages = (
        frame[language].tolist() if has_column(frame, language, "language") else [language] * len(frame)
    )
    rows = [
        _Row(*cells)
        for cells in zip(
            frame[reference].tolist(), languages, frame[names].to_numpy(dtype=object).tolist(), strict=True
        )
    ]
    seconds = frame[duration_s].tolist() if duration_s in frame.columns else [None] * len(frame)
    paces: dict[str, list[float]] = {}
    for row, length in zip(rows, seconds, strict=True):
        pace = _measure_pace(row.reference, length)
        if pace > 0:
            paces.setdefault(row.code, []).append(pace)
    usual = {code: statistics.median(values) for code, values in paces.items() if len(values) >= _FEW_ROWS}
    judged = [
        row.find_suspicion(length, usual.get(row.code)) for row, length in zip(rows, seconds, strict=True)
    ]
    places = [place for place, verdict in enumerate(judged) if verdict is not None]
    verdicts = [verdict for verdict in judged if verdict is not None]
    columns = [dict(zip(_TYPES, verdict, strict=True)) for verdict in verdicts]
    table = add_columns(frame.iloc[places], columns, _TYPES)
    order = sorted(range(len(verdicts)), key=lambda at: (verdicts[at][2] != "likely", -verdicts[at][1]))
    return table.iloc[order]


class _Row:
    """One recording: its reference, and the transcripts that there are."""

    def __init__(self, reference: object, language: object, transcripts: Sequence[object]) -> None:
        self.reference = reference if isinstance(reference, str) else ""
        self.code = "" if is_missing(language) else language_code(str(language))
        self.transcripts = [text for text in transcripts if isinstance(text, str) and text.strip()]

    def find_suspicion(self, seconds: object, usual: float | None) -> tuple[str, int, str, str] | None:
        """The suggestion, the number of agreed differences, the certainty and the reason; None if nothing is odd."""
        if len(self.transcripts) < 2 or not self.reference.strip():
            return None
        # Differences from the reference that all transcripts share: kind, both texts, and their place.
        shared = set.intersection(*(set(self._find_differences(text)) for text in self.transcripts))
        agreed = sorted(shared, key=lambda difference: difference[::-1])
        heard_other_words = any(kind not in {"homophone", "tone"} for kind, *_ in agreed)
        odd = (
            "" if usual is None else self._describe_odd_length(_measure_pace(self.reference, seconds) / usual)
        )
        if not agreed and not odd:
            return None
        certainty = "likely" if heard_other_words or odd else "possible"
        reasons = [self._describe_agreement(agreed)] if agreed else []
        return self._build_suggestion(agreed), len(agreed), certainty, " ".join([*reasons, odd]).strip()

    def _find_differences(self, transcript: str) -> list[tuple[str, str, str, int]]:
        if has_difference_classes(self.code):
            comparison = classify_differences(self.reference, transcript, self.code)
            return [
                (kind, reference.casefold(), hypothesis.casefold(), start)
                for kind, reference, hypothesis, start in comparison.differences
                if kind not in HARMLESS_CLASSES
            ]
        (alignment,) = error_rate(self.reference, transcript, language=self.code or None).alignments
        return [
            (edit.operation, edit.reference or "", edit.hypothesis or "", place)
            for place, edit in enumerate(alignment)
            if edit.operation != "equal"
        ]

    def _build_suggestion(self, agreed: Sequence[tuple[str, str, str, int]]) -> str:
        """The transcript that most systems agree on; else the reference with the agreed words in place of its own."""
        alike = [" ".join(text.casefold().split()).strip(" .。") for text in self.transcripts]
        text, count = Counter(alike).most_common(1)[0]
        if count > 1 or not agreed:
            return self.transcripts[alike.index(text)]
        suggestion = self.reference
        for _, reference, hypothesis, _ in agreed:
            at = suggestion.casefold().find(reference) if reference else -1
            if at < 0 or len(suggestion.casefold()) != len(suggestion):
                return self.transcripts[0]
            suggestion = suggestion[:at] + hypothesis + suggestion[at + len(reference) :]
        return suggestion

    def _describe_odd_length(self, ratio: float) -> str:
        """Why the reference does not fit the sound, if the transcripts have another length, too."""
        if math.isnan(ratio) or 1 / _MANY_TIMES <= ratio <= _MANY_TIMES:
            return ""
        length = len("".join(self.reference.split()))
        lengths = [len("".join(text.split())) for text in self.transcripts]
        if ratio > 1 and max(lengths) * _MANY_TIMES / 2 < length:
            return f"The text is {ratio:.1f} times as long as usual for so short a recording."
        if ratio < 1 and min(lengths) > length * _MANY_TIMES / 2:
            return f"The text is {1 / ratio:.1f} times shorter than usual for so long a recording."
        return ""

    def _describe_agreement(self, agreed: Sequence[tuple[str, str, str, int]]) -> str:
        _, reference, hypothesis, _ = agreed[0]
        more = f" and {len(agreed) - 1} more places" if len(agreed) > 1 else ""
        count = "Both" if len(self.transcripts) == 2 else f"All {len(self.transcripts)}"
        if not reference:
            return f"{count} systems have “{hypothesis}” as well{more}."
        return (
            f"{count} systems have {f'“{hypothesis}”' if hypothesis else 'nothing'} for “{reference}”{more}."
        )


def _measure_pace(text: str, seconds: object) -> float:
    """Characters a second; NaN where it cannot be known."""
    if is_missing(seconds) or not isinstance(seconds, int | float) or seconds <= 0:
        return math.nan
    return len("".join(text.split())) / float(seconds)
