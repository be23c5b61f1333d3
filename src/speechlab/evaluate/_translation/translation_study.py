"""The study of translations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab._brief import shorten_tracebacks
from speechlab._pandas import pd
from speechlab.evaluate._advice.choice import MARGIN
from speechlab.evaluate._repeat import record_request
from speechlab.evaluate._report import Report
from speechlab.evaluate._speech.batch_sizes import OtherBatches
from speechlab.evaluate._speech.costs import CHARACTERS, resolve_prices
from speechlab.evaluate._speech.drift import describe_days, describe_drift, describe_time_drift
from speechlab.evaluate._speech.scorers import SCORE_PREFIX, Scorer, check_user_functions
from speechlab.evaluate._speech.speed import (
    build_empty_stream_table,
    build_timing_plan,
    time_or_explain,
    time_translations,
)
from speechlab.evaluate._study_arguments import (
    check_margin_and_baseline,
    check_reserved_columns,
    resolve_columns,
)
from speechlab.evaluate._study_columns import TRANSLATION
from speechlab.evaluate._systems import (
    combine_services_and_settings,
    describe_unreachable_services,
    process_in_turns,
    resolve_existing_outputs,
    to_status_columns,
)
from speechlab.evaluate._translation.translation_measures import (
    Columns,
    add_back_translations,
    add_translation_scores,
    count_glossary_terms,
    measure_translations,
    summarize_translations,
    to_glossary,
)
from speechlab.evaluate._translation.translation_report import build_translation_report
from speechlab.evaluate._writing.record import (
    RunOptions,
    StageProgress,
    announce_estimate,
    build_record,
    warn_failures,
)

if TYPE_CHECKING:
    from speechlab.batch import Price
    from speechlab.client import Client
    from speechlab.store import Store


_SETTINGS = (
    "parameters of Client.translate for each name, as in {'plain': {}, 'keywords': {'keywords': ['API']}}"
)
_OWN_WAY_BACK = (
    "Each service translated its own translations back, so that chrF of the way back says more about settings of one "
    "service than about which service is better."
)


@shorten_tracebacks
@record_request
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
    other_batch_size: int | None = None,
    scorers: Mapping[str, Scorer] | None = None,
    margin: float = MARGIN,
    baseline: str | None = None,
    prices: Price | Mapping[str, Price] | None = None,
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
    and with a glossary the terms that were kept. Several services or settings are compared in pairs, text by text. If
    a service cannot be asked, its rows fail, the notes give the reason, and the other services continue.

    Args:
        lab: The client; or several by name, as in ``{"ours": lab, "theirs": other}``.
            None scores the translations of ``hypotheses`` alone.
        frame: One row for each text, with the columns named below.
        hypotheses: Columns with translations that exist, by the names of their systems, as in ``{"old":
            "translation_old"}``; they stand after what ``lab`` translates.
        text: Column of the texts.
        reference: Column of the reference translations; ``"auto"`` takes ``reference`` if the table has it; None for
            no references.
        source_lang: Column of the languages of the texts, or a code for all of them.
        target_lang: Column of the languages of the translations, or a code for all of them.
        settings: Parameters of ``Client.translate`` by the name of the setting, as in
            ``{"plain": {}, "keywords": {"keywords": ["API"]}, "context": {"context": "A manual."}}``; each service
            translates with each of them.
        glossary: Terms that must be kept: a list of terms that stay unchanged, or for each source term its accepted
            translations, as in ``{"会議室": ["meeting room", "conference room"]}``.
        back: Whether translations are translated back.
        other_batch_size: Size of batches with which the functions of systems in batches (``sl.system(…,
            translate_batch=f)``) are asked again. ``report.notes`` say how many texts that changes.
        scorers: Functions by name from the lists of texts, translations and references to one number for each, as for
            COMET. ``{"comet": f}`` gives the column ``score_comet``, and its mean in the summary. Without references,
            the third list is empty texts. Answers are kept in the store by the name and the texts: give a changed
            function another name.
        margin: Difference of chrF, in points, within which systems are level: the answer says so if the 95% interval
            is inside.
        baseline: The system that is in use. The answer is to keep it where no other is shown to be better.
        prices: What each system charges, as for :func:`round_trip`, by the characters of the texts.
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
    frame, (text, source_lang, target_lang, *optional) = resolve_columns(
        frame, text=text, source_lang=source_lang, target_lang=target_lang, reference=reference
    )
    reference = next(iter(optional), None)
    existing = resolve_existing_outputs(frame, hypotheses)
    outputs = {name: frame[column].astype("string") for name, column in existing.items()}
    frame = frame.drop(columns=list(TRANSLATION.intersection(existing.values())))
    check_reserved_columns(frame, TRANSLATION)
    own_scores = check_user_functions(scorers, "scorers", SCORE_PREFIX, frame.columns)
    columns = Columns(text, reference or "", source_lang, target_lang)
    terms = to_glossary(glossary)
    clock = build_timing_plan(speed, speed_concurrency, "texts, or 0 for none", progress)
    systems = combine_services_and_settings(lab, settings, options, _SETTINGS, existing, back=back)
    others = OtherBatches(systems, other_batch_size)
    several = len(systems) + len(existing) > 1 or (bool(systems) and "" not in systems)
    claims = check_margin_and_baseline(margin, baseline, [*systems, *existing])
    claims |= resolve_prices(prices, [*systems, *existing], CHARACTERS)
    run = RunOptions(title, store, concurrency, executor, give_up_after_s, progress)
    by_system, unreachable = _request_translations(systems, frame, columns, run)
    changes = others.describe_changes(
        by_system,
        "translation",
        lambda asked: _translate_in_turns(asked, frame, columns, run, "other batches"),
    )
    batches, reached = list(by_system.values()), {name: systems[name] for name in by_system}
    by_system |= _build_rows_without_calls(frame, outputs, unreachable)
    measured = {
        name: measure_translations(translated.reset_index(drop=True), columns, terms)
        for name, translated in by_system.items()
    }
    returned, lost = _translate_back_in_turns(reached if back else {}, measured, columns, run)
    tables = []
    for name, rows in measured.items():
        if back and name in reached:
            batches.append(returned.get(name, pd.DataFrame()))
            rows = add_back_translations(rows, batches[-1], columns)  # noqa: PLW2901 - the same rows
        tables.append(rows.assign(system=name) if several else rows.set_axis(by_system[name].index))
    table = pd.concat(tables, ignore_index=True) if several else tables[0]
    table, unscored = add_translation_scores(table, own_scores, columns, store)
    calls, untimed = time_or_explain(
        lambda: time_translations(reached, frame, columns, clock), build_empty_stream_table()
    )
    notes = [*unscored, *changes, *describe_unreachable_services(unreachable)]
    notes += [] if reference else _list_missing_reference_notes(systems, back=back)
    notes += [*_list_notes_on_way_back(lost), *untimed, *_list_notes_on_time(table, columns)]
    recorded = {"systems": [*systems, *existing] if several else [], "glossary": terms, **claims}
    warn_failures(table, "The report's table has them, with status 'error'")
    return Report.of(
        build_translation_report(
            title,
            table,
            summarize_translations(table, columns, calls),
            columns,
            terms=count_glossary_terms(table, columns, terms),
            speed=calls,
            record=build_record("translation", store, *batches, back=back, speed=clock[0], **recorded),
            notes=notes,
        )
    )


def _build_rows_without_calls(
    frame: pd.DataFrame, outputs: Mapping[str, pd.Series[Any]], unreachable: Mapping[str, str]
) -> dict[str, pd.DataFrame]:
    """Return the rows of outputs that exist, and of services that cannot be reached."""
    unknown = float("nan")
    existing = {
        name: frame.assign(translation=texts, processing_s=unknown, **to_status_columns(texts))
        for name, texts in outputs.items()
    }
    failed = {
        name: frame.assign(translation=None, processing_s=unknown, status="error", error=why)
        for name, why in unreachable.items()
    }
    return existing | failed


def _list_notes_on_way_back(lost: Mapping[str, str]) -> list[str]:
    """Return why translations of a system were not translated back."""
    return [
        f"Translations{f' of {name}' if name else ''} were not translated back: {why}"
        for name, why in lost.items()
    ]


def _list_notes_on_time(table: pd.DataFrame, columns: Columns) -> list[str]:
    """Return what changed during the calls, and which rows are of another day."""
    directions = list(columns[2:])
    drift = describe_drift(table, "chrf", None, directions) if "chrf" in table.columns else []
    return [*drift, *describe_time_drift(table, "processing_s", directions), *describe_days(table)]


def _list_missing_reference_notes(
    systems: Mapping[str, tuple[Client, dict[str, Any]]], *, back: bool
) -> list[str]:
    """Return the notes on a comparison without references."""
    if not back:
        note = "What systems lose was not measured: that takes references, or translations back."
        return [note] if "" not in systems else []
    return [_OWN_WAY_BACK] if len({id(client) for client, _ in systems.values()}) > 1 else []


def _request_translations(
    systems: Mapping[str, tuple[Client, dict[str, Any]]],
    rows: pd.DataFrame,
    columns: Columns,
    run: RunOptions,
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Report the estimate, and have each system translate; also the reasons of those that could not be asked."""
    text, _, source, target = columns
    request: dict[str, Any] = {"source_lang": batch.Column(source), "target_lang": batch.Column(target)}
    request["store"] = run.store
    plans = [
        partial(batch.plan_translation, rows, lab, text=text, **request, **arguments)
        for lab, arguments in systems.values()
    ]
    if plans:
        announce_estimate(run.progress, "translate", plans)
    return _translate_in_turns(systems, rows, columns, run)


def _translate_in_turns(
    systems: Mapping[str, tuple[Client, dict[str, Any]]],
    rows: pd.DataFrame,
    columns: Columns,
    run: RunOptions,
    detail: str = "",
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Have each system translate; also the reasons of those that could not be asked."""
    how = run.to_batch_arguments("translate", detail)
    return process_in_turns(
        {
            name: _build_request(client, rows, columns, {**how, **arguments})
            for name, (client, arguments) in systems.items()
        },
        needed=not detail,
    )


def _build_request(
    lab: Client, rows: pd.DataFrame, columns: Columns, options: Mapping[str, Any]
) -> batch.TableRequest:
    """Return the request for the translations of a table."""
    text, _, source, target = columns
    languages = {"source_lang": batch.Column(source), "target_lang": batch.Column(target)}
    return batch.TableRequest("translate", lab, rows, {"text": text, **languages, **options})


def _translate_back_in_turns(
    systems: Mapping[str, tuple[Client, dict[str, Any]]],
    translated: Mapping[str, pd.DataFrame],
    columns: Columns,
    run: RunOptions,
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Return the back-translations of each system, and why others could not be asked."""
    _, _, source, target = columns
    requests = {}
    for name, (client, arguments) in systems.items():
        rows = translated[name][translated[name]["translation"].notna()]
        model = {"model": arguments["model"]} if "model" in arguments else {}
        options = {**run.to_batch_arguments("translate", "back"), **model, "prefix": "back_"}
        if len(rows):
            requests[name] = _build_request(client, rows, Columns("translation", "", target, source), options)
    return process_in_turns(requests, needed=False)
