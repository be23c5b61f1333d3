"""The listening test as a widget and as a page."""

from __future__ import annotations

import secrets
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import traitlets

from speechlab._arguments import is_whole_number, refused
from speechlab.display import element
from speechlab.errors import InvalidRequestError
from speechlab.listening import (
    ANCHORS_HZ,
    METHODS,
    AnswerFile,
    ListeningKey,
    Planner,
    check_count,
    checked_words,
    chosen_pairs,
    instructions_of,
    material_of,
    parse,
    tidy_answers,
    training_of,
)
from speechlab.widgets._listening.files import encoded_sounds, write_files
from speechlab.widgets._listening.sounds import Stimuli
from speechlab.widgets._shared.live import LiveWidget
from speechlab.widgets._shared.module import module_source, style_sheet
from speechlab.widgets._shared.page import json_text, page_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping

    import pandas as pd

    from speechlab.display import Html

_BROWSER = Path(__file__).parent / "browser"
_MAX_CHECKS = 20


class ListeningTest(LiveWidget):
    """A blind listening test: listeners rate or compare sounds without knowing the systems.

    ::

        test = sl.widgets.ListeningTest(frame, "ab", system="voice", item="text")
        test  # shows it: one listener after the other
        test.answers  # a tidy frame
        test.save("test.html")  # a page for remote listeners, and the key of the test
        report = sl.evaluate.listening(test.answers)

    Listeners begin with the instructions and a sound for setting the volume. They practise with ``training`` items,
    which do not occur again, and answer in a random order of their own. A listener who reloads the page or enters the
    same name again continues. The widget and the page do not contain the systems: names of questions and sounds are
    drawn from the seed, and equal recordings have different bytes. Only Python and the file of the key have the key.
    A person with the key is no longer blind.

    Attention checks look like all other questions. They have a recording with loud noise, which must be rated 1
    or 2 (MOS), must not be preferred (A/B), or must be distinguished from the clean recording (ABX). In MUSHRA the
    hidden reference is the check. The anchors are the reference low-passed at 3.5 and 7 kHz (ITU-R BS.1534-3), if its
    sample rate has higher frequencies.

    Keys: 1 to 5 rate in a MOS test and play the sounds in other tests (0 the reference); P plays and stops; Enter
    continues.

    Args:
        frame: A table with one row for each recording.
        method: ``"mos"`` (one sound, 1 to 5, ITU-T P.800), ``"ab"`` (which of two), ``"abx"`` (which of two is the
            third) or ``"mushra"`` (several against a reference, 0 to 100).
        audio: Column of the recordings: clips, paths or bytes; 120 s and 9.5 MB (at 16 bits) at most.
        system: Column of the compared systems, such as the voices.
        item: Column of the items that all systems have in common, such as the sentences.
        reference: The system that is the reference; MUSHRA needs one.
        pairs: Pairs of systems for A/B and ABX; None for all pairs.
        text: Column of a text that listeners see; None for no text.
        language: Column of the texts' languages, or a BCP 47 tag.
        question: The question; None for the default question of the method.
        instructions: Paragraphs of the first page; None for the default instructions.
        training: Number of practice items, or the items themselves.
        checks: Number of attention checks, 0 to 20.
        no_preference: Whether A/B allows "no preference".
        equal_level: Play all recordings at one loudness: -23 LUFS (EBU R128, ITU-R BS.1770-4), or the highest
            loudness below it without clipping. The first page says so.
        seed: Seed of names and order, a whole number that listeners must not know. None draws a seed, which is in
            ``key``. The same seed makes the same test.
        title: Title of the page.

    Attributes:
        key: The key, as ``save`` writes it: the system of each sound. Only the author may have it.
        answers: The answers so far, as a tidy frame; see :func:`speechlab.evaluate.listening_answers`.
        level_lufs: The loudness of all sounds in LUFS; NaN if they keep their own levels.

    Raises:
        InvalidRequestError: An argument is not allowed, or a recording cannot be read.

    Example:
        >>> clip = sl.AudioClip(np.zeros(800), 8_000)
        >>> frame = pd.DataFrame({"audio": [clip, clip], "system": ["one", "two"], "item": ["a", "a"]})
        >>> test = ListeningTest(frame, "mos", training=0)
        >>> len(test.answers)
        0
    """

    _esm = module_source(_BROWSER / "listening-test.js")
    _css = style_sheet(_BROWSER / "listening.css")

    test = traitlets.Unicode().tag(sync=True)
    method = traitlets.Unicode().tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    question = traitlets.Unicode().tag(sync=True)
    instructions = traitlets.List(traitlets.Unicode()).tag(sync=True)
    trials = traitlets.List(traitlets.Dict()).tag(sync=True)
    order_seed = traitlets.Unicode().tag(sync=True)
    no_preference = traitlets.Bool(default_value=True).tag(sync=True)
    session = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        frame: pd.DataFrame,
        method: str = "mos",
        *,
        audio: Any = "audio",
        system: Any = "system",
        item: Any = "item",
        reference: str | None = None,
        pairs: Iterable[tuple[str, str]] | None = None,
        text: Any = None,
        language: Any = None,
        question: str | None = None,
        instructions: Iterable[str] | None = None,
        training: int | Iterable[str] = 1,
        checks: int = 2,
        no_preference: bool = True,
        equal_level: bool = True,
        seed: int | None = None,
        title: str = "Listening test",
    ) -> None:
        if method not in METHODS:
            raise refused("method", method, f"one of {', '.join(map(repr, METHODS))}")
        if not is_whole_number(checks) or not 0 <= checks <= _MAX_CHECKS:
            raise refused("checks", checks, f"a whole number from 0 to {_MAX_CHECKS}")
        if seed is not None and (not is_whole_number(seed) or not 0 <= seed < 2**63):
            raise refused("seed", seed, "a whole number from 0 to 2**63 - 1, or None")
        asked = checked_words("question", METHODS[method].question if question is None else question)
        material = material_of(
            frame, audio, system, item, text, language, reference, refers=method == "mushra"
        )
        chosen = chosen_pairs(pairs, material.systems, method)
        practised = training_of(training, material.items)
        named = checked_words("title", title)
        check_count(material, method, chosen, practised)  # before minutes of reading
        own = secrets.randbits(62) if seed is None else int(seed)
        names = [f"item {one!r} of {other!r}" for one, other in material.rows]
        self._stimuli = Stimuli(frame[audio].tolist(), names, equal_level=bool(equal_level))
        planner = Planner(
            material,
            method,
            (own, asked, bool(no_preference), bool(equal_level), self._stimuli.digest),
            pairs=chosen,
            training=practised,
            checks=0 if method == "mushra" else int(checks),
        )
        self._plan = planner.make(self._stimuli.rate)
        self._key = ListeningKey(
            format="speechlab listening key 1",
            test=self._plan.test,
            title=named,
            method=method,  # type: ignore[arg-type]  # a key of METHODS
            question=asked,
            seed=own,
            systems=list(material.systems),
            reference=material.reference,
            anchors=list(ANCHORS_HZ),
            trials=self._plan.key,
        )
        self._sessions: dict[str, AnswerFile] = {}
        self._lock = threading.Lock()
        super().__init__(
            test=self._plan.test,
            method=method,
            title=named,
            question=asked,
            instructions=instructions_of(instructions, method, self._stimuli.level_lufs),
            trials=self._plan.shown,
            order_seed=self._plan.order_seed,
            no_preference=bool(no_preference),
        )
        self.on_msg(self._asked)

    def __repr__(self) -> str:
        return f"ListeningTest({self.title!r}, {', '.join(self._facts())})"

    def _facts(self) -> list[str]:
        count = sum(not trial["practice"] for trial in self.trials)
        finished = sum(one.finished is not None for one in self._sessions.values())
        systems = len(self._key.systems)
        listeners = f"{finished} of {len(self._sessions)} listeners finished"
        return [self.method, _counted(count, "question"), _counted(systems, "system"), listeners]

    def static_html(self) -> Html:
        """Return the question and the number of listeners, without systems, so that every reader stays blind."""
        return element(
            "div",
            element("strong", self.title, dir="auto"),
            element("p", self.question, dir="auto", style="margin:4px 0"),
            element("p", " · ".join(self._facts()), style="margin:4px 0;opacity:.74"),
            style="font-size:13px;line-height:1.45;max-width:620px",
        )

    @property
    def key(self) -> dict[str, Any]:
        """The key, which only the author may have: the system of each sound."""
        return self._key.model_dump()

    @property
    def level_lufs(self) -> float:
        """The loudness of all sounds in LUFS; NaN if they keep their own levels."""
        return self._stimuli.level_lufs

    @property
    def answers(self) -> pd.DataFrame:
        """The answers so far, as a tidy frame; see :func:`speechlab.evaluate.listening_answers`."""
        with self._lock:
            files = list(self._sessions.values())
        return tidy_answers(files or self._file({"listener": "nobody", "answers": []}), self._key)

    def _file(self, session: Mapping[str, Any]) -> AnswerFile:
        data = {**session, "format": "speechlab listening answers 1", "test": self._plan.test}
        return parse(AnswerFile, data, "the session")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a page for listeners without a kernel, and the key of the test.

        ``test.html`` contains the sounds (FLAC) and loads nothing; listeners save a file of answers at its end.
        ``test.key.json`` has the system of each sound: keep it, and do not pass it on with the page.

        Args:
            path: The page. An existing page of the same test and its key are replaced.

        Returns:
            The path of the page.

        Raises:
            InvalidRequestError: The folder has the key of another test under this name, the sounds exceed the 200 MB
                of a page, or a recording can no longer be read.
            OSError: A file cannot be written.
        """
        return write_files(path, self._key, self._page)

    def _page(self) -> str:
        sounds = encoded_sounds(self._stimuli, self._plan.sounds)
        names = "test method title question instructions trials order_seed no_preference"
        data = {"state": {name: getattr(self, name) for name in names.split()}, "sounds": sounds}
        return page_of(self.title, self._esm, _BROWSER / "page.js", self._css, {"data": json_text(data)})

    # -- from the browser

    def _asked(self, _widget: object, content: Any, _buffers: object) -> None:
        """Answer a request of the browser; an invalid request is dropped."""
        answers: dict[str, Callable[[dict[str, Any]], None]]
        answers = {"sound": self._send_sound, "begin": self._begin, "keep": self._keep, "next": self._next}
        kind = content.get("type") if isinstance(content, dict) else None
        if isinstance(kind, str) and kind in answers:
            answers[kind](content)

    def _send_sound(self, asked: dict[str, Any]) -> None:
        token = asked.get("token")
        stimulus = self._plan.sounds.get(token) if isinstance(token, str) else None
        if stimulus is None:
            return
        try:
            data, error = self._stimuli.data(stimulus), None
        except InvalidRequestError:
            # The message of the error names the system.
            data, error = b"", "The recording can no longer be read. Please tell the author of this test."
        self._answer(asked, {"type": "sound", "token": token, "error": error}, data)

    def _begin(self, asked: dict[str, Any]) -> None:
        listener = str(asked.get("listener", "")).strip()[:100]
        if not listener:
            return
        started = datetime.now(UTC).isoformat(timespec="seconds")
        begun = self._file({"listener": listener, "started": started, "finished": None, "answers": []})
        with self._lock:
            session = self._sessions.setdefault(listener, begun)
        self.session = _shown(session)
        self._reply("begun", asked, session=self.session)

    def _keep(self, asked: dict[str, Any]) -> None:
        given = asked.get("session")
        if not isinstance(given, dict):
            return
        try:
            answered = self._file(given)
            tidy_answers(answered, self._key)
        except InvalidRequestError:
            return  # not from the page of this test
        with self._lock:
            session = _joined(self._sessions.get(answered.listener), answered)
            self._sessions[session.listener] = session
        self.session = _shown(session)
        self._reply("kept", asked)

    def _next(self, _asked: dict[str, Any]) -> None:
        self.session = {}

    def _reply(self, kind: str, asked: dict[str, Any], **more: Any) -> None:
        """Reply to one view; the message goes to all views."""
        self.send({"type": kind, "view": str(asked.get("view", ""))[:40], **more})


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _shown(session: AnswerFile) -> dict[str, Any]:
    """Return the session as the browser has it."""
    return session.model_dump(exclude={"format", "test"}, exclude_unset=True)


def _joined(kept: AnswerFile | None, given: AnswerFile) -> AnswerFile:
    """Return a listener's answers joined with those of another window; kept answers are never lost or replaced."""
    if kept is None:
        return given
    known = {answer.trial for answer in kept.answers}
    answers = [*kept.answers, *(answer for answer in given.answers if answer.trial not in known)]
    return kept.model_copy(update={"finished": kept.finished or given.finished, "answers": answers})
