"""The study of speech that is recognised, translated, spoken and recognised again: what is lost at each step."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from speechlab import batch
from speechlab._arguments import is_missing
from speechlab._brief import briefly
from speechlab._platform import package_version
from speechlab.display import Html, element, percent, table
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._arguments import code_or_none, keep_free, need_columns
from speechlab.evaluate._failed import tell_failed
from speechlab.evaluate._report import Report, verdicts_of
from speechlab.evaluate._translation.effects import RANDOMIZATION
from speechlab.evaluate._writing.record import record_of
from speechlab.metrics import compare_translations, holm, score, translation_score
from speechlab.text import normalizer

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from matplotlib.figure import Figure

    from speechlab.batch import Progress
    from speechlab.client import Client
    from speechlab.contract import Voice
    from speechlab.store import Store

STEPS = {
    "ideal": "text translated",
    "translation": "recognised, then translated",
    "again": "spoken and recognised again",
}
"""Columns of the table that are compared with the reference, and what was done until there."""
_RESULTS = frozenset(
    {
        *("hypothesis", "translation", "ideal", "spoken", "again", "status", "error", "failed_at"),
        *("error_rate", "again_error_rate"),
    }
)
_LEVEL = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class SpeechToSpeechReport(Report):
    """Report of what is lost on the way from speech to speech.

    Attributes:
        title: Title of the page.
        table: One row for each recording: the input's columns, ``hypothesis`` (what was recognised), ``error_rate``
            (against what was said), ``translation`` (of that), ``ideal`` (the translation of what was said),
            ``spoken`` (the recording of the translation), ``again`` (what was recognised of it),
            ``again_error_rate`` (against the translation), ``status``, ``failed_at`` (the step) and ``error``.
        summary: One row for each language and step: ``language``, ``step``, ``utterances`` (rows that went all the
            way), ``chrf`` (against the references; without them against the translation of what was said),
            ``lost`` (points, since the step before), ``error_rate`` (of the recogniser in this step), ``p``,
            ``p_holm``, ``significant``, ``verdict`` and ``test``.
        columns: Columns of ``table`` with the recordings, what is said in them, their languages, and the references
            (empty: there are none).
        target_lang: Code of the language translated into.
        record: As for :class:`Report`.
    """

    title: str
    table: pd.DataFrame
    summary: pd.DataFrame
    columns: tuple[str, str, str, str] = ("audio", "text", "language", "reference")
    target_lang: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)

    def sections(self, *, clips: int | None = None) -> Sequence[Html]:
        """Return the steps with what each of them loses, and the rows."""
        head = self.headline()
        lines = [
            [None if is_missing(cell) else str(cell) for cell in row] for row in head.itertuples(index=False)
        ]
        against = "references" if self.columns[3] else "translation of what was said"
        caption = f"What is lost at each step: chrF against the {against}, texts normalised."
        found = [table(list(head.columns), lines, caption=caption, right=(2, 3, 4, 5, 6))]
        if clips != 0:
            _, text, language, _ = self.columns
            shown = self.table if clips is None else self.table.head(clips)
            rows = [
                [
                    _texts(row, str(row[language]), (text, "hypothesis")),
                    _texts(row, self.target_lang, tuple(STEPS)),
                    percent(row["error_rate"]),
                    percent(row["again_error_rate"]),
                    None if is_missing(row["error"]) else f"{row['failed_at']}: {row['error']}",
                ]
                for row in shown.to_dict("records")
            ]
            ways = "translated: the text; what was recognised; that, spoken and recognised"
            heads = ("said, and recognised", ways, "errors", "errors at the end", "failed")
            found.append(table(heads, rows, caption="Rows"))
        return found

    def headline(self) -> pd.DataFrame:
        """Return the steps in a few columns, written out for people."""
        return pd.DataFrame(
            [
                {
                    "Language": f"{row['language']} → {self.target_lang}",
                    "Step": row["step"],
                    "Utterances": row["utterances"],
                    "chrF": f"{row['chrf']:.1f}",
                    "Lost": None if is_missing(row["lost"]) else f"{row['lost']:+.1f}",
                    "Error rate": None if is_missing(row["error_rate"]) else percent(row["error_rate"]),
                    "p (Holm)": None if is_missing(row["p_holm"]) else f"{row['p_holm']:.3f}",
                    "Verdict": row["verdict"],
                }
                for row in self.summary.to_dict("records")
            ],
            columns=["Language", "Step", "Utterances", "chrF", "Lost", "Error rate", "p (Holm)", "Verdict"],
        )

    def plot(self, **options: Any) -> Figure:
        """Draw the score after each step: :func:`speechlab.plots.translation_scores` of the summary."""
        # By name: figures stand a floor above this room, and load when one is drawn.
        figure: Figure = import_module("speechlab.plots").translation_scores(
            self.summary, **{"by": ["language", "step"], **options}
        )
        return figure

    def rows(self, **options: Any) -> Any:
        """Hear, search and sort the rows; what was recognised is compared with what was said."""
        audio, text, language, _ = self.columns
        columns = [audio, text, "hypothesis", *STEPS, "error_rate", "again_error_rate", "failed_at"]
        known = [name for name in columns if self.table[name].notna().any()]
        usual = {
            "reference": text,
            "hypotheses": "hypothesis",
            "language": language,
            "audio": audio,
            "columns": known,
        }
        return super().rows(**{**usual, **options})

    def facts(self) -> Mapping[str, str]:
        """Return versions, and how many rows went all the way."""
        whole = int(self.table["again"].notna().sum())
        return {"speechlab": package_version(), "rows": f"{whole:,} of {len(self.table):,} went all the way"}


@briefly
def speech_to_speech(
    lab: Client,
    frame: pd.DataFrame,
    target_lang: str,
    voice: Voice | str,
    *,
    audio: str = "audio",
    text: str = "text",
    language: str = "language",
    reference: str | None = "auto",
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    progress: Progress = True,
    title: str = "Speech to speech",
    **options: Any,
) -> SpeechToSpeechReport:
    """Recognise recordings, translate, speak the translation and recognise it, and say what is lost at each step.

    What was said is translated as well: what that loses is the translator's, what the translation of the recognised
    text loses beyond it the recogniser's, and what is lost from there to the end the voice's or the recogniser's of
    the other language. Texts are normalised before they are compared.

    Args:
        lab: The client.
        frame: One row for each recording.
        target_lang: Code of the language to translate into.
        voice: A voice that speaks it, its id or name.
        audio: Column of the recordings.
        text: Column of what is said in them.
        language: Column of their languages.
        reference: Column of reference translations; ``"auto"`` takes ``reference`` if the table has it; None for no
            references.
        store: Where results are kept and reused; None for the user's own store.
        concurrency: Calls under way at once.
        progress: True for bars, False for none, or a function of (calls done, calls in all), for each batch.
        title: Title of the report.
        **options: Parameters of ``Client.translate``: keywords, context, model.

    Raises:
        InvalidRequestError: A column is missing, or an argument is not allowed.
        AuthenticationError: The service refuses the API key.
    """
    if reference == "auto":
        reference = "reference" if "reference" in getattr(frame, "columns", ()) else None
    need_columns(frame, audio, text, language, *([] if reference is None else [reference]))
    keep_free(frame, _RESULTS)
    if code_or_none(target_lang) is None:
        raise InvalidRequestError("target_lang is no code; give one, as in 'en'", parameter="target_lang")
    running = {"store": store, "concurrency": concurrency, "progress": progress}
    into = {
        **running,
        **options,
        "source_lang": batch.Column(language),
        "target_lang": batch.Value(target_lang),
    }
    way = _Way(frame.reset_index(drop=True))
    first = {**running, "language": batch.Column(language)}
    last = {**running, "language": batch.Value(target_lang)}
    way.go("recognise", batch.transcribe, lab, audio, "hypothesis", audio=audio, **first)
    way.go("translate what was said", batch.translate, lab, text, "ideal", text=text, **into)
    way.go("translate", batch.translate, lab, "hypothesis", "translation", text="hypothesis", **into)
    spoken = {**running, "voice": voice}
    way.go("speak", batch.synthesize, lab, "translation", "spoken", text="translation", **spoken)
    way.go("recognise again", batch.transcribe, lab, "spoken", "again", audio="spoken", **last)
    rows = way.rows.assign(
        status=way.rows["error"].isna().map({True: "ok", False: "error"}),
        error_rate=_rates(way.rows, text, "hypothesis", language),
        again_error_rate=_rates(way.rows, "translation", "again", target_lang),
    )
    report = SpeechToSpeechReport(
        title,
        rows,
        _summarized(rows, text, language, reference, target_lang),
        (audio, text, language, reference or ""),
        target_lang,
        record_of("speech_to_speech", store, *way.batches, target_lang=target_lang),
    )
    wrong = rows[rows["status"] == "error"]
    tell_failed(wrong["error"], len(rows), "The report's table has them, with the step in 'failed_at'")
    return report


class _Way:
    """Rows on their way through batches; one that fails goes no further."""

    _GIVE: ClassVar = {"transcribe": "hypothesis", "translate": "translation", "synthesize": "audio"}

    def __init__(self, frame: pd.DataFrame) -> None:
        self.rows = frame.assign(error=None, failed_at=None).astype({"error": object, "failed_at": object})
        self.batches: list[pd.DataFrame] = []

    def go(
        self,
        step: str,
        operation: Callable[..., pd.DataFrame],
        lab: Client,
        needs: str,
        gives: str,
        **how: Any,
    ) -> None:
        """Make the calls of one step, of rows that have what it needs."""
        there = self.rows[self.rows[needs].notna()]
        if not len(there):
            self.rows[gives] = None
            return
        with batch.failures_told_elsewhere():
            done = operation(there, lab, prefix="step_", **how)
        self.batches.append(done)
        name = "step_" + self._GIVE[operation.__name__]
        self.rows[gives] = done[name].astype(object).where(done[name].notna(), None).reindex(self.rows.index)
        wrong = done["step_error"].reindex(self.rows.index)
        new = wrong.notna() & self.rows["error"].isna()
        self.rows.loc[new, "error"] = wrong[new]
        self.rows.loc[new, "failed_at"] = step


def _rates(rows: pd.DataFrame, said: str, heard: str, language: str) -> pd.Series[float]:
    """The error rate of each row; missing where one text is."""
    both = rows[[said, heard]].notna().all(axis=1)
    if not both.any():
        return pd.Series(float("nan"), index=rows.index)
    scored = score(rows[both], reference=said, hypothesis=heard, language=language)
    return scored["error_rate"].astype("float64").reindex(rows.index)


def _summarized(
    rows: pd.DataFrame, text: str, language: str, reference: str | None, target: str
) -> pd.DataFrame:
    plain = normalizer(target if target in {"ja", "en", "zh"} else "basic")
    given = reference or "ideal"
    found = []
    rates = {"translation": "error_rate", "again": "again_error_rate"}
    whole = rows.dropna(subset=[given, *STEPS])
    for code, part in whole.groupby(language, sort=False):
        said = [plain(one) for one in part[given]]
        texts = {name: [plain(one) for one in part[name]] for name in STEPS}
        before: float | None = None
        for number, (name, step) in enumerate(STEPS.items()):
            chrf = translation_score(said, texts[name], language=target, metrics=["chrf"]).chrf
            p = None
            if number:
                sides = {"before": texts[list(STEPS)[number - 1]], "after": texts[name]}
                compared = compare_translations(said, sides, metrics=["chrf"], groups=part[text].tolist())
                p = float(compared["p"].iloc[1])
            found.append(
                {
                    "language": str(code),
                    "step": step,
                    "utterances": len(part),
                    "chrf": chrf,
                    "lost": None if before is None else chrf - before,
                    "error_rate": part[rates[name]].mean() if name in rates else None,
                    "p": p,
                    "test": RANDOMIZATION if number else None,
                }
            )
            before = chrf
    names = ("language", "step", "utterances", "chrf", "lost", "error_rate", "p", "test")
    numbers = dict.fromkeys(("chrf", "lost", "error_rate", "p"), "float64")
    out = pd.DataFrame(found, columns=list(names)).astype(numbers)
    out["p_holm"] = holm(out["p"].to_numpy())
    out["significant"] = out["p_holm"] < 1 - _LEVEL
    verdicts = pd.Series(verdicts_of(out["significant"], -out["lost"]), index=out.index, dtype="str")
    out["verdict"] = verdicts.where(out["p"].notna(), None)
    return out


def _texts(row: Mapping[Hashable, Any], code: str, names: Sequence[str]) -> Html:
    lines = [element("div", row[name] if isinstance(row[name], str) else "–", lang=code) for name in names]
    return element("div", *lines)
