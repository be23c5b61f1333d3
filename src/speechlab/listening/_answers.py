"""One tidy table from answers and their key, with a row for each rated sound or each choice."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from speechlab._arguments import convert_table, is_pandas_frame, require_columns
from speechlab._files import expand_user_path, read_regular_file
from speechlab._pandas import pd
from speechlab._platform import get_text_dtype
from speechlab.errors import InvalidRequestError
from speechlab.listening._files import Answer, AnswerFile, KeyTrial, ListeningKey, parse_model
from speechlab.listening._questions import METHODS

COLUMNS = {
    "listener": "str",
    "item": "str",
    "system": "str",
    "other": "string",
    "question": "str",
    "score": "float64",
    "choice": "string",
    "order": "int64",
    "position": "int64",
    "time_s": "float64",
    "plays": "int64",
    "attention": "boolean",
    "role": "str",
    "method": "str",
    "trial": "str",
    "test": "str",
    "session": "str",
    "finished": "bool",
}
# Beginning of the columns with what listeners said of themselves.
ABOUT_PREFIX = "about_"
_REQUIRED_COLUMNS = ("listener", "item", "system", "score", "role", "method", "trial", "test", "session")
_MAX_FILES = 10_000
# Rating below which a hidden reference counts as missed; source: ITU-R BS.1534-3, 4.1.2.
HIDDEN_REFERENCE_LEAST = 90.0
_WORST_MOS = 2.0


def to_listening_key(key: Any) -> ListeningKey | None:
    """Return the key from a file, a mapping or a test."""
    inner = getattr(key, "key", key)
    if inner is None or isinstance(inner, ListeningKey):
        return inner
    if isinstance(inner, str | os.PathLike):
        path = expand_user_path(inner)
        return parse_model(ListeningKey, _read_bytes(path, "key"), path.name)
    if not isinstance(inner, Mapping):
        message = f"key is a {type(key).__name__}; give the path of the key file, or the ListeningTest"
        raise InvalidRequestError(message, parameter="key")
    return parse_model(ListeningKey, dict(inner), "key")


def build_answer_table(answers: Any, key: ListeningKey | None) -> pd.DataFrame:
    """Return the answers as one table; see :func:`speechlab.evaluate.listening` for the allowed values."""
    frames = []
    for name, one in _iterate_answer_sources(answers):
        if is_pandas_frame(one):
            hint = "Give what a ListeningTest has in .answers"
            table = require_columns(one, *COLUMNS, argument="answers", hint=hint)
            about = [name for name in table.columns if str(name).startswith(ABOUT_PREFIX)]
            frames.append(_check_no_missing_cells(table[[*COLUMNS, *about]]))
            continue
        read = one if isinstance(one, AnswerFile) else parse_model(AnswerFile, one, name)
        if key is None:
            message = (
                f"{name} says only which sounds were chosen; give the key that .save() wrote next to the page"
            )
            raise InvalidRequestError(message, parameter="key")
        frames.append(_build_answer_file_table(read, key, name))
    if not frames:
        message = "there are no answers; give answer files, a folder of them, or the frame of a ListeningTest"
        raise InvalidRequestError(message, parameter="answers")
    filled = [frame for frame in frames if len(frame)] or frames[:1]
    try:
        return pd.concat(filled, ignore_index=True).astype(COLUMNS)
    except (TypeError, ValueError, OverflowError) as error:
        message = f"the frame of answers holds what does not fit: {error}; give what a ListeningTest has in .answers"
        raise InvalidRequestError(message, parameter="answers") from None


def _check_no_missing_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of answers; refuse one with missing cells, which would silently remove answers."""
    for name in _REQUIRED_COLUMNS:
        blank = frame[name].isna().to_numpy()
        if blank.any():
            row = int(blank.argmax())
            message = f"row {row} of the frame of answers has no {name}; drop the row, or fill it in"
            raise InvalidRequestError(message, parameter="answers")
    return frame


def _iterate_answer_sources(answers: Any) -> Iterator[tuple[str, Any]]:
    answers = convert_table(answers)
    if is_pandas_frame(answers):
        yield "answers", answers
    elif isinstance(answers, bytes | AnswerFile):
        yield "a set of answers", answers
    elif isinstance(answers, Mapping):
        yield "a set of answers", dict(answers)
    elif isinstance(answers, str | os.PathLike):
        path = expand_user_path(answers)
        try:
            folder = path.is_dir()
        except (OSError, ValueError):
            message = f"{str(path)[:60]!r} … is no path of answers; give files, a folder of them, or a frame"
            raise InvalidRequestError(message, parameter="answers") from None
        if folder:
            yield from _iterate_answer_files(path)
        else:
            yield path.name, _read_bytes(path, "answers")
    elif isinstance(answers, Iterable):
        for item in answers:
            yield from _iterate_answer_sources(item)
    else:
        message = f"a {type(answers).__name__} is no answers; give files, a folder of them, or a frame"
        raise InvalidRequestError(message, parameter="answers")


def _iterate_answer_files(path: Path) -> Iterator[tuple[str, bytes]]:
    # Hidden files come from the system that packed the folder.
    files = sorted(file for file in path.glob("*.json") if not file.name.startswith("."))
    if len(files) > _MAX_FILES:
        message = f"{path.name} has {len(files):,} files; at most {_MAX_FILES:,} are read"
        raise InvalidRequestError(message, parameter="answers")
    for file in files:
        data = _read_bytes(file, "answers")
        try:
            content = orjson.loads(data)
        except orjson.JSONDecodeError:
            content = None
        form = content.get("format", "") if isinstance(content, dict) else ""
        if not str(form).startswith("speechlab listening key"):  # which may be in one folder with answers
            yield file.name, data


def to_answers_by_system(answers: pd.DataFrame, method: str) -> pd.DataFrame:
    """The answers with one system in each row: of A/B each twice, as the share of either; of ABX with both as one."""
    if method not in {"ab", "abx"}:
        return answers
    names, others = (answers[side].astype(get_text_dtype()) for side in ("system", "other"))
    if method == "abx":
        return answers.assign(system=names + " or " + others)
    both = pd.concat([answers, answers.assign(system=others, score=-answers["score"])], ignore_index=True)
    return both.assign(score=(both["score"] + 1) / 2)


def _read_bytes(path: Path, argument: str) -> bytes:
    try:
        return read_regular_file(path)
    except FileNotFoundError:
        message = f"there is no file {path}; check the path"
    except (OSError, ValueError) as error:
        message = f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
    raise InvalidRequestError(message, parameter=argument)


def _build_answer_file_table(read: AnswerFile, key: ListeningKey, name: str) -> pd.DataFrame:
    if read.test != key.test:
        message = f"{name} answers test {read.test}, and the key is that of test {key.test}; give its own key"
        raise InvalidRequestError(message, parameter="key")
    trials = {trial.id: trial for trial in key.select_trials(read.part)}
    make = _build_choice_rows if METHODS[key.method].ratings is None else _build_rating_rows
    rows: list[dict[str, Any]] = []
    for answer in read.answers:
        trial = trials.pop(answer.trial, None)
        if trial is None or set(answer.sounds) - set(trial.sounds):
            message = f"{name} answers question {answer.trial}, which the key has not, or twice; the file was changed"
            raise InvalidRequestError(message, parameter="answers")
        if trial.role == "training":
            continue
        common = {
            "listener": read.listener,
            "item": trial.item,
            "question": key.question,
            "order": answer.order,
            "time_s": answer.time_s,
            "plays": sum(answer.plays.values()),
            "role": trial.role,
            "method": key.method,
            "trial": trial.id,
            "test": key.test,
            "session": read.started,
            "finished": read.finished is not None,
            **{f"{ABOUT_PREFIX}{name}": words for name, words in read.about.items()},
        }
        rows += [{**common, **row} for row in make(answer, trial, key, name)]
    unanswered = sum(trial.role != "training" for trial in trials.values())
    if read.finished is not None and unanswered:
        message = (
            f"{name} says that all is answered, and {unanswered} questions are not; the file was changed: ask its "
            "listener for it once more, or leave it out"
        )
        raise InvalidRequestError(message, parameter="answers")
    about = dict.fromkeys(name for row in rows for name in row if name.startswith(ABOUT_PREFIX))
    return pd.DataFrame(rows, columns=[*COLUMNS, *about]).astype(COLUMNS)


def _build_rating_rows(
    answer: Answer, trial: KeyTrial, key: ListeningKey, name: str
) -> Iterator[dict[str, Any]]:
    low, high = METHODS[key.method].ratings or (0, 0)
    if len(answer.scores) < len(trial.sounds):
        rated = f"{len(answer.scores)} of {len(trial.sounds)} sounds"
        message = f"{name} rates {rated} in question {trial.id}; the file was changed"
        raise InvalidRequestError(message, parameter="answers")
    for sound, score in answer.scores.items():
        if sound not in trial.sounds or not low <= score <= high:
            message = f"{name} rates {sound} with {score:g}; ratings of this test are {low} to {high}"
            raise InvalidRequestError(message, parameter="answers")
        system = trial.sounds[sound]
        role: str = trial.role
        attention = None
        if role == "check":
            attention = score <= _WORST_MOS
        elif key.method == "mushra" and system == key.reference:
            role, attention = "reference", score >= HIDDEN_REFERENCE_LEAST
        elif key.method == "mushra" and system in key.anchors:
            role = "anchor"
        yield {
            "system": system,
            "score": score,
            "position": answer.sounds.index(sound) + 1 if sound in answer.sounds else 0,
            "plays": answer.plays.get(sound, 0),
            "attention": attention,
            "role": role,
        }


def _build_choice_rows(
    answer: Answer, trial: KeyTrial, key: ListeningKey, name: str
) -> Iterator[dict[str, Any]]:
    choice = answer.choice
    offered = list(trial.sounds)[:2]  # X, the third sound of ABX, is not an answer
    if choice is None or (choice not in offered and (choice or key.method == "abx")):
        message = f"{name} chooses {choice!r} in question {trial.id}, which is none of its sounds"
        raise InvalidRequestError(message, parameter="answers")
    # in the author's order; sounds of a check belong to no system
    order = {system: place for place, system in enumerate(key.systems)}
    systems = sorted(trial.sounds.values(), key=lambda system: order.get(system, len(order)))
    first, second = systems[0], systems[-1]
    chosen = trial.sounds.get(choice, "")
    right = choice == trial.right
    offered_order = [sound for sound in answer.sounds if sound in offered]
    preferred = 0.0 if not chosen else 1.0 if chosen == first else -1.0
    yield {
        "system": first,
        "other": second,
        "choice": chosen,
        "score": float(right) if key.method == "abx" else preferred,
        "position": offered_order.index(choice) + 1 if choice in offered_order else 0,
        "attention": right if trial.role == "check" else None,
    }
