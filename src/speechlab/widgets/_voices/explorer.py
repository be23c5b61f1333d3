"""The explorer of voices as a widget."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ipywidgets

from speechlab.client import Client, SpeechStream, VoiceCatalogue
from speechlab.contract import Voice
from speechlab.errors import InvalidRequestError
from speechlab.widgets._shared.sounds import NoSound
from speechlab.widgets._stream.stream import StreamPlayer
from speechlab.widgets._table.shown import TableView
from speechlab.widgets._table.table import AudioTable
from speechlab.widgets._voices.speaking import (
    SpeechResult,
    StoppedError,
    build_voice_frame,
    choose_sample_sentence,
    choose_visible_columns,
    describe_results,
    format_button_label,
    speak_sentence,
    to_result_cells,
)

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.display import Html

_NOT_SPOKEN_YET = NoSound("not spoken yet", makeable=True)
_IN_PROGRESS = NoSound("being spoken …", coming=True)
_STOP_NOTICE = NoSound("stopped", makeable=True)
_MAX_CHARACTERS = 5_000


class VoiceExplorer(AudioTable):
    """An :class:`AudioTable` of the voices of a service, which speak a sentence at equal loudness.

    ::

        explorer = sl.widgets.VoiceExplorer(lab)
        explorer  # shows it
        explorer.voice  # the selected voice
        explorer.voices  # the marked voices
        explorer.frame  # the catalogue with the clips, the times and the characters

    Type a sentence, mark voices, and press *Speak*; or press play in a row to have that one voice speak. Without a
    sentence each voice says a sample in its own language. Only these two buttons make calls. The embedded service is
    free; others may bill the characters, whose number is on the button. *A/B*, or the key b, switches between the
    marked voices, or between the last two that were played; each begins again.

    Voices speak one after the other, so that their times can be compared. Each result is kept and not requested
    again. The row of a voice that fails has the reason, and the others continue.

    Columns of :attr:`frame`: ``voice`` (short name), ``description``, ``languages``, ``gender``, ``streaming``,
    ``formats``, ``sample_rates``, ``id``; ``audio`` (the clip without a change of level), ``text``,
    ``first_audible_s`` (seconds from the call until a player that starts with the first samples reaches the first
    sound above the silence), ``total_s`` (seconds to the last samples), ``characters``, ``loudness_lufs`` (ITU-R
    BS.1770-4), ``gain_db`` (gain to -23 LUFS), ``error``; ``mark``, ``rating`` and ``note``.

    Args:
        lab: The client of the service.
        voices: The voices to show, such as ``lab.voices().find(language="ja")``; None for all.
        text: The sentence, at most 5,000 characters; empty for a sample in each voice's own language.
        equal_level: Play all voices at -23 LUFS (EBU R128), because louder voices are preferred.
        max_rating: The best rating, 2 to 10; 0 for no ratings.
        static_rows: Number of rows in the saved notebook, 0 to 50; voices that have spoken come first.

    Raises:
        InvalidRequestError: An argument is not allowed.
        SpeechLabError: The catalogue cannot be loaded.
    """

    def __init__(
        self,
        lab: Client,
        voices: Iterable[Voice] | None = None,
        *,
        text: str = "",
        equal_level: bool = True,
        max_rating: int = 5,
        static_rows: int = 8,
    ) -> None:
        given: object = lab
        if not isinstance(given, Client):
            message = f"a {type(given).__name__} is not a client; give the result of sl.connect()"
            raise InvalidRequestError(message, parameter="lab")
        self._lab = lab
        self._catalogue = _resolve_voices(lab, voices)
        self._done: dict[tuple[int, str], SpeechResult] = {}
        self._now: list[SpeechResult | None] = [None] * len(self._catalogue)
        self._queue: deque[tuple[int, str]] = deque()
        self._aloud: set[int] = set()  # rows that are to be played while they are made
        self._player: StreamPlayer | None = None
        self._turns = threading.Lock()
        self._telling = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._stopping = False
        self._asked_for = 0
        frame = build_voice_frame(self._catalogue)
        table = TableView(
            frame,
            audio="audio",
            columns=choose_visible_columns(frame),
            max_rating=max_rating,
            static_rows=static_rows,
            title="Voices",
            categories=("voice",),
        )
        for row in range(len(frame)):
            table.rows.replace_cells(row, {}, _NOT_SPOKEN_YET)
        super().__init__(table)
        self._shown_table = table
        self._make_controls(equal_level=equal_level)
        self.text = text
        self._update_status()

    def __repr__(self) -> str:
        count = sum(result is not None and result.clip is not None for result in self._now)
        return f"VoiceExplorer({len(self._catalogue)} voices, {count} spoken, {len(self.voices)} marked)"

    def static_html(self) -> Html:
        """Return the first rows as plain HTML; voices that have spoken, failed or are marked come first."""
        answered = [(result.clip is None, row) for row, result in enumerate(self._now) if result is not None]
        answered_rows = [row for _, row in sorted(answered)]
        first = [*answered_rows, *(row for row in self.marked if row not in answered_rows)]
        title = f"{self.title}: {self.text}" if self.text else self.title
        return self._shown_table.render_static(self._shown_table.static_rows, title=title, first=first)

    # -- selection

    @property
    def catalogue(self) -> VoiceCatalogue:
        """The voices that are shown, in the order of the rows."""
        return self._catalogue

    @property
    def voice(self) -> Voice | None:
        """The selected voice, or None; set it by the voice, its id or part of its description."""
        return self._catalogue[self.chosen] if 0 <= self.chosen < len(self._catalogue) else None

    @voice.setter
    def voice(self, voice: Voice | str | None) -> None:
        self.chosen = -1 if voice is None else self._resolve_voice_row(voice)

    @property
    def voices(self) -> list[Voice]:
        """The marked voices, in the order of the rows; set them as for :attr:`voice`."""
        return [self._catalogue[row] for row in self.marked]

    @voices.setter
    def voices(self, voices: Iterable[Voice | str]) -> None:
        self.marked = [self._resolve_voice_row(voice) for voice in voices]
        self._update_status()

    @property
    def text(self) -> str:
        """The sentence; empty for a sample in each voice's own language."""
        return str(self._sentence.value)

    @text.setter
    def text(self, text: str) -> None:
        given: object = text
        if not isinstance(given, str) or len(given) > _MAX_CHARACTERS:
            message = f"text must be a sentence of at most {_MAX_CHARACTERS:,} characters"
            raise InvalidRequestError(message, parameter="text")
        self._sentence.value = text

    @property
    def equal_level(self) -> bool:
        """Whether all voices are played at -23 LUFS; the clips in :attr:`frame` are as the service gave them."""
        return bool(self._level.value)

    @equal_level.setter
    def equal_level(self, equal: bool) -> None:
        self._level.value = equal

    @property
    def frame(self) -> pd.DataFrame:
        """A copy of the table; see the class. It is made of the catalogue and cannot be set."""
        return super().frame

    @frame.setter
    def frame(self, _frame: pd.DataFrame) -> None:
        message = "the frame of an explorer is its catalogue; show another table with sl.show(frame)"
        raise InvalidRequestError(message, parameter="frame")

    # -- speaking

    def speak(self, text: str | None = None, voices: Iterable[Voice | str] | None = None) -> pd.DataFrame:
        """Have voices speak, as the button does, and wait for them.

        Args:
            text: The sentence, which is also shown; None for the present sentence.
            voices: The voices; None for the marked voices, or for the selected voice if none is marked.

        Returns:
            Their rows of :attr:`frame`. A voice that failed has a message in ``error``.

        Raises:
            InvalidRequestError: No voice is selected, or a voice does not exist.
        """
        if text is not None:
            self.text = text
        rows = (
            self._list_marked_or_selected_rows()
            if voices is None
            else [self._resolve_voice_row(voice) for voice in voices]
        )
        if not rows:
            message = "no voice is selected; mark some, or give voices="
            raise InvalidRequestError(message, parameter="voices")
        try:
            self._start_speaking(rows)
            self._idle.wait()
            self._update_status()  # the thread may still be about to
        except BaseException:
            self.stop()
            raise
        return self.frame.iloc[rows]

    def stop(self) -> None:
        """Stop the voices that have not finished."""
        waiting = self._empty_queue(stop=True)
        if self._player is not None:
            self._player.stop()
        for row, _ in waiting:
            self._show_row(row, None, _STOP_NOTICE)

    def _empty_queue(self, *, stop: bool = False) -> list[tuple[int, str]]:
        """Remove voices that have not begun from the queue. The stop is set in the same step, so that none begins."""
        with self._turns:
            self._stopping |= stop
            waiting, self._queue = list(self._queue), deque()
        return waiting

    def _list_marked_or_selected_rows(self) -> list[int]:
        return self.marked or ([self.chosen] if self.chosen >= 0 else [])

    def _resolve_voice_row(self, voice: Voice | str) -> int:
        searched = voice if isinstance(voice, Voice) else self._catalogue.one(voice)
        for row, candidate in enumerate(self._catalogue):
            if candidate.id == searched.id:
                return row
        message = f"voice {searched.short_name!r} is not among the displayed voices"
        raise InvalidRequestError(message, parameter="voice")

    def _get_sentence(self, row: int) -> str:
        return self.text.strip() or choose_sample_sentence(self._catalogue[row])

    def _start_speaking(self, rows: Iterable[int]) -> None:
        """Have the voices of some rows speak, in a separate thread."""
        pairs = [(row, self._get_sentence(row)) for row in rows]
        with self._turns:
            pairs = [pair for pair in pairs if pair not in self._done and pair not in self._queue]
            self._queue.extend(pairs)
            self._asked_for = len(pairs) if self._idle.is_set() else self._asked_for + len(pairs)
            begins = bool(self._queue) and self._idle.is_set()
            if begins:
                self._idle.clear()
        for row, _ in pairs:
            self._show_row(row, None, _IN_PROGRESS)
        if begins:
            threading.Thread(target=self._speak_queue, name="speechlab-voices", daemon=True).start()
        self._update_status()

    def _speak_queue(self) -> None:
        try:
            while True:
                with self._turns:
                    self._stopping = False  # the present queue was filled after the stop
                    if not self._queue:
                        self._idle.set()
                        break
                    row, text = self._queue.popleft()
                self._speak_row(row, text)
                self._update_status()
        except BaseException:
            self._idle.set()  # ends every wait
            raise
        self._update_status()
        self._refresh_output()  # the saved notebook gets the new clips

    def _speak_row(self, row: int, text: str) -> None:
        try:
            play = self._show_player if row in self._aloud else None
            spoken = speak_sentence(self._lab, self._catalogue[row], text, lambda: self._stopping, play)
        except StoppedError:
            self._show_row(row, None, _STOP_NOTICE)
        except Exception as error:  # noqa: BLE001 - the row gets the error, and the other voices continue
            words = f"{type(error).__name__}: {error}"
            self._keep_and_show_result(row, SpeechResult(text, error=words, words=words))
        else:
            self._keep_and_show_result(row, spoken)
            if spoken.gone:  # each further voice would wait as long
                for waiting_row, sentence in self._empty_queue():
                    self._keep_and_show_result(waiting_row, replace(spoken, text=sentence))

    def _show_player(self, stream: SpeechStream) -> StreamPlayer:
        """Show a player of a voice that speaks, in place of the last one."""
        last, self._player = self._player, StreamPlayer(stream)
        self._controls = [*self._form, self._player]
        if last is not None:
            last.close()
        return self._player

    def _keep_and_show_result(self, row: int, spoken: SpeechResult) -> None:
        if spoken.clip is not None:
            self._done[row, spoken.text] = spoken
        if spoken.text == self._get_sentence(row):
            self._show_row(row, spoken)
        else:  # another sentence was typed in the meantime
            self._show_row(row, self._done.get((row, self._get_sentence(row))))

    def _show_row(self, row: int, spoken: SpeechResult | None, instead: NoSound = _NOT_SPOKEN_YET) -> None:
        self._now[row] = spoken
        sound: Any = instead
        if spoken is not None:
            sound = spoken.to_clip(level=self.equal_level) or NoSound(spoken.words, makeable=True)
        if instead is not _IN_PROGRESS:
            self._aloud.discard(row)
        played = (
            spoken is not None
            and spoken.played
            and self._player is not None
            and self._player.disarm_autoplay()
        )
        self.update(row, to_result_cells(spoken), sound=sound, played=played)

    # -- the form

    def _make_controls(self, *, equal_level: bool) -> None:
        layout = ipywidgets.Layout
        wide = layout(width="auto", height="auto", flex="1 1 300px", min_width="0")
        example = "empty: each voice says a sample of its own language"
        self._sentence = ipywidgets.Textarea(description="Sentence", placeholder=example, rows=2, layout=wide)
        self._speak = ipywidgets.Button(button_style="primary", layout=layout(width="auto"))
        self._stop = ipywidgets.Button(description="Stop", layout=layout(width="auto"))
        level: dict[str, Any] = {"value": bool(equal_level), "description": "equal loudness", "indent": False}
        self._level = ipywidgets.Checkbox(**level, layout=layout(width="auto"))
        self._status = ipywidgets.Label(layout=layout(width="auto", flex="1 1 100%"))
        self._sentence.observe(lambda _: self._show_results_of_sentence(), "value")
        self._speak.on_click(lambda _: self._start_speaking(self._list_marked_or_selected_rows()))
        self._stop.on_click(lambda _: self.stop())
        self._level.observe(lambda _: self._show_clips_at_level(), "value")
        self.observe(lambda _: self._update_status(), ["chosen", "edits"])
        self._controls = self._form = [self._sentence, self._speak, self._stop, self._level, self._status]

    def _update_status(self) -> None:
        """Update the label of the button and the progress."""
        with self._telling:  # otherwise an older state could overwrite a newer one
            pairs = [(row, self._get_sentence(row)) for row in self._list_marked_or_selected_rows()]
            open_pairs = [pair for pair in pairs if pair not in self._done]
            self._speak.description = format_button_label(open_pairs, any_meant=bool(pairs))
            self._speak.disabled = not open_pairs
            working = not self._idle.is_set()
            self._stop.disabled = not working
            ended = max(self._asked_for - len(self._queue) - 1, 0)
            doing = f"Speaking: {ended} of {self._asked_for} done."
            sentences = list(self._done)  # another thread may add to them
            self._status.value = doing if working else describe_results(self._now, sentences)

    def _show_results_of_sentence(self) -> None:
        with self._turns:
            coming = {row for row, _ in self._queue}
        for row, now in enumerate(self._now):
            text = self._get_sentence(row)
            if row in coming or (now is not None and now.text == text):
                continue
            result = self._done.get((row, text))
            if now is not None or result is not None:
                self._show_row(row, result)
        self._update_status()

    def _show_clips_at_level(self) -> None:
        for row, spoken in enumerate(self._now):
            if spoken is not None and spoken.clip is not None:
                self._show_row(row, spoken)

    # -- from the browser

    def _on_make(self, asked: dict[str, Any]) -> None:
        row = int(asked["row"])
        if 0 <= row < len(self._now):
            self._aloud.add(row)
            self._start_speaking([row])


def _resolve_voices(lab: Client, voices: Iterable[Voice] | None) -> VoiceCatalogue:
    if voices is None:
        return lab.voices()
    given = list(voices)
    if not all(isinstance(voice, Voice) for voice in given):
        message = 'voices must come from a catalogue, as in lab.voices().find(language="ja")'
        raise InvalidRequestError(message, parameter="voices")
    return VoiceCatalogue(given)
