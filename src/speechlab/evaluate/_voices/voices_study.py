"""The study of voices: spoken, recognized, scored, measured, timed, and put in order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from speechlab import batch
from speechlab._brief import shorten_tracebacks
from speechlab._pandas import pd
from speechlab._require import format_install_command
from speechlab.display import format_count
from speechlab.errors import MissingDependencyError
from speechlab.evaluate._advice.choice import MARGIN
from speechlab.evaluate._cast import build_recordings_client, request_and_pair_voices, resolve_engine_per_pair
from speechlab.evaluate._repeat import record_request
from speechlab.evaluate._report import Report
from speechlab.evaluate._round_trip import synthesize_recognize_and_score
from speechlab.evaluate._speech.costs import CHARACTERS, resolve_prices
from speechlab.evaluate._speech.scorers import (
    check_user_functions,
    ensure_open_store,
    load_or_compute_answers,
)
from speechlab.evaluate._speech.speed import build_timing_plan
from speechlab.evaluate._study_arguments import (
    check_count,
    check_margin_and_baseline,
    check_reserved_columns,
    check_whole_number,
    parse_language_code,
    resolve_columns,
)
from speechlab.evaluate._study_columns import VOICES
from speechlab.evaluate._systems import resolve_services
from speechlab.evaluate._voice_ranks.voice_order import rank_voices
from speechlab.evaluate._voices.voices_report import (
    RATED_PREFIX,
    build_voices_report,
    list_voice_key_columns,
)
from speechlab.evaluate._writing.record import (
    RunOptions,
    StageProgress,
    build_record,
    build_stage_progress,
    warn_failures,
)
from speechlab.metrics import speech_measures

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from speechlab.batch import Price, Progress
    from speechlab.client import Client
    from speechlab.contract import Voice
    from speechlab.store import Store
    from speechlab.text import Lexicon


# A function from the samples of a clip (mono, float32 in [-1, 1]) and their rate in Hz.
ClipMeasure: TypeAlias = Callable[["NDArray[np.float32]", int], float]
# Default number of clips of each voice and language that DNSMOS rates.
_RATED = 3
# Clips that are measured between two steps of the bar.
_AT_ONCE = 4
_CODES = "speechlab: language codes"


@shorten_tracebacks
@record_request
def voices(
    lab: Client | Mapping[str, Client] | None,
    frame: pd.DataFrame,
    voices: Iterable[Voice | str] | Voice | str | Mapping[str, Any] | None = None,
    *,
    text: str = "text",
    language: str = "language",
    audio: str = "audio",
    voice: str = "voice",
    takes: int = 1,
    temperature: float | None = None,
    speed: int = 6,
    speed_concurrency: int | Sequence[int] = 1,
    dnsmos: int | None = None,
    measures: Mapping[str, ClipMeasure] | None = None,
    respell: Lexicon | None = None,
    engines: Mapping[str, Any] | None = None,
    recognizer: Client | None = None,
    margin: float = MARGIN,
    prices: Price | Mapping[str, Price] | None = None,
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    executor: Any = None,
    give_up_after_s: float | None = None,
    progress: StageProgress = True,
    title: str = "Which voice?",
    **options: Any,
) -> Report:
    """Recommend a voice: intelligibility, speed and sound of each voice, with the certainty of the ranking.

    All voices speak the same sentences, and one recognizer transcribes them. The voices of a language are ranked by
    error rate (Japanese by readings), with groups that do not differ significantly (:func:`speechlab.metrics.rank`).
    Errors of a voice are separated from errors that occur with every voice (:func:`speechlab.metrics.attribute`).
    Voices of several services are ranked together, as ``alloy of theirs``. If a service cannot be asked, its rows
    fail, the notes give the reason, and the other services continue.

    Args:
        lab: The client; or several by name, as in ``{"ours": lab, "theirs": other}``.
            None ranks recordings that exist, of the columns ``audio`` and ``voice``; only the recognizer is asked.
        frame: One row for each sentence; for recordings that exist, one for each recording.
        voices: Voices or their ids; None for all voices that speak a sentence's language. For several services a
            mapping by name, as in ``{"ours": "heart", "theirs": ["alloy", "nova"]}``.
        text: Column of the sentences; a repeated sentence counts once.
        language: Column of their languages, or a code for all of them.
        audio: For ``lab=None``, the column of the recordings.
        voice: Column of their voices or systems.
        takes: Number of times that each voice speaks each sentence. With several takes, the variance of voices with
            temperature is estimated.
        temperature: Temperature, for voices that have one; None for the default of the voice.
        speed: Number of sentences of each language for the speed of each voice; 0 measures none.
        speed_concurrency: As for :func:`round_trip`.
        dnsmos: Number of clips of each voice and language that DNSMOS rates, at some seconds each; None for three if
            the extra ``quality`` is installed, 0 for none.
        measures: Functions by name from the samples of a clip (mono, float32 in [-1, 1]) and their rate in Hz to a
            number, such as a network that predicts ratings (UTMOS, NISQA). ``{"utmos": f}`` gives the column
            ``rated_utmos``, with its median for each voice. Answers are kept in the store by the name and the sound:
            give a changed function another name.
        respell: As for :func:`round_trip`.
        engines: The engine of each voice, by id. None takes the part of the voice's short name before a colon
            (``kokoro: jf_alpha``), or else, with several services, the name of the service. For several services a
            mapping by name, as in ``{"theirs": {"alloy": "tts-1"}, "ours": None}``.
        recognizer: As for :func:`round_trip`.
        margin: Difference of error rates, in points (of 100), within which voices are level: the answer says so if
            the 95% interval of their difference lies inside.
        prices: As for :func:`round_trip`. The answer is then to take a cheaper voice that is shown to make at most
            ``margin`` errors in 100 words more.
        store: As for :func:`round_trip`.
        concurrency: As for :func:`round_trip`.
        executor: A ``dask.distributed.Client`` whose workers make the calls, as for :func:`speechlab.batch.run`.
        give_up_after_s: As for :func:`speechlab.batch.run`.
        progress: As for :func:`round_trip`.
        title: Title of the report.
        **options: Parameters of ``Client.transcribe``.

    Raises:
        InvalidRequestError: A column is missing, an argument is not allowed, or no voice speaks any of the
            sentences.
        AuthenticationError: The service refuses the API key.
        APIConnectionError: No service can be reached.
    """
    frame, (text, language) = resolve_columns(frame, text=text, language=language)
    if lab is None:
        lab, frame, speed = *build_recordings_client(frame, text, language, audio, voice, recognizer), 0
    services = resolve_services(lab)
    check_reserved_columns(frame, VOICES)
    clock = build_timing_plan(speed, speed_concurrency, "texts for each voice, or 0 for none", progress)
    rated = _resolve_rated_count(dnsmos)
    functions = check_user_functions(measures, "measures", RATED_PREFIX)
    takes = check_whole_number("takes", takes, 1)
    claims = check_margin_and_baseline(margin, None, ())
    claims |= resolve_prices(prices, list(services), CHARACTERS)
    sentences = frame[~frame[[language, text]].map(repr).duplicated()]  # cells may be no texts, such as lists
    cast = request_and_pair_voices(services, sentences, voices, language, store, give_up_after_s)
    cast = cast._replace(
        pairs=_add_ids_to_shared_names(cast.pairs).assign(
            take=0, engine=resolve_engine_per_pair(cast, engines)
        )
    )
    run = RunOptions(title, store, concurrency, executor, give_up_after_s, progress)
    columns = [*sentences.columns, "take", "engine", *(["system"] if "" not in services else [])]
    scored, facts, batches = synthesize_recognize_and_score(
        cast,
        services,
        columns,
        text,
        language,
        run,
        recognizer=recognizer,
        clock=clock,
        options=options,
        takes=takes,
        temperature=temperature,
        respell=respell,
    )
    settings = {"takes": takes, "temperature": temperature, "speed": clock[0], "dnsmos": rated, **claims}
    record = build_record("voices", store, *batches, **settings, **options)
    table = measure_sounds(
        scored, text, language, rated, build_stage_progress(progress, "quality"), functions, store
    )
    order = rank_voices(table, text, language)
    notes = [*order.notes, *facts.pop("notes")]
    if repeats := len(frame) - len(sentences):
        repeated = format_count(repeats, "row repeats a sentence", "rows repeat sentences")
        notes.append(f"{repeated} of the table; each sentence counts once.")
    warn_failures(table)
    return Report.of(
        build_voices_report(title, table, text, language, order, notes=notes, record=record, **facts)
    )


def _resolve_rated_count(dnsmos: object) -> int:
    """Return how many clips are rated; what that needs is missed before anything is spoken."""
    missing = [name for name in ("onnxruntime", "speechmos") if find_spec(name) is None]
    if dnsmos is None:
        return 0 if missing else _RATED
    rated = check_count("dnsmos", dnsmos, "clips for each voice, or 0 for none")
    if rated and missing:
        what = f"dnsmos={rated} needs {' and '.join(missing)}"
        message = f"{what}; install it with: {format_install_command('quality')}; or give dnsmos=0"
        raise MissingDependencyError(message)
    return rated


def _add_ids_to_shared_names(pairs: pd.DataFrame) -> pd.DataFrame:
    """Add a part of the id to short names that several voices share, because figures identify voices by name."""
    keys = ["system"] if "system" in pairs.columns else []
    names = pairs[[*keys, "voice", "voice_name"]].dropna().drop_duplicates()
    twice = set(names.loc[names.duplicated([*keys, "voice_name"], keep=False), "voice"])
    if not twice:
        return pairs
    full = pairs["voice_name"] + " [" + pairs["voice"].str[:8] + "]"
    return pairs.assign(voice_name=pairs["voice_name"].mask(pairs["voice"].isin(twice), full))


def _cache_measure(name: str, measure: ClipMeasure, store: Store) -> ClipMeasure:
    """Return a measure whose answers are kept by its name and the sound."""

    def load_or_measure(samples: NDArray[np.float32], rate: int) -> float:
        sound = hashlib.sha256(samples.tobytes()).hexdigest()
        request = {"measure": name, "sound": sound, "sample_rate": rate}
        computed: list[float] = []

        def compute_measure(_: list[int]) -> list[float]:
            computed.append(measure(samples, rate))
            return computed

        (answer,) = load_or_compute_answers(store, [request], compute_measure)
        return computed[0] if answer is None else answer

    return load_or_measure


def measure_sounds(
    table: pd.DataFrame,
    text: str,
    language: str,
    rated: int,
    progress: Progress,
    measures: Mapping[str, ClipMeasure],
    store: Store | str | None,
) -> pd.DataFrame:
    """Measure the clips of a study, with a bar. DNSMOS rates ``rated`` clips of each voice and language."""
    codes = table[language].map(parse_language_code)
    rows = table.assign(**{_CODES: codes}).drop(columns=["duration_s"])
    usable = table["audio"].notna()
    places = rows[usable].groupby(list_voice_key_columns(rows, language), observed=True).cumcount()
    first = places.index[places < rated]
    tables = []
    place: AbstractContextManager[Store | None] = ensure_open_store(store) if measures else nullcontext(None)
    with place as keep, batch.show_progress(progress, len(rows), "quality", unit="clip") as tell:
        functions = {
            name: _cache_measure(name, measure, keep)
            for name, measure in measures.items()
            if keep is not None
        }
        for group, with_dnsmos in ((rows.loc[first], bool(rated)), (rows.drop(index=first), False)):
            for begin in range(0, len(group), _AT_ONCE):
                clips = group.iloc[begin : begin + _AT_ONCE]
                options: Any = {"with_dnsmos": with_dnsmos, "measures": functions}
                tables.append(speech_measures(clips, text=text, language=_CODES, **options))
                tell(len(clips))
    measured_clips = pd.concat(tables).sort_index()
    lengths = table["duration_s"].astype("Float64").fillna(measured_clips["duration_s"])
    columns = [name for name in measured_clips.columns if name not in {_CODES, "duration_s"}]
    return measured_clips[columns].assign(duration_s=lengths)
