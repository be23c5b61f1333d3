"""The catalogue of voices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, overload
from weakref import WeakKeyDictionary

from speechlab._arguments import propose_name
from speechlab._pandas import pd
from speechlab.client._operations.call import HttpCall, RawResponse, Timeouts
from speechlab.client._operations.operation import build_timeouts
from speechlab.contract import TRANSLATES_HEADER, VOICES_PATH, Voice, VoiceList, parse_uuid
from speechlab.display import Html, element, end_directions, join, render_details, table
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.text import Lexicon

_MAX_MATCHES = 6
_MAX_NAMES = 20
# Minimum similarity of a name for "did you mean"; 1 is identical.
_MIN_SIMILARITY = 0.75
_SOFT_STYLE = "opacity:.74;font-size:.92em"


class VoiceCatalogue(Sequence[Voice]):
    """The voices of a service, in its order.

    A voice is found by its position, its id, or an unambiguous part of its description::

        voices[0]
        voices["0f8fad5b-d9cb-469f-a165-70867728950e"]
        voices["calm"]
        voices.find(language="ja", gender="Female")

    Example:
        >>> calm = sl.Voice(
        ...     id="53d1acf3-1ef1-5583-bcf8-dda6184fe486", description="Calm: reads books", language="ja"
        ... )
        >>> voices = VoiceCatalogue([calm])
        >>> voices["calm"] is voices[0], len(voices.find(language="en"))
        (True, 0)
    """

    def __init__(self, voices: Iterable[Voice], service: str | None = None) -> None:
        self._voices = tuple(voices)
        self._why_none = ""
        self.service = service
        """The service's own identity, or None; see ``Client.identity``."""
        self.translates: tuple[str, ...] = ()
        """Codes of the languages between which the service translates; empty if it does not say."""
        self._by_id = {_normalize_voice_id(voice.id): voice for voice in self._voices}

    def __len__(self) -> int:
        return len(self._voices)

    def __iter__(self) -> Iterator[Voice]:
        return iter(self._voices)

    def __contains__(self, value: object) -> bool:
        return value in self._voices or (isinstance(value, str) and _normalize_voice_id(value) in self._by_id)

    @overload
    def __getitem__(self, index: int | str) -> Voice: ...
    @overload
    def __getitem__(self, index: slice) -> VoiceCatalogue: ...
    def __getitem__(self, index: int | str | slice) -> Voice | VoiceCatalogue:
        if isinstance(index, str):
            return self.one(index)
        if isinstance(index, slice):
            return VoiceCatalogue(self._voices[index])
        if not callable(getattr(index, "__index__", None)):
            raise _build_type_error("a voice", index, "give a position, an id, or part of a description")
        if not -len(self) <= index < len(self):
            have = f"there are {len(self)} voices, at the positions 0 to {len(self) - 1}"
            raise NoVoiceError((self._why_none or "the catalogue is empty") if not self._voices else have)
        return self._voices[index]

    def get(self, id: str) -> Voice | None:  # noqa: A002 - the contract's name
        """Return the voice with this id, or None."""
        value: object = id
        return self._by_id.get(_normalize_voice_id(value)) if isinstance(value, str) else None

    def one(self, name: str) -> Voice:
        """Return the one voice with this id, or with this text in its description (case is ignored).

        Raises:
            InvalidRequestError: No voice or several voices match.
        """
        if not isinstance(name, str):
            raise _build_type_error("a voice", name, "give its id, or part of its description")
        voice = self.get(name)
        if voice is not None:
            return voice
        text = name.strip().casefold()
        # a description may end in the voice's name, as in "…, very fast (hibari: heart)"; a match of the name wins
        exact = [
            voice
            for voice in self._voices
            if text == voice.description.strip().casefold()
            or text in _parse_parenthesized_names(voice.description)
        ]
        matches = exact or [voice for voice in self._voices if text and text in voice.description.casefold()]
        if len(matches) == 1:
            return matches[0]
        message = self._describe_several_matches(matches) if matches else self._describe_no_match(text)
        message = f"voice {name[:60]!r} {message}"
        raise InvalidRequestError(message, parameter="voice_id", rule="2.2", code="unknown_voice_id")

    def _describe_several_matches(self, found: list[Voice]) -> str:
        """Message for a text that matches several voices: their names, with ids for names that occur twice."""
        names = [voice.short_name for voice in found]
        labels = [
            f"{voice.short_name!r}"
            if names.count(voice.short_name) == 1
            else f"{voice.short_name!r} ({voice.id})"
            for voice in found[:_MAX_MATCHES]
        ]
        more = f" and {len(found) - _MAX_MATCHES} more" if len(found) > _MAX_MATCHES else ""
        return f"fits {len(found)} voices: {', '.join(labels)}{more}; give one name or id"

    def _describe_no_match(self, wanted: str) -> str:
        """Message for a text that matches no voice: the most similar name, and the existing names."""
        if not self._voices:
            return "fits no voice; the catalogue is empty"
        by_name = {
            name: voice
            for voice in self._voices
            for name in (*_parse_parenthesized_names(voice.description), voice.short_name.casefold())
        }
        near = get_close_matches(wanted, by_name, 1, _MIN_SIMILARITY)
        hint = f"; did you mean {by_name[near[0]].short_name!r}?" if near else "; give a name or an id."
        names = [repr(voice.short_name) for voice in self._voices[:_MAX_NAMES]]
        more = f" and {len(self) - _MAX_NAMES} more" if len(self) > _MAX_NAMES else ""
        return f"fits no voice{hint} There are {', '.join(names)}{more}"

    def find(
        self,
        *,
        language: str | None = None,
        gender: str | None = None,
        streaming: bool | None = None,
        format: str | None = None,  # noqa: A002 - the contract's name
    ) -> VoiceCatalogue:
        """Return the voices that match all given criteria.

        Args:
            language: A code such as ``"ja"``; it also matches the language's name in the catalogue's free text.
            gender: ``"Male"``, ``"Female"`` or ``"Neutral"``, in any case.
            streaming: Whether at least one format streams.
            format: An output format.

        Raises:
            InvalidRequestError: A criterion is not text, or ``streaming`` is neither True nor False.
        """
        for what, value in (("language", language), ("gender", gender), ("format", format)):
            if value is not None and not isinstance(value, str):
                raise _build_type_error(what, value, "give a text, or None for all")
        if streaming is not None and not isinstance(streaming, bool):
            raise _build_type_error("streaming", streaming, "give True, False, or None for all")
        criteria = {"language": language, "gender": gender, "streaming": streaming, "format": format}
        criteria = {name: value for name, value in criteria.items() if value is not None}
        matches = VoiceCatalogue(
            voice
            for voice in self._voices
            if all(_has_criterion_value(voice, name, criteria[name]) for name in criteria)
        )
        if not matches:
            matches._why_none = self._why_none or self._describe_unmet_criteria(criteria)
        return matches

    def _describe_unmet_criteria(self, asked: dict[str, Any]) -> str:
        """Message for criteria without a match: those that no voice meets by itself, with the existing values."""
        alone = [
            name
            for name in asked
            if not any(_has_criterion_value(voice, name, asked[name]) for voice in self._voices)
        ]
        known = {
            name: {each for voice in self._voices for each in _list_criterion_values(voice, name)}
            for name in alone
        }
        have = [
            f"{name} is one of {', '.join(sorted(map(repr, known[name])))}" for name in alone if known[name]
        ]
        sought = " and ".join(f"{name}={asked[name]!r}" for name in alone or asked)
        together = "" if alone else ", though each by itself"
        return f"no voice fits {sought}{together}{'; ' if have else ''}{'; '.join(have)}"

    def to_frame(self) -> pd.DataFrame:
        """Return the same as :meth:`frame`, by the usual name of pandas."""
        return self.frame()

    def frame(self) -> pd.DataFrame:
        """Return one row for each voice: id, description, language, gender, formats, sample_rates and streaming."""
        columns = ("id", "description", "language", "gender", "formats", "sample_rates", "streaming")
        return pd.DataFrame(
            {name: [getattr(voice, name) for voice in self._voices] for name in columns}, columns=columns
        )

    def __eq__(self, other: object) -> bool:
        return self._voices == other._voices if isinstance(other, VoiceCatalogue) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._by_id))

    def __repr__(self) -> str:
        names = ", ".join(repr(voice.description or voice.id) for voice in self._voices[:_MAX_MATCHES])
        more = ", …" if len(self) > _MAX_MATCHES else ""
        return f"VoiceCatalogue({len(self)} voices: {names or self._why_none}{more})"

    def _repr_html_(self) -> str:
        properties = {
            "language": [voice.language for voice in self._voices],
            "gender": [str(voice.gender) for voice in self._voices],
            "streams": ["yes" if voice.streaming else "no" for voice in self._voices],
            "formats": [", ".join(voice.formats) for voice in self._voices],
        }
        # properties common to all voices are shown once: they do not help to choose
        common = {
            name: cells[0] for name, cells in properties.items() if len(self) > 1 and len(set(cells)) == 1
        }
        columns = {name: cells for name, cells in properties.items() if name not in common}
        names = [_render_voice(voice) for voice in self._voices]
        caption = f"{len(self)} voices"
        if common:  # a table's caption begins with its name, up to a colon
            caption += ": " + "; ".join(f"{name} {end_directions(cell)}" for name, cell in common.items())
        facts = [
            (
                voice.short_name,
                None if voice.sample_rates is None else ", ".join(map(str, voice.sample_rates)),
                element("code", voice.id),
            )
            for voice in self._voices
        ]
        hint = (
            "To hear them: ",
            element("code", "sl.widgets.VoiceExplorer(lab)"),
            ". Nothing is spoken before you press a button.",
        )
        sections = (
            table(["voice", *columns], zip(names, *columns.values(), strict=True), caption=caption),
            render_details("rates and ids", table(["voice", "rates (Hz)", "id"], facts)),
            element("div", *hint, style=_SOFT_STYLE) if self._voices else None,
        )
        return str(join("", sections))


class NoVoiceError(InvalidRequestError, IndexError):
    """A position without a voice in a catalogue; also an IndexError, as sequences raise it."""


def _render_voice(voice: Voice) -> Html:
    """Return a voice's short name, with the rest of its description below it."""
    description = voice.description.strip().removesuffix(f"({voice.short_name})").strip()
    about = (
        element("div", description, dir="auto", style=_SOFT_STYLE)
        if description and description != voice.short_name
        else None
    )
    return element("div", element("strong", voice.short_name, dir="auto"), about)


def _list_criterion_values(voice: Voice, name: str) -> Iterable[Any]:
    """Return the values of a voice for one of the criteria."""
    if name == "language":
        from speechlab.text import list_language_codes

        return list_language_codes(voice.language)
    if name == "gender":
        return (voice.gender.casefold(),)
    return voice.formats if name == "format" else (voice.streaming,)


def _has_criterion_value(voice: Voice, name: str, value: Any) -> bool:
    if name == "language":
        from speechlab.text import parse_primary_language

        value = parse_primary_language(value)
    elif name == "gender":
        value = value.casefold()
    return value in _list_criterion_values(voice, name)


def _build_type_error(what: str, value: object, advice: str) -> InvalidRequestError:
    message = f"{what} is asked for by a {type(value).__name__}; {advice}"
    return InvalidRequestError(message, parameter="voice_id", rule="2.1")


def _normalize_voice_id(id: str) -> str:  # noqa: A002 - the contract's name
    return parse_uuid(id) or id


def _parse_parenthesized_names(description: str) -> set[str]:
    match = re.search(r"\(([^()]+)\)\s*$", description.casefold())
    return {match[1].strip(), match[1].rpartition(":")[2].strip()} if match else set()


# Lexicons whose voices were looked for in a catalogue.
_checked_lexicons: WeakKeyDictionary[VoiceCatalogue, set[Lexicon]] = WeakKeyDictionary()


def list_lexicon_names(voice: Voice) -> tuple[str, ...]:
    """Return the id and the names by which the entries of a lexicon name a voice."""
    return voice.id, voice.short_name, voice.short_name.rpartition(":")[2].strip()


def describe_absent_voices(lexicon: object, catalogue: VoiceCatalogue) -> str:
    """Return the warning about entries of voices that the service does not have, once; empty if there are none."""
    from speechlab.text import Lexicon  # slow to import

    checked = _checked_lexicons.setdefault(catalogue, set())
    if not isinstance(lexicon, Lexicon) or lexicon in checked:  # what is none is refused later
        return ""
    checked.add(lexicon)
    names = {name.casefold(): name for voice in catalogue for name in list_lexicon_names(voice)}
    absent = dict.fromkeys(entry.voice for entry in lexicon if entry.voice.casefold() not in {"", *names})
    if not names or not absent:
        return ""
    first = next(iter(absent))
    listed = ", ".join(repr(name) for name in list(absent)[:_MAX_MATCHES])
    more = f" and {len(absent) - _MAX_MATCHES} more" if len(absent) > _MAX_MATCHES else ""
    return (
        f"the lexicon has entries of voices that this service does not have, which change nothing: {listed}{more}"
        f"{propose_name(names.values(), first)}"
    )


# Bytes: the catalogue of some ten thousand voices.
_CATALOGUE_LIMIT = 8 << 20


def build_voices_call(timeout: float | None) -> HttpCall:
    """``GET /tts/voices`` (section 4.2)."""
    # A catalogue needs no computation; a request that takes longer than this has failed.
    limits = Timeouts(read=30.0, total=90.0) if timeout is None else build_timeouts(timeout, 0.0)
    return HttpCall(
        "voices",
        "tts",
        limits,
        "GET",
        VOICES_PATH,
        accept="application/json",
        free=True,
        reply_limit=_CATALOGUE_LIMIT,
    )


def parse_catalogue(reply: RawResponse) -> VoiceCatalogue:
    """Read the reply of ``GET /tts/voices`` in either documented form."""
    catalogue = VoiceCatalogue(VoiceList.parse(reply.json()).voices, reply.headers.get("x-speechlab-service"))
    languages = reply.headers.get(TRANSLATES_HEADER, "")
    catalogue.translates = tuple(code.strip().lower() for code in languages.split(",") if code.strip())
    return catalogue
