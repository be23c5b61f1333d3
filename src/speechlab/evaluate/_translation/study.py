"""The study of translations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab._brief import briefly
from speechlab.evaluate._arguments import columns_of, keep_free
from speechlab.evaluate._asked import repeatable
from speechlab.evaluate._made import TRANSLATION
from speechlab.evaluate._report import Report
from speechlab.evaluate._speech.scorers import SCORE, Scorer, named_functions
from speechlab.evaluate._speech.speed import clock_of, no_times, timed_or_why, timed_translations
from speechlab.evaluate._systems import (
    UNUSABLE,
    asked_of_each,
    existing_of,
    existing_outputs,
    systems_asked,
    told_gone,
)
from speechlab.evaluate._translation.measures import (
    Columns,
    as_glossary,
    kept_terms,
    measured,
    scored_translations,
    summarized,
    with_back,
)
from speechlab.evaluate._translation.report import translation_report
from speechlab.evaluate._writing.record import StageProgress, record_of, stage_of, tell_estimate, tell_failed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from speechlab.client import Client
    from speechlab.store import Store


_SETTINGS = (
    "parameters of Client.translate for each name, as in {'plain': {}, 'keywords': {'keywords': ['API']}}"
)
_OWN_WAY_BACK = (
    "Each service translated its own translations back, so that chrF of the way back says more about settings of one "
    "service than about which service is better."
)


@briefly
@repeatable
def translation(
    lab: Client | Mapping[str, Client] | None,
    frame: pd.DataFrame,
    *,
    hypotheses: Mapping[str, str] | Sequence[str] | str | None = None,
    text: str = "text",
    reference: str | None = "auto",
    source_lang: str = "source_lang",
    target_lang: str = "target_lang",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    glossary: Mapping[str, str | Sequence[str]] | Sequence[str] = (),
    back: bool = False,
    scorers: Mapping[str, Scorer] | None = None,
    speed: int = 0,
    speed_concurrency: int | Sequence[int] = 1,
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    executor: Any = None,
    give_up_after_s: float | None = None,
    progress: StageProgress = True,
    title: str = "Translation",
    **options: Any,
) -> Report:
    """Translate texts and measure the quality of the translations, with or without references.

    With references, translations are scored by chrF. Without, ``back=True`` translates them back and compares the
    result with the source. Content that comes back was not lost, but the translation may still be wrong or clumsy;
    content that does not come back may have been lost on the way back. Length ratios and copies are always reported,
    and with a glossary the terms that were kept. Several services or settings are compared with the first, text by
    text. If a service cannot be asked, its rows fail, the notes give the reason, and the other services continue.

    Args:
        lab: The client; or several by name, the one to compare with first, as in ``{"ours": lab, "theirs": other}``.
            None scores the translations of ``hypotheses`` alone.
        frame: One row for each text, with the columns named below.
        hypotheses: Columns with translations that exist, by the names of their systems, as in ``{"old":
            "translation_old"}``; they stand after what ``lab`` translates.
        text: Column of the texts.
        reference: Column of the reference translations; ``"auto"`` takes ``reference`` if the table has it; None for
            no references.
        source_lang: Column of the languages of the texts, or a code for all of them.
        target_lang: Column of the languages of the translations, or a code for all of them.
        settings: Parameters of ``Client.translate`` by the name of the setting, the one to compare with first, as in
            ``{"plain": {}, "keywords": {"keywords": ["API"]}, "context": {"context": "A manual."}}``; each service
            translates with each of them.
        glossary: Terms that must be kept: a list of terms that stay unchanged, or for each source term its accepted
            translations, as in ``{"会議室": ["meeting room", "conference room"]}``.
        back: Whether translations are translated back.
        scorers: Functions by name from the lists of texts, translations and references to one number for each, as of
            COMET. ``{"comet": f}`` gives the column ``score_comet``, and its mean in the summary. Without references,
            the third list is empty texts. Answers are kept in the store by the name and the texts: give a changed
            function another name.
        speed: Number of texts of each direction and system for the time to the first word of a stream, warmed up, one
            call at a time; 0 measures none.
        speed_concurrency: As for :func:`round_trip`.
        store: Where results are kept and reused; None for the user's own store.
        concurrency: Maximum of calls at once.
        executor: A ``dask.distributed.Client`` whose workers make the calls, as for :func:`speechlab.batch.run`.
        give_up_after_s: As for :func:`speechlab.batch.run`.
        progress: As for :func:`round_trip`.
        title: Title of the report.
        **options: Parameters of ``Client.translate`` for all settings: keywords, context, model.

    Raises:
        InvalidRequestError: A column is missing, or an argument is not allowed.
        AuthenticationError: The service refuses the API key.
        APIConnectionError: No service can be reached.
    """
    import pandas as pd

    frame, (text, source_lang, target_lang, *others) = columns_of(
        frame, text=text, source_lang=source_lang, target_lang=target_lang, reference=reference
    )
    reference = next(iter(others), None)
    had = existing_of(frame, "hypotheses", hypotheses)
    outputs = {name: frame[column].astype("string") for name, column in had.items()}
    frame = frame.drop(columns=list(TRANSLATION.intersection(had.values())))
    keep_free(frame, TRANSLATION)
    own_scores = named_functions(scorers, "scorers", SCORE, frame.columns)
    columns = Columns(text, reference or "", source_lang, target_lang)
    terms = as_glossary(glossary)
    clock = clock_of(speed, speed_concurrency, "texts, or 0 for none", progress)
    systems = systems_asked(lab, settings, options, _SETTINGS, had, back=back)
    several = len(systems) + len(had) > 1 or (bool(systems) and "" not in systems)
    running: dict[str, Any] = {"store": store, "give_up_after_s": give_up_after_s}
    running |= {"concurrency": concurrency, "executor": executor}
    running["progress"] = stage_of(progress, "translate")
    parts, batches, lost = [], [], []
    asked, gone = _asked(systems, frame, columns, running, progress)
    for name, done in asked.items():
        client, given = systems[name]
        batches.append(done)
        rows = measured(done.reset_index(drop=True), columns, terms)
        if back:
            how = {**running, "progress": stage_of(progress, "translate, back")}
            how |= {key: given[key] for key in ("model",) if key in given}
            returned, why = _back(client, rows, columns, how)
            whose = f" of {name}" if name else ""
            lost += [f"Translations{whose} were not translated back: {why}"] if why else []
            batches += [] if returned is None else [returned]
            rows = with_back(rows, _places(rows, returned), columns)
        parts.append(rows.assign(system=name) if several else rows.set_axis(done.index))
    for name, texts in outputs.items():
        own = frame.assign(translation=texts, processing_s=float("nan"), **existing_outputs(texts))
        rows = measured(own.reset_index(drop=True), columns, terms)
        parts.append(rows.assign(system=name) if several else rows.set_axis(frame.index))
    unasked = [_unasked(frame, columns, name, why) for name, why in gone.items()]
    table = pd.concat([*parts, *unasked], ignore_index=True) if several else parts[0]
    table, unscored = scored_translations(table, own_scores, columns, store)
    notes = [*unscored, *told_gone(gone), *([] if reference else _without_references(systems, back=back))]
    there = {name: systems[name] for name in asked}
    timed, untimed = timed_or_why(lambda: timed_translations(there, frame, columns, *clock), no_times())
    notes += [*lost, *untimed]
    named = {"systems": [*systems, *had] if several else [], "glossary": terms}
    tell_failed(table, "The report's table has them, with status 'error'")
    return Report.of(
        translation_report(
            title,
            table,
            summarized(table, columns, timed),
            columns,
            terms=kept_terms(table, columns, terms) if terms else None,
            speed=timed,
            record=record_of("translation", store, *batches, back=back, speed=clock[0], **named),
            notes=notes,
        )
    )


def _without_references(systems: Mapping[str, tuple[Client, dict[str, Any]]], *, back: bool) -> list[str]:
    """The notes on a comparison without references."""
    if not back:
        told = "What systems lose was not measured: that takes references, or translations back."
        return [told] if "" not in systems else []
    return [_OWN_WAY_BACK] if len({id(client) for client, _ in systems.values()}) > 1 else []


def _unasked(frame: pd.DataFrame, columns: Columns, name: str, why: str) -> pd.DataFrame:
    """Return failed rows for a system that could not be asked."""
    rows = frame.assign(translation=None, processing_s=float("nan"), status="error", error=why)
    return measured(rows.reset_index(drop=True), columns, {}).assign(system=name)


def _asked(
    systems: Mapping[str, tuple[Client, dict[str, Any]]],
    rows: pd.DataFrame,
    columns: Columns,
    running: dict[str, Any],
    progress: object,
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Tell the estimate, and have each system translate; also the reasons of those that could not be asked."""
    text, _, source, target = columns
    way: dict[str, Any] = {"source_lang": batch.Column(source), "target_lang": batch.Column(target)}
    way["store"] = running["store"]
    plans = [
        partial(batch.plan_translation, rows, lab, text=text, **way, **given)
        for lab, given in systems.values()
    ]
    if plans:
        tell_estimate(progress, "translate", plans)
    return asked_of_each(
        {name: client for name, (client, _) in systems.items()},
        lambda name, client: _translated(client, rows, columns, {**running, **systems[name][1]}),
    )


def _translated(lab: Client, rows: pd.DataFrame, columns: Columns, how: Mapping[str, Any]) -> pd.DataFrame:
    text, _, source, target = columns
    with batch.failures_told_elsewhere():
        return batch.translate(
            rows, lab, text=text, source_lang=batch.Column(source), target_lang=batch.Column(target), **how
        )


def _back(
    lab: Client, rows: pd.DataFrame, columns: Columns, how: Mapping[str, Any]
) -> tuple[pd.DataFrame | None, str | None]:
    """The back-translations of translated rows, or None; and the reason if the service could not be asked."""
    came = rows[rows["translation"].notna()]
    if not len(came):
        return None, None
    _, _, source, target = columns
    way = Columns("translation", "", target, source)
    try:
        return _translated(lab, came, way, {**how, "prefix": "back_"}), None
    except UNUSABLE as error:
        return None, str(error)


def _places(rows: pd.DataFrame, returned: pd.DataFrame | None) -> pd.DataFrame:
    """The back-translations at the positions of their rows."""
    names = ["back_translation", "back_error"]
    return rows.head(0).reindex(columns=names) if returned is None else returned[names]
