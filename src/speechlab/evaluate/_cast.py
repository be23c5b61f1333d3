"""Voices of a study: the chosen voices, and the texts of each voice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._arguments import build_argument_error, require_columns
from speechlab._pandas import pd
from speechlab.audio import AudioClip, to_clip
from speechlab.client import (
    AsyncClient,
    Client,
    VoiceCatalogue,
    copy_with_group,
    replace_store_if_replaying,
    start_work,
    system,
    wait_for_result,
)
from speechlab.contract import Voice
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError, SpeechLabError
from speechlab.evaluate._study_arguments import (
    check_client,
    describe_missing_language,
    find_language_codes,
    parse_language_code,
)
from speechlab.evaluate._study_columns import INPUTS, REASON
from speechlab.evaluate._systems import ask_each_service, describe_unreachable_services
from speechlab.text import get_language_name, list_language_codes, parse_primary_language

if TYPE_CHECKING:
    from speechlab.store import Store


def speaks(voice: Voice, language: str) -> bool:
    """Return whether a voice's free-text ``language`` names a language code.

    Example:
        >>> speaks(sl.Voice(id="1", language="Japanese, English"), "ja-JP")
        True
    """
    return parse_primary_language(language) in list_language_codes(voice.language)


def voice_name(voice: Voice) -> str:
    """Return a short name: the brackets at the end of the description, or else the beginning of the description.

    Example:
        >>> voice_name(sl.Voice(id="1", description="A calm voice (mei)"))
        'mei'
    """
    return voice.short_name


def request_catalogue(
    client: Client, store: Store | str | None, give_up_after_s: float | None = None
) -> VoiceCatalogue:
    """Return the voices of a service, with the waiting times of a batch."""
    check_client("lab", client, "; pass several as a dict by name")

    async def request_voices(lab: AsyncClient) -> VoiceCatalogue:
        patient, group = copy_with_group(lab, concurrency=1, give_up_after_s=give_up_after_s)
        try:
            return await patient.voices()
        finally:
            group.end()

    return wait_for_result(start_work(replace_store_if_replaying(client, store), request_voices))


def resolve_voices(catalogue: VoiceCatalogue, voices: object, service: str) -> list[Voice]:
    """Return the requested voices: one or several voices, ids or names; None for all."""
    if voices is None:
        return list(catalogue)
    is_several = isinstance(voices, Iterable) and not isinstance(voices, str | Voice)
    chosen: list[Voice] = []
    for voice in voices if is_several else [voices]:  # type: ignore[attr-defined]  # an Iterable, as seen above
        if not isinstance(voice, str | Voice):
            message = f"voices holds {voice!r}; give voices of the catalogue, or their ids or names"
            raise InvalidRequestError(message, parameter="voices")
        try:
            chosen.append(catalogue[voice] if isinstance(voice, str) else voice)
        except InvalidRequestError as error:
            if service:  # of several, the one without the voice
                error.args = (f"{service}: {error.message}", *error.args[1:])
            raise
    return list({voice.id: voice for voice in chosen}.values())  # a repeated voice speaks once


def build_recordings_client(
    frame: pd.DataFrame, text: str, language: str, audio: str, voice: str, recognizer: object
) -> tuple[Client, pd.DataFrame]:
    """Return recordings that exist as a client whose voices have spoken them, and the table without their columns."""
    check_client("recognizer", recognizer, "; recordings that exist need one")
    frame = require_columns(frame, audio, voice)
    sounds: dict[tuple[str, str], Any] = {}
    codes: dict[str, set[str]] = {}
    digest = hashlib.sha256()
    for sentence, code, sound, name in zip(
        *(frame[column] for column in (text, language, audio, voice)), strict=True
    ):
        sounds.setdefault((str(sentence), str(name)), sound)
        codes.setdefault(str(name), set()).add(str(parse_language_code(code) or code))
        with suppress(SpeechLabError, OSError, TypeError):  # reported when it is asked for
            digest.update(f"{sentence} {name}".encode("utf-8", "replace") + to_clip(sound).samples.tobytes())

    def get_recording(text: str, voice: str) -> AudioClip:
        if (text, voice) not in sounds:
            raise InvalidRequestError(
                f"the table has no recording of this text by {voice!r}", parameter=audio
            )
        return to_clip(sounds[text, voice])

    languages = {name: ", ".join(map(get_language_name, sorted(each))) for name, each in codes.items()}
    lab = system(
        "recordings",
        synthesize=get_recording,
        voices=languages,
        version=digest.hexdigest()[:16],
        concurrency=8,
    )
    texts = frame[~frame[[language, text]].map(repr).duplicated()]
    return lab, texts.drop(columns=[column for column in frame.columns if column in {audio, voice, *INPUTS}])


class Cast(NamedTuple):
    """Texts with their voices.

    ``pairs`` has a row for each text and voice; rows without a voice have the reason in the column ``WHY``, and a
    ``status``: ``skipped`` if no voice speaks the language, ``error`` if the service could not be asked. ``gone`` has
    the reasons of such services by name.
    """

    pairs: pd.DataFrame
    services: dict[str, Client]
    catalogues: dict[str, VoiceCatalogue]
    gone: dict[str, str]

    def select_service_rows(self, name: str) -> pd.DataFrame:
        """Return the rows that a service speaks."""
        rows = self.pairs[self.pairs["voice"].notna()]
        return rows[rows["system"] == name] if name else rows

    def mark_services_unreachable(self, unreachable: Mapping[str, str]) -> Cast:
        """Return the same without services that could not be asked later, whose rows fail."""
        if not unreachable:
            return self
        services = self.pairs.get("system", pd.Series("", index=self.pairs.index))
        is_lost = services.isin(list(unreachable))
        reasons = self.pairs[REASON].mask(
            is_lost,
            services.map(dict(zip(unreachable, describe_unreachable_services(unreachable), strict=True))),
        )
        pairs = self.pairs.assign(**{REASON: reasons}, status=self.pairs["status"].mask(is_lost, "error"))
        reached = {name: client for name, client in self.services.items() if name not in unreachable}
        return self._replace(pairs=pairs, services=reached, gone={**self.gone, **unreachable})

    @property
    def rows_without_voice(self) -> pd.DataFrame:
        """Rows without a voice."""
        return self.pairs[self.pairs["status"].notna()]

    def describe_skipped_texts(self, language: str) -> list[str]:
        """Return how many texts no voice speaks, of each service, and in which languages they are."""
        notes = []
        for name in self.catalogues:
            pairs = self.pairs[self.pairs["system"] == name] if name else self.pairs
            codes = pairs.loc[pairs["status"] == "skipped", language].map(
                lambda cell: "+".join(find_language_codes(cell))
            )
            coded = codes[codes != ""]
            label = f"{name}: " if name else ""
            if len(coded):
                names = ", ".join(sorted(set(coded)))
                rows = format_count(len(coded), "row was", "rows were")
                notes.append(
                    f"{label}{rows} skipped, because none of the voices speaks the language: {names}."
                )
            if uncoded := len(codes) - len(coded):
                rows = format_count(uncoded, "row was", "rows were")
                notes.append(f"{label}{rows} skipped, because the language code is missing or not known.")
        return notes


def request_and_pair_voices(
    services: Mapping[str, Client],
    frame: pd.DataFrame,
    voices: Any,
    language: str,
    store: Store | str | None,
    give_up_after_s: float | None = None,
) -> Cast:
    """Return every text with every voice of each service that speaks its language."""
    requested = resolve_by_service(voices, services, "voices")
    catalogues, failures = ask_each_service(
        services, lambda _, client: request_catalogue(client, store, give_up_after_s)
    )
    chosen = {
        name: resolve_voices(catalogue, requested[name], name) for name, catalogue in catalogues.items()
    }
    tables = []
    for name in services:
        if name in chosen:
            table = pair_texts_with_voices(frame, chosen[name], language)
            table = table.assign(status=table["voice"].isna().map({True: "skipped", False: None}))
        else:
            (why,) = describe_unreachable_services({name: failures[name]})
            table = frame.assign(voice=None, voice_name=None, gender=None, status="error", **{REASON: why})
        tables.append(table.assign(system=name) if name else table)
    reached = {name: client for name, client in services.items() if name in catalogues}
    pairs = pd.concat(tables, ignore_index=True)
    if pairs["voice"].isna().all():
        if not failures and not any(chosen.values()):
            message = "voices names none; name one or more, or leave it out for all that speak the texts"
            raise InvalidRequestError(message, parameter="voices")
        clauses = ["no voice speaks a language of these texts; take others, or other texts"]
        for name, speakers in chosen.items():
            codes = ", ".join(sorted({speaker.language for speaker in speakers})) or "none"
            clauses.append(f"the voices{f' of {name}' if name else ''} speak: {codes}")
        clauses += [sentence.rstrip(".") for sentence in describe_unreachable_services(failures)]
        raise InvalidRequestError("; ".join(clauses), parameter="voices")
    return Cast(pairs, reached, catalogues, failures)


def resolve_by_service(value: Any, services: Mapping[str, object], argument: str) -> dict[str, Any]:
    """Return the value of an argument for each service: one value for all, or by name."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(services, value)
    if "" in services:
        message = (
            f"{argument} is by service, and lab is one client; give it without names, or clients by name"
        )
        raise InvalidRequestError(message, parameter=argument)
    if set(value) != set(services):
        message = (
            f"{argument} names {', '.join(map(repr, value)) or 'none'}, and the services are called "
            f"{', '.join(map(repr, services))}; give {argument} of each service under its name"
        )
        raise InvalidRequestError(message, parameter=argument)
    return dict(value)


def resolve_engine_per_pair(cast: Cast, engines: Mapping[str, Any] | None) -> pd.Series[str]:
    """Return the engine of each pair's voice: the given one, or the part of the voice's short name before a colon."""
    is_alone = "" in cast.catalogues
    names = dict.fromkeys([*cast.catalogues, *cast.gone])
    by_name = {"": engines} if is_alone or engines is None else resolve_by_service(engines, names, "engines")
    pairs = cast.pairs
    engine_names = pd.Series("", index=pairs.index, dtype="string")
    for service, catalogue in cast.catalogues.items():
        by_voice = by_name.get(service) or {}
        if not isinstance(by_voice, Mapping):
            raise build_argument_error(
                "engines", engines, "the engine of each voice, of several services by their names"
            )
        by_id = {catalogue[voice].id: engine for voice, engine in by_voice.items()}
        shorts = {voice.id: voice.short_name for voice in catalogue}
        prefixes = {voice: short.partition(":")[0].strip() for voice, short in shorts.items() if ":" in short}
        engines_here = pairs["voice"].map(prefixes | by_id).astype("string").fillna(service)
        if is_alone:
            return engines_here
        engine_names = engine_names.mask((pairs["system"] == service).to_numpy(dtype=bool), engines_here)
    return engine_names


def pair_texts_with_voices(frame: pd.DataFrame, chosen: Sequence[Voice], language: str) -> pd.DataFrame:
    """Return every text with every voice that speaks its language, and the texts without a voice with the reason."""
    # plain lists, because an index may contain a label twice
    codes = [find_language_codes(value) for value in frame[language]]
    tables = []
    has_voice = [False] * len(frame)
    for voice in chosen:
        fits = [bool(row) and all(speaks(voice, code) for code in row) for row in codes]
        has_voice = [has or fit for has, fit in zip(has_voice, fits, strict=True)]
        tables.append(frame[fits].assign(voice=voice.id, voice_name=voice_name(voice), gender=voice.gender))
    why = [
        f"none of the voices speaks {' and '.join(row)}" if row else describe_missing_language(cell)
        for cell, row in zip(frame[language], codes, strict=True)
    ]
    voiceless = [not has for has in has_voice]
    without_voice = frame.assign(voice=None, voice_name=None, gender=None, **{REASON: why})[voiceless]
    return pd.concat([*tables, without_voice], ignore_index=True)
