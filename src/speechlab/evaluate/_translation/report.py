"""The report of the study of translations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from speechlab._arguments import is_missing
from speechlab._platform import package_version
from speechlab.display import element, table
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._made import TRANSLATION
from speechlab.evaluate._report import Report, drawn
from speechlab.evaluate._speech.scorers import SCORE
from speechlab.evaluate._speech.tables import load_views
from speechlab.evaluate._translation.answer import translation_answer
from speechlab.evaluate._translation.effects import CHRF, effect_findings
from speechlab.evaluate._translation.measures import Columns
from speechlab.evaluate._translation.speed import no_times
from speechlab.evaluate._writing.columns import Shown, View, count, number, rate, text

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from matplotlib.figure import Figure

    from speechlab.display import Html
    from speechlab.evaluate._finding import Conclusion, Finding
    from speechlab.widgets import ShownTable

_SCORES = {"chrf": "chrF", "back_chrf": "chrF of the translation back"}


@dataclass(frozen=True, eq=False, repr=False)
class TranslationReport(Report):
    """Report of how good translations are.

    Attributes:
        title: Title of the page.
        table: One row for each text, of each system if there are several (``system``): the input's columns,
            ``translation``, ``chrf`` (0 to 100, where there is a reference), ``length_ratio`` (characters of the
            translation over those of the text), ``copied`` (whether the translation is the text itself), ``loop``
            (whether it repeats itself as neither text nor reference does), ``terms_expected`` and ``terms_found``
            (with a glossary), ``back_translation``, ``back_chrf`` (against the text; missing where it was copied)
            and ``back_error`` (with ``back=True``), token counts, ``model``, ``status``, ``error``.
        summary: One row for each direction, of each system: ``utterances``, corpus ``chrf`` and ``back_chrf``,
            ``score_<name>`` (means of ``scorers``), ``length_ratio`` (median), ``copies``, ``loops``,
            ``terms_expected``, ``terms_found``, ``terms_kept`` (a fraction), ``processing_s`` (median), and
            where speed was measured ``timed_calls``, ``first_word_s`` and ``total_s`` as in
            :class:`SpeechReport`; ``signature``.
        columns: Columns of ``table`` with the texts, the references (empty: there are none), and the languages of
            both.
        record: As for :class:`Report`.
        effects: Each system against the first: ``system``, ``baseline``, ``source_lang``, ``target_lang``,
            ``texts`` (all, or those with and without terms of the glossary), ``measure``, ``utterances``,
            ``score_baseline``, ``score``, ``difference`` with ``difference_low``
            and ``difference_high`` (95 %, from 20 texts on), ``p``, ``p_holm``, ``significant``, ``verdict``.
        terms: How often each term of the glossary was kept, by direction and system.
        speed: One row for each stream that was timed: ``system``, ``source_lang``, ``target_lang``, ``text``,
            ``turn``, ``concurrency``, ``refusals`` (before this call, in no time), ``first_word_s`` (the first piece
            with a letter or digit), ``total_s``, ``characters``, ``error``.
        notes: What was not measured, and why.
    """

    title: str
    table: pd.DataFrame
    summary: pd.DataFrame
    columns: tuple[str, str, str, str] = ("text", "reference", "source_lang", "target_lang")
    record: Mapping[str, Any] = field(default_factory=dict)
    effects: pd.DataFrame = field(default_factory=pd.DataFrame)
    terms: pd.DataFrame = field(default_factory=pd.DataFrame)
    speed: pd.DataFrame = field(default_factory=no_times)
    notes: tuple[str, ...] = ()

    _made: ClassVar = TRANSLATION

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The differences of the systems from the first; empty with one system."""
        return effect_findings(self.effects) if len(self.effects) else ()

    def conclude(self) -> Conclusion:
        return translation_answer(self.summary, self.effects, self.table, Columns(*self.columns))

    @property
    def _score(self) -> str | None:
        """The column of the scores that the report goes by; None if there is none."""
        return next(
            (name for name in _SCORES if name in self.summary and self.summary[name].notna().any()), None
        )

    def _views(self) -> Sequence[View]:
        source, target = self.columns[2:]
        columns = [
            Shown("direction", lambda row: _direction(row, source, target), strong=True),
            count("texts", "utterances"),
            number("chrF", "chrf", ".1f", strong=True, optional=self._score == "back_chrf"),
            number("chrF back", "back_chrf", ".1f", optional=True),
            *(
                number(str(name).removeprefix(SCORE), str(name), ".3f")
                for name in self.summary
                if str(name).startswith(SCORE)
            ),
            number("length", "length_ratio"),
            count("copies", "copies", optional=True),
            count("loops", "loops", optional=True),
            rate("terms kept", "terms_kept", optional=True),
            number("first word (s)", "first_word_s", optional=True),
            number("whole (s)", "total_s", optional=True),
        ]
        note = "chrF: 0 to 100, more is closer. Length: characters of the translation over those of the text."
        views = [View("Translations by direction", columns, self.summary.to_dict("records"), note)]
        if len(self.terms):
            terms = [
                text("term", "term", strong=True),
                Shown("accepted translations", lambda row: str(row["target"])),
                Shown("direction", _direction),
                count("expected", "expected"),
                rate("kept", "preserved"),
            ]
            views.append(View("Terms of the glossary", terms, self.terms.to_dict("records")))
        return [*views, *load_views(self.speed)]

    def _shown_rows(self, clips: int | None) -> Sequence[Html]:
        shown = self.table if clips is None else self.table.head(clips)
        caption = "Translations"
        if len(shown) < len(self.table):
            caption += f": the first {len(shown)} of {len(self.table)} rows"
        other = "reference" if self.columns[1] else "translation back"
        lines = [self._line(row) for row in shown.to_dict("records")]
        return [table(("source", "translation", other, "chrF"), lines, caption=caption)]

    def _line(self, row: Mapping[Hashable, Any]) -> list[object]:
        source, reference, source_lang, target_lang = self.columns
        codes = str(row[source_lang]), str(row[target_lang])
        other, code, score = (
            (row[reference], codes[1], row.get("chrf"))
            if reference
            else (row.get("back_translation"), codes[0], row.get("back_chrf"))
        )
        return [
            element("span", row[source], lang=codes[0]),
            element("span", row["translation"], lang=codes[1])
            if isinstance(row["translation"], str)
            else element("em", str(row["error"])),
            None if is_missing(other) else element("span", other, lang=code),
            None if is_missing(score) else score,
        ]

    def plain_rows(self) -> pd.DataFrame:
        """Return the rows with the names that the study gives its columns where the table has others."""
        names = dict(zip(self.columns, ("text", "reference", "source_lang", "target_lang"), strict=True))
        given = [new for old, new in names.items() if old != new and new in self.table.columns]
        return self.table.drop(columns=given).rename(columns=names)

    def _rows(self, **options: Any) -> ShownTable:
        source, reference, source_lang, target_lang = self.columns
        usual = {"reference": reference, "hypotheses": "translation", "language": target_lang}
        if not reference and "back_translation" in self.table.columns:
            usual = {"reference": source, "hypotheses": "back_translation", "language": source_lang}
        elif not reference:
            usual = {}
        seen = (
            "system",
            source,
            "translation",
            reference,
            "back_translation",
            "chrf",
            "back_chrf",
            "loop",
            "status",
        )
        known = [name for name in seen if name in self.table.columns and self.table[name].notna().any()]
        return super()._rows(**{"columns": known, **usual, **options})

    def plot(self, **options: Any) -> Figure:
        """Draw the scores of the directions: :func:`speechlab.plots.translation_scores` of the summary.

        Raises:
            InvalidRequestError: There are no scores.
        """
        from speechlab.plots import translation_scores

        if self._score is None:
            message = "the report has no scores; give references, or back=True"
            raise InvalidRequestError(message, parameter="score")
        keys = [*(["system"] if "system" in self.summary else []), *self.columns[2:]]
        return translation_scores(self.summary, **{"score": self._score, "by": keys, **options})

    def figures(self) -> Mapping[str, Figure]:
        """Return the figures of the scores, of how systems differ, and of the time to the first word."""
        from speechlab import plots

        scored = (
            self.effects[self.effects["measure"].str.startswith(CHRF)] if len(self.effects) else self.effects
        )
        figures: dict[str, Any] = {"Scores": self.plot}
        if len(scored):
            where = scored["source_lang"] + " → " + scored["target_lang"] + ", " + scored["texts"]
            changed = scored.assign(a=scored["baseline"], b=where + ": " + scored["system"])
            figures["Differences from the first system"] = lambda: plots.differences(changed, score=CHRF)
        if len(self.speed):
            named = self.speed.assign(direction=[_direction(row) for row in self.speed.to_dict("records")])
            figures["Time to the first word"] = lambda: plots.distributions(
                named, "first_word_s", by="direction"
            )
        return drawn(figures)

    def facts(self) -> Mapping[str, str]:
        """Return versions, the metric's signature, and how speed was measured."""
        signatures: list[str] = (
            list(self.summary["signature"].dropna()) if "signature" in self.summary else []
        )
        timed = f"{len(self.speed)} streams, one at a time, in turns" if len(self.speed) else "not measured"
        found = {"speechlab": package_version(), "chrF": str(next(iter(signatures), "none")), "speed": timed}
        if not self.columns[1]:
            found["references"] = "none"
        return found


def _direction(row: Mapping[Hashable, Any], source: str = "source_lang", target: str = "target_lang") -> str:
    direction = f"{row[source]} → {row[target]}"
    return f"{row['system']}, {direction}" if row.get("system") else direction
