"""The study of speech that is recognised, translated, spoken and recognised again: what is lost at each step."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from speechlab import batch
from speechlab._brief import briefly
from speechlab.contract import Voice
from speechlab.errors import APIConnectionError, InvalidRequestError
from speechlab.evaluate._arguments import code_or_none, columns_of, keep_free
from speechlab.evaluate._asked import repeatable
from speechlab.evaluate._made import SPEECH_TO_SPEECH
from speechlab.evaluate._report import Report
from speechlab.evaluate._systems import UNUSABLE, services_of
from speechlab.evaluate._translation.stages import STEPS, stages_report
from speechlab.evaluate._voices import by_service, one_voice, speaks, voice_name
from speechlab.evaluate._writing.differences import of_study
from speechlab.evaluate._writing.record import StageProgress, record_of, stage_of, tell_failed
from speechlab.metrics import BETTER, compare_translations, judge, score, score_translations
from speechlab.text import normalizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from speechlab.client import Client
    from speechlab.errors import SpeechLabError
    from speechlab.evaluate._writing.contents import Contents
    from speechlab.store import Store

_STEP = "speechlab: step "
_COUNTS = {
    "error_rate": ("errors", "reference_length"),
    "reading_cer": ("reading_errors", "reading_length"),
}
_SUMMARY = ("language", "step", "utterances", "chrf", "lost", "error_rate", "reading_cer", "test")


@briefly
@repeatable
def speech_to_speech(
    lab: Client | Mapping[str, Client],
    frame: pd.DataFrame,
    target_lang: str,
    voice: Voice | str | Mapping[str, Voice | str],
    *,
    audio: str = "audio",
    text: str = "text",
    language: str = "language",
    reference: str | None = "auto",
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    executor: Any = None,
    give_up_after_s: float | None = None,
    progress: StageProgress = True,
    title: str = "Speech to speech",
    **options: Any,
) -> Report:
    """Recognise recordings, translate, speak the translation and recognise it, with the loss of each step.

    The references are translated as well. Their loss is the translator's. The further loss of the translated
    hypothesis is the recogniser's. The loss from there to the end is the voice's, or the recogniser's in the other
    language. Texts are normalised before the comparison. If a service cannot be asked, its rows fail at that step,
    and the other services continue.

    Args:
        lab: The client; or several by name, which perform all steps each, as in ``{"ours": lab, "theirs": other}``.
        frame: One row for each recording.
        target_lang: Code of the language to translate into.
        voice: A voice of that language, its id or name; for several services a mapping by name.
        audio: Column of the recordings.
        text: Column of their transcripts.
        language: Column of their languages, or a code for all of them.
        reference: Column of reference translations; ``"auto"`` takes ``reference`` if the table has it; None for no
            references.
        store: Where results are kept and reused; None for the user's own store.
        concurrency: Maximum of calls at once.
        executor: A ``dask.distributed.Client`` whose workers make the calls, as for :func:`speechlab.batch.run`.
        give_up_after_s: As for :func:`speechlab.batch.run`.
        progress: As for :func:`round_trip`.
        title: Title of the report.
        **options: Parameters of ``Client.translate``: keywords, context, model.

    Raises:
        InvalidRequestError: A column is missing, an argument is not allowed, or the voice speaks other languages. A
            voice without known languages is used, with a warning.
        AuthenticationError: The service refuses the API key.
        APIConnectionError: No service can be reached.
    """
    frame, (audio, text, language, *others) = columns_of(
        frame, audio=audio, text=text, language=language, reference=reference
    )
    reference = next(iter(others), None)
    services = services_of(lab)
    voices = by_service(voice, services, "voice")
    keep_free(frame, SPEECH_TO_SPEECH)
    if code_or_none(target_lang) is None:
        raise InvalidRequestError("target_lang is no code; give one, as in 'en'", parameter="target_lang")
    running = {
        "store": store,
        "concurrency": concurrency,
        "executor": executor,
        "give_up_after_s": give_up_after_s,
    }
    into = {
        **running,
        **options,
        "source_lang": batch.Column(language),
        "target_lang": batch.Value(target_lang),
    }
    ways = {name: _Way(frame.reset_index(drop=True), name, progress) for name in services}
    speakers = {
        name: way.voice(services[name], voices[name], target_lang, store, give_up_after_s)
        for name, way in ways.items()
    }
    for note in _untold(speakers, target_lang):
        warnings.warn(note, stacklevel=3)
    first = {**running, "language": batch.Column(language)}
    last = {**running, "language": batch.Value(target_lang)}
    for name, way in ways.items():
        client = services[name]
        way.go("recognise", batch.transcribe, client, audio, "hypothesis", audio=audio, **first)
        way.go("translate what was said", batch.translate, client, text, "ideal", text=text, **into)
        way.go("translate", batch.translate, client, "hypothesis", "translation", text="hypothesis", **into)
        spoken = {**running, "voice": speakers[name]}
        way.go("speak", batch.synthesize, client, "translation", "spoken", text="translation", **spoken)
        way.go("recognise again", batch.transcribe, client, "spoken", "again", audio="spoken", **last)
    batches = [done for way in ways.values() for done in way.batches]
    if not batches and (gone := [way.gone for way in ways.values() if way.gone is not None]):
        raise gone[0]
    table = pd.concat(
        [way.rows.assign(system=name) if name else way.rows for name, way in ways.items()], ignore_index=True
    )
    roles = {
        "audio": audio,
        "text": text,
        "language": language,
        **({"reference": reference} if reference else {}),
    }
    record = record_of("speech_to_speech", store, *batches, target_lang=target_lang, **options)
    report = Report.of(report_of_stages(title, table, roles, record))
    tell_failed(report.table, "The report's table has them, with the step in 'failed_at'")
    return report


def report_of_stages(
    title: str, table: pd.DataFrame, roles: Mapping[str, str], record: Mapping[str, Any]
) -> Contents:
    """Score the texts of each step, and report what is lost."""
    target, text, language = record["settings"]["target_lang"], roles["text"], roles["language"]
    rows = table.assign(
        status=table["error"].isna().map({True: "ok", False: "error"}),
        **_rates(table, text, "hypothesis", language),
        **_rates(table, "translation", "again", target, prefix="again_"),
    )
    summary, differences = _summarized(rows, text, language, roles.get("reference"), target)
    return stages_report(title, rows, summary, differences, roles, target, record)


def _untold(speakers: Mapping[str, Voice | str], language: str) -> list[str]:
    """Warnings about voices without languages in the catalogue."""
    return [
        f"{name}{': ' if name else ''}the catalogue does not say whether voice {voice_name(one)!r} speaks {language}"
        for name, one in speakers.items()
        if isinstance(one, Voice) and not speaks(one, language)
    ]


class _Way:
    """Rows during the steps of a study; a failed row is left out of further steps.

    Attributes:
        name: Name of the service; empty for a single service.
        rows: The rows with their results so far.
        batches: The tables of the batches so far.
        gone: Reason why the service can no longer be asked; there are no calls after that.
    """

    _GIVE: ClassVar = {"transcribe": "hypothesis", "translate": "translation", "synthesize": "audio"}
    _STEPS: ClassVar = ("hypothesis", "ideal", "translation", "spoken", "again")

    def __init__(self, frame: pd.DataFrame, name: str, progress: StageProgress) -> None:
        self.name = name
        self._progress = progress
        self.gone: SpeechLabError | None = None
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
        """Make the calls of one step for the rows that have its input; the other rows fail."""
        has = self.rows[needs].notna()
        there = self.rows[has]
        self._failed(pd.Series(f"column {needs!r} is empty in this row", index=self.rows.index[~has]), step)
        self.rows[gives] = None
        if not len(there) or self.gone is not None:
            return
        try:
            with batch.failures_told_elsewhere():
                done = operation(there, lab, prefix=_STEP, progress=stage_of(self._progress, step), **how)
        except UNUSABLE as error:
            self._lost(error, there.index, step)
            return
        self.batches.append(done)
        name = _STEP + self._GIVE[operation.__name__]
        self.rows[gives] = done[name].astype(object).where(done[name].notna(), None).reindex(self.rows.index)
        self._failed(done[f"{_STEP}error"], step)

    def voice(
        self,
        lab: Client,
        voice: Voice | str,
        language: str,
        store: Store | str | None,
        give_up_after_s: float | None,
    ) -> Voice | str:
        """Return the voice, looked up before the first step; if the service cannot be asked, the step reports it."""
        try:
            return one_voice(lab, voice, language, self.name, store, give_up_after_s)
        except APIConnectionError as error:
            for gives in self._STEPS:
                self.rows[gives] = None
            self._lost(error, self.rows.index, "recognise")
        except UNUSABLE:
            pass  # reported by the step that speaks; earlier steps can still run
        return voice

    def _lost(self, error: SpeechLabError, rows: pd.Index, step: str) -> None:
        """Stop asking the service, and fail the rows."""
        self.gone = error
        whose = f"{self.name} could not be asked: " if self.name else ""
        self._failed(pd.Series(f"{whose}{error}", index=rows, dtype=object), step)

    def _failed(self, errors: pd.Series[Any], step: str) -> None:
        """Keep the errors of rows, unless they failed before."""
        wrong = errors.reindex(self.rows.index)
        new = wrong.notna() & self.rows["error"].isna()
        self.rows.loc[new, "error"] = wrong[new]
        self.rows.loc[new, "failed_at"] = step


def _rates(
    rows: pd.DataFrame, said: str, heard: str, language: str, prefix: str = ""
) -> dict[str, pd.Series[float]]:
    """Return the error rate of each row, for Japanese also that of readings; missing if a text is missing."""
    both = rows[[said, heard]].notna().all(axis=1)
    scored = (
        score(rows[both], reference=said, hypothesis=heard, language=language)
        if both.any()
        else pd.DataFrame(index=rows.index[:0])
    )
    none = pd.Series(float("nan"), index=scored.index)
    return {
        f"{prefix}{name}": scored.get(name, none).astype("float64").reindex(rows.index)
        for name in ("error_rate", "reading_cer")
    }


def _pooled(rows: pd.DataFrame, said: str, heard: str, language: str) -> dict[str, float]:
    """Return the pooled error rates of rows: all errors over the length of all references."""
    texts = rows[[name for name in dict.fromkeys((said, heard, language)) if name in rows.columns]]
    scored = score(texts, reference=said, hypothesis=heard, language=language)
    sums = {name: scored[list(both)].sum() for name, both in _COUNTS.items() if both[0] in scored.columns}
    return {name: float(errors / length) for name, (errors, length) in sums.items() if length}


def _summarized(
    rows: pd.DataFrame, text: str, language: str, reference: str | None, target: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row for each service, language and step; and the losses of the steps as differences."""
    plain = normalizer(target if target in {"ja", "en", "zh"} else "basic")
    given = reference or "ideal"
    heard = {"translation": (text, "hypothesis"), "again": ("translation", "again")}
    found, tested = [], []
    whole = rows.dropna(subset=[given, *STEPS])
    keys = [*(["system"] if "system" in rows.columns else []), language]
    for key, part in whole.groupby(keys, sort=False):
        said = [plain(one) for one in part[given]]
        texts = {name: [plain(one) for one in part[name]] for name in STEPS}
        scores = {
            name: score_translations(said, texts[name], language=target, metrics=["chrf"]).chrf
            for name in STEPS
        }
        names = dict(zip(("language", "system"), map(str, key[::-1]), strict=False))
        for number, (name, step) in enumerate(STEPS.items()):
            facts = {**names, "step": step, "utterances": len(part), "chrf": scores[name], "lost": None}
            if number:
                before = list(STEPS)[number - 1]
                sides = {STEPS[before]: texts[before], step: texts[name]}
                compared = compare_translations(said, sides, metrics=["chrf"], groups=part[text].tolist())
                (row,) = compared.to_dict("records")
                where = {"language": f"{names['language']} → {target}", "condition": names.get("system", "")}
                tested.append(
                    {**{str(column): cell for column, cell in row.items()}, **where, "measure": "chrF"}
                )
                facts |= {"lost": scores[before] - scores[name], "test": len(tested) - 1}
                facts |= _pooled(part, *heard[name], target if name == "again" else language)
            found.append(facts)
    differences = of_study(judge(tested, more=BETTER))
    out = pd.DataFrame(found, columns=[*(["system"] if len(keys) > 1 else []), *_SUMMARY])
    out = out.astype(dict.fromkeys(("chrf", "lost", "error_rate", "reading_cer"), "float64"))
    known = differences.reindex(out.pop("test").fillna(-1).astype(int)).set_axis(out.index)
    ends = {"lost_low": -known["high"], "lost_high": -known["low"]}
    return out.assign(**ends, **known[["p", "p_holm", "verdict", "test"]]), differences
