"""The study of speech that is recognized, translated, spoken and recognized again: what is lost at each step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from speechlab import batch
from speechlab._arguments import is_missing
from speechlab._brief import shorten_tracebacks
from speechlab._pandas import pd
from speechlab._platform import package_version
from speechlab.contract import Voice
from speechlab.display import format_count, format_percent
from speechlab.errors import APIConnectionError, InvalidRequestError, SpeechLabError
from speechlab.evaluate._cast import resolve_by_service, resolve_voice, speaks, voice_name
from speechlab.evaluate._made import SPEECH_TO_SPEECH
from speechlab.evaluate._repeat import record_request
from speechlab.evaluate._report import Report
from speechlab.evaluate._speech.ranking import READINGS, WRITTEN
from speechlab.evaluate._study_arguments import check_reserved_columns, parse_language_code, resolve_columns
from speechlab.evaluate._systems import UNUSABLE_ERRORS, resolve_services
from speechlab.evaluate._writing.columns import (
    DisplayColumn,
    View,
    build_count_column,
    build_interval_column,
    build_number_column,
    build_p_value_column,
    capitalize_sentence,
    format_language,
    text,
)
from speechlab.evaluate._writing.contents import Conclusion, Contents, Drawing, ShownRows
from speechlab.evaluate._writing.differences import build_study_differences
from speechlab.evaluate._writing.methods import describe_methods
from speechlab.evaluate._writing.record import RunOptions, StageProgress, build_record, warn_failures
from speechlab.metrics import ALIKE, BETTER, compare_translations, judge, score, score_translations
from speechlab.text import normalizer

if TYPE_CHECKING:
    from speechlab.client import Client
    from speechlab.store import Store

_STEP = "speechlab: step "
_MEASURES = (WRITTEN, READINGS)
_RATES = tuple(measure.rate for measure in _MEASURES)
# Columns of the table that are compared with the reference, and the steps before them.
_STEPS = {
    "ideal": "text translated",
    "translation": "recognized, then translated",
    "again": "spoken and recognized again",
}
_SUMMARY_COLUMNS = ("language", "step", "utterances", "chrf", "lost", "error_rate", "reading_cer", "test")


@shorten_tracebacks
@record_request
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
    """Recognize recordings, translate, speak the translation and recognize it, with the loss of each step.

    The references are translated as well. Their loss is the translator's. The further loss of the translated
    hypothesis is the recognizer's. The loss from there to the end is the voice's, or the recognizer's in the other
    language. Texts are normalized before the comparison. If a service cannot be asked, its rows fail at that step,
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
    frame, (audio, text, language, *optional) = resolve_columns(
        frame, audio=audio, text=text, language=language, reference=reference
    )
    reference = next(iter(optional), None)
    services = resolve_services(lab)
    voices = resolve_by_service(voice, services, "voice")
    check_reserved_columns(frame, SPEECH_TO_SPEECH)
    if parse_language_code(target_lang) is None:
        raise InvalidRequestError("target_lang is no code; give one, as in 'en'", parameter="target_lang")
    run = RunOptions(title, store, concurrency, executor, give_up_after_s, progress)
    source, target = batch.Column(language), batch.Value(target_lang)
    translating = {**options, "source_lang": source, "target_lang": target}
    rows = frame.reset_index(drop=True)
    routes = {name: _ServicePipeline(client, name, rows, run) for name, client in services.items()}
    speakers = {name: route.resolve_voice(voices[name], target_lang) for name, route in routes.items()}
    for name, speaker in speakers.items():
        if isinstance(speaker, Voice) and not speaks(speaker, target_lang):
            whose = f"{name}{': ' if name else ''}"
            note = f"{whose}the catalogue does not say whether voice {voice_name(speaker)!r} speaks {target_lang}"
            warnings.warn(note, stacklevel=3)
    for name, route in routes.items():
        route.run_step("recognize", batch.transcribe, audio, "hypothesis", language=source)
        route.run_step("translate what was said", batch.translate, text, "ideal", **translating)
        route.run_step("translate", batch.translate, "hypothesis", "translation", **translating)
        route.run_step("speak", batch.synthesize, "translation", "spoken", voice=speakers[name])
        route.run_step("recognize again", batch.transcribe, "spoken", "again", language=target)
    batches = [answers for route in routes.values() for answers in route.batches]
    errors = [route.failure for route in routes.values() if route.failure is not None]
    if errors and not batches:
        raise errors[0]
    table = pd.concat(
        [route.rows.assign(system=name) if name else route.rows for name, route in routes.items()],
        ignore_index=True,
    )
    known_reference = {"reference": reference} if reference else {}
    roles = {"audio": audio, "text": text, "language": language, **known_reference}
    record = build_record("speech_to_speech", store, *batches, target_lang=target_lang, **options)
    report = Report.of(build_stages_report(title, table, roles, record))
    warn_failures(report.table, "The report's table has them, with the step in 'failed_at'")
    return report


def build_stages_report(
    title: str, table: pd.DataFrame, roles: Mapping[str, str], record: Mapping[str, Any]
) -> Contents:
    """Score the texts of each step, and report what is lost."""
    target, text_column, language = record["settings"]["target_lang"], roles["text"], roles["language"]
    scores = {
        "translation": _score_rows(table, text_column, "hypothesis", language),
        "again": _score_rows(table, "translation", "again", target),
    }
    status = table["error"].isna().map({True: "ok", False: "error"})
    rates = [scores["translation"][list(_RATES)], scores["again"][list(_RATES)].add_prefix("again_")]
    rows = table.assign(status=status, **{str(name): each[name] for each in rates for name in each})
    summary, differences = _summarize_steps(rows, scores, roles, target)
    view = [
        text("system", "system", optional=True),
        DisplayColumn("language", lambda row: f"{row['language']} → {target}"),
        text("step", "step"),
        build_count_column("utterances", "utterances"),
        build_number_column("chrF", "chrf", ".1f", strong=True),
        build_number_column("lost", "lost", "+.1f"),
        build_interval_column("lost_low", "lost_high", "+.1f"),
        DisplayColumn("error rate", _format_rate, figure=True),
        build_p_value_column(),
        text("verdict", "verdict"),
    ]
    against = "references" if roles.get("reference") else "translation of what was said"
    note = f"chrF against the {against}, texts normalized; more is closer."
    stages, options = _build_stage_rows(rows, roles, target)
    methods = ["steps", *(["chrf"] if len(summary) else [])]
    methods += ["randomization", "holm"] if summary["p"].notna().any() else []
    methods += ["paired intervals"] if summary["lost_low"].notna().any() else []
    complete = int(rows["again"].notna().sum())
    by = [*(["system"] if "system" in summary.columns else []), "language", "step"]
    return Contents(
        title,
        rows,
        summary,
        _build_conclusion(rows, summary, target),
        "speech_to_speech",
        differences=differences,
        tables={"stages": stages},
        columns=roles,
        views=(View.from_rows("What is lost at each step", view, summary, note),),
        drawings=(Drawing("Scores", "translation_scores", ("summary",), {"by": by}),),
        shown=ShownRows("stages", options=options),
        said=describe_methods(title, *methods),
        facts={"speechlab": package_version(), "rows": f"{complete:,} of {len(rows):,} went all the way"},
        record=record,
    )


class _ServicePipeline:
    """The rows of one service during the steps of a study; a failed row is left out of further steps."""

    _CALLS: ClassVar = {
        "transcribe": ("audio", "hypothesis"),
        "translate": ("text", "translation"),
        "synthesize": ("text", "audio"),
    }
    """The argument of an operation that names its column, and the column of its results."""

    def __init__(self, client: Client, name: str, frame: pd.DataFrame, run: RunOptions) -> None:
        self._client, self._name, self._run = client, name, run
        self.failure: SpeechLabError | None = None
        self.rows = frame.assign(error=None, failed_at=None).astype({"error": object, "failed_at": object})
        self.batches: list[pd.DataFrame] = []

    def run_step(
        self, step: str, operation: Callable[..., pd.DataFrame], needs: str, gives: str, **options: Any
    ) -> None:
        """Make the calls of one step for the rows that have its input; the other rows fail."""
        filled = self.rows[needs].notna()
        empty = self.rows.index[~filled]
        self._fail_rows(pd.Series(f"column {needs!r} is empty in this row", index=empty), step)
        self.rows[gives] = None
        if not filled.any() or self.failure is not None:
            return
        argument, result = self._CALLS[operation.__name__]
        columns = {argument: needs, "prefix": _STEP}
        try:
            with batch.suppress_failure_warnings():
                answers = operation(
                    self.rows[filled], self._client, **options, **columns, **self._run.to_batch(step)
                )
        except UNUSABLE_ERRORS as error:
            self._stop_service(error, self.rows.index[filled], step)
            return
        self.batches.append(answers)
        results = answers[_STEP + result].astype(object)
        self.rows[gives] = results.where(results.notna(), None).reindex(self.rows.index)
        self._fail_rows(answers[f"{_STEP}error"], step)

    def resolve_voice(self, voice: Voice | str, language: str) -> Voice | str:
        """Return the voice, looked up before the first step; if the service cannot be asked, the step reports it."""
        try:
            return resolve_voice(
                self._client, voice, language, self._name, self._run.store, self._run.give_up_after_s
            )
        except APIConnectionError as error:
            results = dict.fromkeys(("hypothesis", "ideal", "translation", "spoken", "again"))
            self.rows = self.rows.assign(**results)
            self._stop_service(error, self.rows.index, "recognize")
        except UNUSABLE_ERRORS:
            pass  # reported by the step that speaks; earlier steps can still run
        return voice

    def _stop_service(self, error: SpeechLabError, rows: pd.Index, step: str) -> None:
        """Stop asking the service, and fail the rows."""
        self.failure = error
        whose = f"{self._name} could not be asked: " if self._name else ""
        self._fail_rows(pd.Series(f"{whose}{error}", index=rows, dtype=object), step)

    def _fail_rows(self, errors: pd.Series[Any], step: str) -> None:
        """Keep the errors of rows, unless they failed before."""
        causes = errors.reindex(self.rows.index)
        is_new = causes.notna() & self.rows["error"].isna()
        self.rows.loc[is_new, "error"] = causes[is_new]
        self.rows.loc[is_new, "failed_at"] = step


def _score_rows(rows: pd.DataFrame, reference: str, hypothesis: str, language: str) -> pd.DataFrame:
    """Return the errors of each row with both texts, and their rates; of Japanese also those of readings."""
    complete = rows[[reference, hypothesis]].notna().all(axis=1)
    columns = [*_RATES, *(name for measure in _MEASURES for name in (measure.errors, measure.length))]
    if not complete.any():
        return pd.DataFrame(index=rows.index, columns=columns, dtype="float64")
    names = [name for name in dict.fromkeys((reference, hypothesis, language)) if name in rows.columns]
    scored = score(rows.loc[complete, names], reference=reference, hypothesis=hypothesis, language=language)
    return scored.reindex(index=rows.index, columns=columns).astype("float64")


def _summarize_steps(
    rows: pd.DataFrame, scores: Mapping[str, pd.DataFrame], roles: Mapping[str, str], target: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row for each service, language and step; and the losses of the steps as differences."""
    normalize = normalizer(target if target in {"ja", "en", "zh"} else "basic")
    reference = roles.get("reference", "ideal")
    lines: list[dict[str, Any]] = []
    tested: list[dict[Any, Any]] = []
    complete = rows.dropna(subset=[reference, *_STEPS])
    keys = [*(["system"] if "system" in rows.columns else []), roles["language"]]
    for key, group in complete.groupby(keys, sort=False):
        references = [normalize(sentence) for sentence in group[reference]]
        names = dict(zip(("language", "system"), map(str, key[::-1]), strict=False))
        texts_said = group[roles["text"]].tolist()
        before: dict[str, Any] = {}
        for name, step in _STEPS.items():
            texts = [normalize(sentence) for sentence in group[name]]
            chrf = score_translations(references, texts, language=target, metrics=["chrf"]).chrf
            facts = dict[str, Any](names, step=step, utterances=len(group), chrf=chrf, lost=None)
            if before:
                sides = {before["step"]: before["texts"], step: texts}
                test = compare_translations(references, sides, metrics=["chrf"], groups=texts_said)
                labels = {"language": f"{names['language']} → {target}", "condition": names.get("system", "")}
                tested.append({**test.iloc[0].to_dict(), **labels, "measure": "chrF"})
                facts |= {"lost": before["chrf"] - chrf, "test": len(tested) - 1}
                sums = scores[name].loc[group.index].sum()
                for measure in _MEASURES:
                    length = sums[measure.length]
                    facts[measure.rate] = sums[measure.errors] / length if length else None
            before = {"step": step, "texts": texts, "chrf": chrf}
            lines.append(facts)
    differences = build_study_differences(judge(tested, more=BETTER))
    summary = pd.DataFrame(lines, columns=[*(["system"] if len(keys) > 1 else []), *_SUMMARY_COLUMNS])
    summary = summary.astype(dict.fromkeys(("chrf", "lost", *_RATES), "float64"))
    tests = differences.reindex(summary.pop("test").fillna(-1).astype(int)).set_axis(summary.index)
    bounds = {"lost_low": -tests["high"], "lost_high": -tests["low"]}
    return summary.assign(**bounds, **tests[["p", "p_holm", "verdict", "test"]]), differences


def _build_conclusion(table: pd.DataFrame, summary: pd.DataFrame, target_lang: str) -> Conclusion:
    unfinished = int(table["again"].isna().sum())
    unfinished_words = (
        f" {unfinished:,} of {format_count(len(table), 'row')} did not go all the way." if unfinished else ""
    )
    steps = summary[summary["lost"].notna()] if len(summary) else summary
    if not len(steps):
        return Conclusion("What is lost on the way could not be measured.", unfinished_words.strip())
    worst = max(steps.to_dict("records"), key=lambda row: float(row["lost"]))
    before = worst["chrf"] + worst["lost"]
    names = {_STEPS["translation"]: "recognition", _STEPS["again"]: "the voice, or recognition of it,"}
    system = f"{worst['system']}: " if "system" in steps.columns else ""
    directions = f"from {format_language(str(worst['language']))} to {format_language(target_lang)}"
    lead = f"{system}{names[worst['step']]} loses most on the way {directions}."
    recordings = format_count(int(worst["utterances"]), "recording")
    chance_words = "that may be chance" if worst["verdict"] == ALIKE else "that is beyond chance"
    certainty = (
        f"What arrives is alike by {before:.1f} of 100 before it and {worst['chrf']:.1f} after it (chrF); on "
        f"{recordings}, {chance_words}."
    )
    if worst["lost"] <= 0:
        lead = f"{system}nothing is lost after the translation, {directions}."
        certainty = f"What arrives is alike by {worst['chrf']:.1f} of 100 (chrF), on {recordings}."
    return Conclusion(capitalize_sentence(lead), f"{certainty}{unfinished_words}")


def _build_stage_rows(
    table: pd.DataFrame, columns: Mapping[str, str], target_lang: str
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return of each recording what was said, and below it what was spoken.

    What was recognized is compared with what was said, or with the translation that was to be spoken.
    """
    audio, text, language = (columns[name] for name in ("audio", "text", "language"))
    reference = columns.get("reference")
    sides = ["system"] if "system" in table.columns else []
    row_numbers = table.groupby(sides, sort=False).cumcount() + 1 if sides else range(1, len(table) + 1)
    tables = []
    for stage, (sound, expected, recognized, prefix) in {
        "said": (audio, text, "hypothesis", ""),
        "spoken": ("spoken", "translation", "again", "again_"),
    }.items():
        later = stage == "spoken"
        cells = {
            "row": row_numbers,
            **{name: table[name] for name in sides},
            "stage": stage,
            "audio": table[sound],
            "text": table[expected],
            "recognized": table[recognized],
            **{name: table[f"{prefix}{name}"] for name in _RATES},
            "translation of what was said": table["ideal"] if later else None,
            "reference": table[reference] if reference and later else None,
            "language": target_lang if later else table[language],
            "failed_at": None if later else table["failed_at"],
            "error": None if later else table["error"],
        }
        tables.append(pd.DataFrame(cells, index=table.index).astype(object).reset_index(drop=True))
    stages = pd.concat(tables).sort_index(kind="stable")
    stages = stages.sort_values("row", kind="stable").reset_index(drop=True)
    stages = stages.dropna(axis="columns", how="all") if len(stages) else stages
    rates = {name: "float64" for name in _RATES if name in stages}
    options: dict[str, Any] = {"columns": [name for name in stages.columns if name != "language"]}
    if "recognized" in stages:
        options |= {"reference": "text", "hypotheses": "recognized", "language": "language"}
    options |= {"audio": "audio"} if "audio" in stages else {}
    return stages.astype({"row": "int64", **rates}), options


def _format_rate(row: Mapping[Hashable, Any]) -> str | None:
    """Return the error rate of a row; for Japanese that of readings, with that of characters in brackets."""
    rate, reading = row[WRITTEN.rate], row.get(READINGS.rate)
    if is_missing(rate):
        return None
    return (
        format_percent(rate)
        if is_missing(reading)
        else f"{format_percent(reading)} ({format_percent(rate)} of characters)"
    )
