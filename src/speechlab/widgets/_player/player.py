"""The player widget: its traits, and the replies to requests of the browser."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import traitlets

from speechlab._arguments import is_number
from speechlab._pandas import pd
from speechlab.display import Html, element, format_count
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.widgets._player.recordings import (
    FORMATS,
    MAX_COLUMNS,
    OVERVIEW_BINS,
    PIECE_S,
    describe_recordings,
    draw_peaks,
    draw_spectrogram,
    encode_piece,
    open_readers,
    render_figure,
)
from speechlab.widgets._player.tiers import Tier, render_tier, to_tiers
from speechlab.widgets._shared.browser import bundle_module, read_colors_and_style_sheets
from speechlab.widgets._shared.live import LiveWidget
from speechlab.widgets._shared.sounds import to_int8_peaks

if TYPE_CHECKING:
    from speechlab.audio import SoundReader
    from speechlab.contract import AudioFormat

_BROWSER = Path(__file__).parent / "browser"
_SPEEDS = (0.25, 4.0)


class Player(LiveWidget):
    """A player of recordings with waveform, spectrogram and segments.

    A click seeks, a drag selects, a click on a segment selects it, and another one plays it. A recording of hours
    opens at once, because the browser loads only the sound that it plays and the waveform that it shows. Position,
    selection and the other attributes are synchronized in both directions::

        player = sl.widgets.Player(clip, {"reference": reference, "recognizer": transcript, "VAD": spans})
        player  # shows it
        player.selection  # (1.52, 2.40) after a drag
        player.loop = True  # the selection repeats
        player.speed = 0.75  # the pitch stays
        sl.widgets.Player({"a": one, "b": other})  # synchronous: switch during playback, at equal level

    Keys: space plays and pauses, the arrows move by a second, comma and full stop by a hundredth, Page Up and Page
    Down by five, Home and End to the ends; Enter plays the selection, [ and ] set its ends, Escape drops it, L loops;
    + and - zoom, 0 shows all; N and P play the next and the previous segment, digits choose a clip, S shows the
    spectrogram.

    The player needs a running kernel. The saved notebook has the static view of the clips and the first segments.

    Args:
        audio: A clip, the path or the bytes of a file, a transcript with its ``audio``; or a mapping of names to
            several of these, which play synchronously.
        segments: Timed texts: a DataFrame with ``start``, ``end`` (seconds) and ``text``; a transcript with
            ``segments``; an iterable of mappings or of ``(start, end, text)``; or a mapping of names to several of
            these, each a tier. None for no tier, or for a transcript given as ``audio``. The words of a transcript
            are a tier of their own, if the system gave their times.
        lang: BCP 47 tag of the texts, such as ``"ja"``; browsers choose glyphs by it.
        title: Title above the player; by default that of the clip.
        format: Format of the sound sent to the browser: ``"flac"`` (lossless), ``"wav"`` (lossless), ``"ogg"``
            (Opus, 1.6 kB a second, for slow connections) or ``"mp3"``.
        spectrogram: Whether the spectrogram is visible at first.

    Attributes:
        current_time: Position in seconds.
        playing: Whether the player plays.
        selection: ``(start, end)`` in seconds, or ``()``.
        view: Visible part: ``(start, end)`` in seconds.
        loop: Whether the selection repeats; without a selection, the whole recording.
        speed: 0.25 to 4; the pitch stays.
        tier: Number of the tier whose texts are listed.
        selected: Number of the selected segment of that tier, or -1.
        active_clip: Number of the audible clip.
        equal_level: Whether several clips are attenuated to the level of the quietest.
        duration: Duration of the longest clip in seconds.

    Raises:
        AudioError: The audio cannot be used, segments have no times, or the format is not supported.
        FileNotFoundError: The file does not exist.
        InvalidRequestError: ``title`` or ``lang`` is not a text.

    Example:
        >>> clip = sl.AudioClip(np.zeros(8_000), 8_000)
        >>> player = Player(clip, sl.segments.frame([(0.2, 0.8, "hello")]))
        >>> player.segments
        [{'start': 0.2, 'end': 0.8, 'text': 'hello'}]
    """

    _esm = bundle_module(_BROWSER / "player.js")
    _css = read_colors_and_style_sheets(_BROWSER / "player.css")

    clips = traitlets.List(traitlets.Dict()).tag(sync=True)
    peaks = traitlets.Bytes().tag(sync=True)
    piece_s = traitlets.Float(PIECE_S).tag(sync=True)
    duration = traitlets.Float().tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    layers = traitlets.List(traitlets.Dict()).tag(sync=True)
    tier = traitlets.Int(0).tag(sync=True)
    current_time = traitlets.Float(0.0).tag(sync=True)
    playing = traitlets.Bool(default_value=False).tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    selection = traitlets.Tuple().tag(sync=True)
    view = traitlets.Tuple().tag(sync=True)
    loop = traitlets.Bool(default_value=False).tag(sync=True)
    speed = traitlets.Float(1.0).tag(sync=True)
    active_clip = traitlets.Int(0).tag(sync=True)
    equal_level = traitlets.Bool(default_value=True).tag(sync=True)
    spectrogram = traitlets.Bool(default_value=False).tag(sync=True)

    def __init__(
        self,
        audio: Any,
        segments: Any = None,
        *,
        lang: str | None = None,
        title: str | None = None,
        format: AudioFormat | str = "flac",  # noqa: A002 - the contract's name
        spectrogram: bool = False,
    ) -> None:
        for name, value in (("title", title), ("lang", lang)):
            if value is not None and not isinstance(value, str):
                raise InvalidRequestError(f"{name} {value!r} must be a text, or None", parameter=name)
        if segments is None and hasattr(audio, "segments"):
            segments = audio
        self._format = str(format)
        if self._format not in FORMATS:
            raise AudioError(f"format is {format!r}; it has to be 'flac', 'wav', 'ogg' or 'mp3' for a player")
        self._readers = open_readers(audio, title)
        self._sounds = list(self._readers.values())
        self._figures: list[Html] | None = None
        self._lang = str(lang or getattr(audio, "language", None) or "")
        duration = max(reader.duration_s for reader in self._sounds)
        alone = next(iter(self._readers)) if len(self._sounds) == 1 else ""
        super().__init__(
            clips=describe_recordings(self._readers, self._format),
            peaks=b"".join(
                to_int8_peaks(reader.read_outline(0.0, reader.duration_s, OVERVIEW_BINS))
                for reader in self._sounds
            ),
            duration=duration,
            layers=to_tiers(segments, duration, self._lang),
            title=title or alone,
            view=(0.0, duration),
            spectrogram=bool(spectrogram),
        )

    def static_html(self) -> Html:
        """Return the figures of the clips, and their first segments."""
        if self._figures is None:
            self._figures = [
                render_figure(name, reader, clip["facts"])
                for (name, reader), clip in zip(self._readers.items(), self.clips, strict=True)
            ]
        return element(
            "div", *self._figures, *[block for tier in self._list_tiers() for block in render_tier(tier)]
        )

    def _repr_png_(self) -> bytes:
        return draw_peaks(self.peaks)

    def __repr__(self) -> str:
        name = f"{self.title!r}, " if self.title else ""
        clips = f"{len(self.clips)} clips, " if len(self.clips) > 1 else ""
        count = sum(len(tier["segments"]) for tier in self._list_tiers())
        segments = format_count(count, "segment")
        return f"{type(self).__name__}({name}{clips}{self.duration:.2f} s, {segments})"

    # -- segments

    def _list_tiers(self) -> list[Tier]:
        """Return all displayed tiers, in order."""
        return self.layers

    @property
    def segments(self) -> list[dict[str, Any]]:
        """The segments of the listed tier. They can be set to any ``segments`` of ``Player``."""
        tiers = self._list_tiers()
        return list(tiers[self.tier]["segments"]) if self.tier < len(tiers) else []

    @segments.setter
    def segments(self, segments: Any) -> None:
        layers = to_tiers(segments, self.duration, self._lang)
        with self.hold_sync():
            self.tier, self.selected, self.layers = 0, -1, layers

    @property
    def tiers(self) -> dict[str, pd.DataFrame]:
        """The tiers as tables with ``start``, ``end`` and ``text``, by name."""
        columns = ["start", "end", "text"]
        return {tier["name"]: pd.DataFrame(tier["segments"], columns=columns) for tier in self._list_tiers()}

    # -- commands

    def play(self, start: float | None = None, end: float | None = None) -> None:
        """Play from ``start`` (seconds; by default the current position) to ``end`` (by default the end).

        Raises:
            InvalidRequestError: A time is not a number, or the end is before the start.
        """
        first, last = (
            None if seconds is None else _check_seconds(name, seconds)
            for name, seconds in (("start", start), ("end", end))
        )
        if first is not None and last is not None and last < first:
            raise InvalidRequestError(f"end {last!r} is before start {first!r}", parameter="end")
        self.send({"type": "play", "start": first, "end": last})

    def pause(self) -> None:
        """Pause at the current position."""
        self.send({"type": "pause"})

    def seek(self, seconds: float) -> None:
        """Move to a time in seconds; a time beyond an end moves to that end.

        Raises:
            InvalidRequestError: The time is not a number.
        """
        self.current_time = min(max(_check_seconds("seconds", seconds), 0.0), self.duration)

    @traitlets.validate("selection", "view")
    def _check_span(self, proposal: Any) -> tuple[float, ...]:
        value, name = tuple(proposal["value"]), proposal["trait"].name
        if value and not (len(value) == 2 and all(map(is_number, value)) and 0 <= value[0] <= value[1]):
            raise traitlets.TraitError(f"{name} is {value!r}; give (start, end) in seconds, or () for none")
        start, end = (min(seconds, self.duration) for seconds in value or (0.0, 0.0))
        if name == "view":
            return (start, end) if start < end else (0.0, self.duration)
        return (start, end) if value else ()

    @traitlets.validate("current_time")
    def _clamp_time(self, proposal: Any) -> float:
        if math.isnan(proposal["value"]):
            raise traitlets.TraitError(f"current_time is {proposal['value']!r}; give a time in seconds")
        return min(max(float(proposal["value"]), 0.0), self.duration)

    @traitlets.validate("speed")
    def _check_speed(self, proposal: Any) -> float:
        slowest, fastest = _SPEEDS
        if not slowest <= proposal["value"] <= fastest:
            raise traitlets.TraitError(f"speed is {proposal['value']!r}; give {slowest} to {fastest}")
        return float(proposal["value"])

    @traitlets.validate("active_clip", "tier")
    def _check_index(self, proposal: Any) -> int:
        name = proposal["trait"].name
        count = len(self.clips) if name == "active_clip" else max(len(self._list_tiers()), 1)
        if not 0 <= proposal["value"] < count:
            raise traitlets.TraitError(f"{name} is {proposal['value']!r}; give 0 to {count - 1}")
        return int(proposal["value"])

    # -- from the browser

    def _on_sound(self, asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        return encode_piece(self._sounds[asked["clip"]], int(asked["piece"]), self._format)

    def _on_peaks(self, asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        reader, start_s, end_s, count = self._parse_part(asked)
        return {}, to_int8_peaks(reader.read_outline(start_s, end_s, count))

    def _on_spectrogram(self, asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        data, top = draw_spectrogram(*self._parse_part(asked))
        return {"top": top}, data

    def _parse_part(self, asked: dict[str, Any]) -> tuple[SoundReader, float, float, int]:
        """Return the recording, start, end and number of columns of a message."""
        count = min(max(int(asked["count"]), 1), MAX_COLUMNS)
        return self._sounds[asked["clip"]], float(asked["start"]), float(asked["end"]), count


def _check_seconds(name: str, value: object) -> float:
    if not is_number(value) or math.isnan(value):
        raise InvalidRequestError(f"{name} {value!r} must be a time in seconds", parameter=name)
    return float(value)
