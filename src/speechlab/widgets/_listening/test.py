"""The listening test as a widget and as a page."""

from __future__ import annotations

import os
import re
import secrets
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import traitlets

from speechlab._arguments import build_argument_error, is_whole_number
from speechlab._files import expand_user_path
from speechlab._pandas import pd
from speechlab.display import Html, element, format_count
from speechlab.errors import InvalidRequestError
from speechlab.listening import (
    ANCHORS_HZ,
    METHODS,
    AnswerFile,
    ListeningKey,
    Planner,
    build_answer_table,
    build_design,
    build_instructions,
    build_material,
    check_question_count,
    check_system_pairs,
    check_text,
    choose_training_items,
    load_page_words,
    parse_model,
)
from speechlab.widgets._listening.files import (
    encode_sounds,
    merge_sessions,
    to_browser_session,
    write_page_and_key,
)
from speechlab.widgets._listening.stimuli import Stimuli
from speechlab.widgets._shared.browser import (
    bundle_module,
    read_colors_and_style_sheets,
    render_widget_page,
    to_json_text,
)
from speechlab.widgets._shared.live import LiveWidget

_BROWSER = Path(__file__).parent / "browser"
_MAX_CHECKS = 20
_NOT_IN_FILE_NAMES = re.compile(r"[^\w-]+")


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
        page_language: Language of the page and of its default texts: ``"en"``, ``"ja"`` or ``"zh"``.
        items_per_listener: Number of items of each listener, for crowds; None for all. After any number of listeners,
            all items have been asked equally often, or once more.
        before: Questions about the listener before the test: names to texts, or to a text and its choices. The
            answers are the columns ``about_…`` of ``answers``.
        after: Questions after the test, in the same form.
        completion_code: A code that listeners see once their answers are kept or saved; None for none.
        progress: Whether the preparation of many sounds is shown.

    Attributes:
        key: The key, as ``save`` writes it: the system of each sound. Only the author may have it.
        answers: The answers so far, as a tidy frame; see :func:`speechlab.evaluate.listening_answers`.
        sounds: The recordings: a table with ``item``, ``system`` and ``audio``.
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

    _esm = bundle_module(_BROWSER / "listening-test.js")
    _css = read_colors_and_style_sheets(_BROWSER / "listening.css")

    test = traitlets.Unicode().tag(sync=True)
    method = traitlets.Unicode().tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    question = traitlets.Unicode().tag(sync=True)
    instructions = traitlets.List(traitlets.Unicode()).tag(sync=True)
    trials = traitlets.List(traitlets.Dict()).tag(sync=True)
    order_seed = traitlets.Unicode().tag(sync=True)
    no_preference = traitlets.Bool(default_value=True).tag(sync=True)
    words = traitlets.Dict().tag(sync=True)
    design = traitlets.Dict().tag(sync=True)
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
        page_language: str = "en",
        items_per_listener: int | None = None,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
        completion_code: str | None = None,
        progress: bool = True,
    ) -> None:
        if method not in METHODS:
            raise build_argument_error("method", method, f"one of {', '.join(map(repr, METHODS))}")
        if not is_whole_number(checks) or not 0 <= checks <= _MAX_CHECKS:
            raise build_argument_error("checks", checks, f"a whole number from 0 to {_MAX_CHECKS}")
        if seed is not None and (not is_whole_number(seed) or not 0 <= seed < 2**63):
            raise build_argument_error("seed", seed, "a whole number from 0 to 2**63 - 1, or None")
        words = load_page_words(page_language)
        prompt = check_text("question", words["methods"][method][0] if question is None else question)
        material = build_material(
            frame, audio, system, item, text, language, reference, refers=method == "mushra"
        )
        chosen = check_system_pairs(pairs, material.systems, method)
        practiced = choose_training_items(training, material.items)
        heading = check_text("title", title)
        check_question_count(material, method, chosen, practiced)  # before minutes of reading
        design = build_design(
            set(material.items) - set(practiced), items_per_listener, before, after, completion_code
        )
        drawn = secrets.randbits(62) if seed is None else int(seed)
        names = [f"item {label!r} of {source!r}" for label, source in material.rows]
        self._places, self._recordings = list(material.rows.items()), frame[audio].tolist()
        self._stimuli = Stimuli(self._recordings, names, equal_level=bool(equal_level), progress=progress)
        planner = Planner(
            material,
            method,
            (drawn, prompt, bool(no_preference), bool(equal_level), self._stimuli.digest),
            pairs=chosen,
            training=practiced,
            checks=0 if method == "mushra" else int(checks),
        )
        self._plan = planner.build_questions(self._stimuli.get_sample_rate)
        self._key = ListeningKey(
            format="speechlab listening key 1",
            test=self._plan.test,
            title=heading,
            method=method,  # type: ignore[arg-type]  # a key of METHODS
            question=prompt,
            seed=drawn,
            systems=list(material.systems),
            reference=material.reference,
            anchors=list(ANCHORS_HZ),
            trials=self._plan.key,
            items_per_listener=design["each"],
        )
        self._progress = progress
        self._sessions: dict[str, AnswerFile] = {}
        self._lock = threading.Lock()
        super().__init__(
            test=self._plan.test,
            method=method,
            title=heading,
            question=prompt,
            instructions=build_instructions(instructions, method, self._stimuli.level_lufs, words),
            trials=self._plan.shown,
            order_seed=self._plan.order_seed,
            no_preference=bool(no_preference),
            words={name: text for name, text in words.items() if name != "methods"},
            design=design,
        )

    def __repr__(self) -> str:
        return f"ListeningTest({self.title!r}, {', '.join(self._list_facts())})"

    def _list_facts(self) -> list[str]:
        count = sum(not trial["practice"] for trial in self.trials)
        finished = sum(session.finished is not None for session in self._sessions.values())
        systems = len(self._key.systems)
        listeners = f"{finished} of {len(self._sessions)} listeners finished"
        return [self.method, format_count(count, "question"), format_count(systems, "system"), listeners]

    def static_html(self) -> Html:
        """Return the question and the number of listeners, without systems, so that every reader stays blind."""
        return element(
            "div",
            element("strong", self.title, dir="auto"),
            element("p", self.question, dir="auto", style="margin:4px 0"),
            element("p", " · ".join(self._list_facts()), style="margin:4px 0;opacity:.74"),
            style="font-size:13px;line-height:1.45;max-width:620px",
        )

    @property
    def key(self) -> dict[str, Any]:
        """The key, which only the author may have: the system of each sound."""
        return self._key.model_dump()

    @property
    def sounds(self) -> pd.DataFrame:
        """The recordings of all items and systems, as they were given."""
        rows = [(item, system, self._recordings[row]) for (item, system), row in self._places]
        return pd.DataFrame(rows, columns=["item", "system", "audio"])

    @property
    def level_lufs(self) -> float:
        """The loudness of all sounds in LUFS; NaN if they keep their own levels."""
        return self._stimuli.level_lufs

    @property
    def answers(self) -> pd.DataFrame:
        """The answers so far, as a tidy frame; see :func:`speechlab.evaluate.listening_answers`."""
        with self._lock:
            files = list(self._sessions.values())
        return build_answer_table(
            files or self._to_answer_file({"listener": "nobody", "answers": []}), self._key
        )

    def _to_answer_file(self, session: Mapping[str, Any]) -> AnswerFile:
        data = {**session, "format": "speechlab listening answers 1", "test": self._plan.test}
        return parse_model(AnswerFile, data, "the session")

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
        return write_page_and_key(path, self._key, partial(self._render_page, None, "", {}), None)

    def save_each(self, folder: str | os.PathLike[str], listeners: int | Iterable[str]) -> list[Path]:
        """Write a page for each listener, and the key of the test.

        A page has only the listener's part of the sounds, so that it is small enough for a phone, on which the
        listener keeps it and continues later.

        Args:
            folder: Folder of the pages and of ``test.key.json``, which is made if necessary.
            listeners: Names of the listeners, or their number.

        Returns:
            The paths of the pages, in order.

        Raises:
            InvalidRequestError: As for :meth:`save`, or two listeners have one name.
            OSError: A file cannot be written.
        """
        if isinstance(listeners, int):
            names = [f"{number:0{len(str(listeners))}d}" for number in range(1, listeners + 1)]
        else:
            names = [check_text("listeners", listener) for listener in listeners]
        files = [f"test-{_NOT_IN_FILE_NAMES.sub('-', name)[:40]}.html" for name in names]
        if not names or len(set(files)) < len(files):
            raise build_argument_error(
                "listeners", listeners, "a number from 1, or names that differ in their letters"
            )
        place = expand_user_path(folder)
        place.mkdir(parents=True, exist_ok=True)
        encoded: dict[str, str] = {}
        return [
            write_page_and_key(
                place / file, self._key, partial(self._render_page, at, name, encoded), "test.key.json"
            )
            for at, (file, name) in enumerate(zip(files, names, strict=True))
        ]

    def _render_page(self, part: int | None, listener: str, encoded: dict[str, str]) -> str:
        """Return the page for all listeners, or for one with a part; sounds in ``encoded`` are taken from there."""
        mine = {trial.id for trial in (self._key.trials if part is None else self._key.select_trials(part))}
        trials = [trial for trial in self.trials if trial["id"] in mine]
        played = {
            token for trial in trials for token in (*trial["sounds"], trial.get("x"), trial.get("reference"))
        }
        sounds = {token: sound for token, sound in self._plan.sounds.items() if token in played}
        names = "test method title question instructions order_seed no_preference words"
        state = {name: getattr(self, name) for name in names.split()}
        state |= {"trials": trials, "design": {**self.design, "part": part, "listener": listener}}
        data = {
            "state": state,
            "sounds": encode_sounds(self._stimuli, sounds, encoded, progress=self._progress),
        }
        held, lang = {"data": to_json_text(data)}, self.words["lang"]
        return render_widget_page(self.title, self._esm, _BROWSER / "page.js", self._css, held, lang=lang)

    # -- from the browser

    def _on_sound(self, asked: dict[str, Any]) -> dict[str, Any] | tuple[dict[str, Any], bytes] | None:
        token = asked.get("token")
        stimulus = self._plan.sounds.get(token) if isinstance(token, str) else None
        if stimulus is None:
            return None
        try:
            return {}, self._stimuli.treat_and_encode_sound(stimulus)
        except InvalidRequestError:  # whose message names the system
            return {"error": "The recording can no longer be read. Please tell the author of this test."}

    def _on_begin(self, asked: dict[str, Any]) -> dict[str, Any] | None:
        listener = str(asked.get("listener", "")).strip()[:100]
        if not listener:
            return None
        started = datetime.now(UTC).isoformat(timespec="seconds")
        with self._lock:
            fresh: dict[str, Any] = {
                "listener": listener,
                "started": started,
                "finished": None,
                "answers": [],
            }
            begun = self._to_answer_file({**fresh, "part": len(self._sessions)})
            session = self._sessions.setdefault(listener, begun)
        self.session = to_browser_session(session)
        return {"session": self.session}

    def _on_keep(self, asked: dict[str, Any]) -> dict[str, Any] | None:
        if not isinstance(asked["session"], dict):
            return None
        answered = self._to_answer_file(asked["session"])
        build_answer_table(answered, self._key)  # refuses what is not from the page of this test
        with self._lock:
            session = merge_sessions(self._sessions.get(answered.listener), answered)
            self._sessions[session.listener] = session
        self.session = to_browser_session(session)
        return {}

    def _on_next(self, _asked: dict[str, Any]) -> None:
        self.session = {}
