"""The files of a listening test: the page, limited in size, the key, and the sessions of listeners."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._files import expand_user_path, read_regular_file, write_atomically
from speechlab.batch import show_progress
from speechlab.errors import InvalidRequestError
from speechlab.widgets._shared.browser import to_base64

if TYPE_CHECKING:
    from speechlab.listening import AnswerFile, ListeningKey, Stimulus
    from speechlab.widgets._listening.stimuli import Stimuli

_MAX_PAGE_BYTES = 200_000_000
# Number of sounds encoded to estimate the size of the page. A page a quarter above the limit is refused by
# it.
_SAMPLE_SOUNDS = 12
_ESTIMATE_MARGIN = 1.25


def write_page_and_key(
    path: str | os.PathLike[str], key: ListeningKey, make_page: Callable[[], str], key_name: str | None
) -> Path:
    """Write the page, which is made once the key of no other test would be lost, and the key to its folder."""
    file = expand_user_path(path)
    key_file = file.with_name(key_name or f"{file.stem}.key.json")
    if file.is_dir():
        message = f"{file} is a folder; give the name of a page in it, such as {file.name}/test.html"
        raise InvalidRequestError(message, parameter="path")
    if key_file.exists():  # the key of another test is kept: its answers cannot be read without it
        try:
            earlier = orjson.loads(read_regular_file(key_file))
        except orjson.JSONDecodeError:
            earlier = None
        if not isinstance(earlier, dict) or earlier.get("format") != key.format:
            message = (
                f"{key_file.name} exists and is not the key of a listening test; give the page another name"
            )
            raise InvalidRequestError(message, parameter="path")
        if earlier.get("test") != key.test:
            message = (
                f"{key_file.name} is the key of another test, whose page may be with listeners; their answers cannot "
                "be read without it. Give this page another name, or move that key. To make that test again, give "
                "ListeningTest the same rows and options, and the number in the key as seed=."
            )
            raise InvalidRequestError(message, parameter="path")
    page = make_page()
    written = orjson.dumps(key.model_dump(), option=orjson.OPT_INDENT_2).decode()
    for target, text in ((key_file, written), (file, page)):
        with write_atomically(target) as draft:
            draft.write_text(text, encoding="utf-8")
    return file


def encode_sounds(
    stimuli: Stimuli,
    sounds: Mapping[str, Stimulus],
    texts: dict[str, str],
    *,
    progress: bool,
) -> dict[str, str]:
    """Return the sounds of a page as base64 of FLAC, by their names in order; those in ``texts`` exist already."""
    names = sorted(sounds)

    def encode_into_texts(some: list[str]) -> None:
        for name in some:
            if name not in texts:
                texts[name] = to_base64(stimuli.treat_and_encode_sound(sounds[name]))

    tried = names[:: max(len(names) // _SAMPLE_SOUNDS, 1)]
    encode_into_texts(tried)
    raw = sum(stimuli.get_size(sounds[name]) for name in tried)
    size = sum(stimuli.get_size(sounds[name]) for name in names)
    expected = sum(len(texts[name]) for name in tried) / max(raw, 1) * size
    if expected > _ESTIMATE_MARGIN * _MAX_PAGE_BYTES:
        raise _build_size_error(len(names), f"about {expected / 1e6:,.0f} MB")
    length = 0
    with show_progress(progress, len(names), "sounds of the page", unit="sound", delay_s=1.0) as advance:
        for name in names:
            encode_into_texts([name])
            length += len(texts[name])
            if length > _MAX_PAGE_BYTES:
                raise _build_size_error(len(names), f"more than {_MAX_PAGE_BYTES / 1e6:.0f} MB")
            advance()
    return {name: texts[name] for name in names}


def _build_size_error(count: int, size: str) -> InvalidRequestError:
    message = (
        f"{count:,} sounds take {size}, and a page holds {_MAX_PAGE_BYTES / 1e6:.0f} MB; use fewer items or systems, "
        "or recordings with a lower sample rate"
    )
    return InvalidRequestError(message, parameter="frame")


def to_browser_session(session: AnswerFile) -> dict[str, Any]:
    """Return the session as the browser has it."""
    return session.model_dump(exclude={"format", "test"}, exclude_unset=True)


def merge_sessions(kept: AnswerFile | None, given: AnswerFile) -> AnswerFile:
    """Return a listener's answers joined with those of another window; kept answers are never lost or replaced."""
    if kept is None:
        return given
    answered = {answer.trial for answer in kept.answers}
    answers = [*kept.answers, *(answer for answer in given.answers if answer.trial not in answered)]
    about = {**given.about, **kept.about}
    finished = kept.finished or given.finished
    return kept.model_copy(update={"finished": finished, "answers": answers, "about": about})
