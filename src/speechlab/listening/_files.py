"""The files of a listening test: its key, and the answers of its listeners; read strictly."""

from __future__ import annotations

import codecs
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from speechlab.errors import InvalidRequestError

_Name = Annotated[str, Field(min_length=1)]
_Listener = Annotated[str, Field(min_length=1, max_length=200)]
_Token = Annotated[str, Field(pattern=r"^[0-9a-z]{1,40}$")]
# Role of a question: it counts, it is for practice, or it is an attention check.
Role = Literal["test", "training", "check"]
_Count = Annotated[int, Field(ge=0, le=1_000_000)]


class _FileModel(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class KeyTrial(_FileModel):
    """One question, with the systems behind its sounds."""

    id: _Token
    role: Role
    item: _Name
    sounds: Annotated[dict[_Token, _Name], Field(min_length=1)]
    right: _Token | None = None  # for ABX and for checks with a choice
    group: int = -1  # number of the item in the order of parts; -1 for everybody


class ListeningKey(_FileModel):
    """The key of a listening test, for its author alone: the system of each sound."""

    format: Literal["speechlab listening key 1"]
    test: _Token
    title: str
    method: Literal["mos", "ab", "abx", "mushra"]
    question: str
    seed: int
    systems: list[_Name]  # in the author's order
    reference: str | None = None
    anchors: list[str] = []  # the lowest first
    trials: list[KeyTrial]
    items_per_listener: int = 0  # 0 for all

    def select_trials(self, part: int) -> list[KeyTrial]:
        """Return the questions of a listener with a part of the items, and those to everybody.

        After the parts 0, 1, 2 … no item has been asked twice as long as another one has not been asked.
        """
        groups, each = 1 + max((trial.group for trial in self.trials), default=0), self.items_per_listener
        return [
            trial
            for trial in self.trials
            if trial.group < 0 or not each or (trial.group - part * each) % max(groups, 1) < each
        ]


class Answer(_FileModel):
    """The answer to one question."""

    trial: _Token
    order: Annotated[_Count, Field(ge=1)]
    sounds: list[_Token]
    scores: dict[_Token, int] = {}
    choice: str | None = None
    time_s: Annotated[float, Field(ge=0, le=1e7)]
    plays: dict[_Token, _Count] = {}


class AnswerFile(_FileModel):
    """The answers of one listener, with the part of the items that was asked, and what is said about the listener."""

    format: Literal["speechlab listening answers 1"]
    test: _Token
    listener: _Listener
    started: str = ""
    finished: str | None = None
    answers: list[Answer]
    part: Annotated[int, Field(ge=0)] = 0
    about: dict[_Name, str] = {}


_Model = TypeVar("_Model", bound=_FileModel)


def parse_model(model: type[_Model], data: object, what: str) -> _Model:
    """Read JSON or its content; a message names ``what`` it was and the first wrong place."""
    try:
        if not isinstance(data, bytes):
            return model.model_validate(data)
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            data = data.decode("utf-16", "replace").encode()
        return model.model_validate_json(data.removeprefix(codecs.BOM_UTF8))  # some editors add the mark
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        kind = "key" if model is ListeningKey else "answers"
        remedy = (
            "give the key that .save() wrote"
            if model is ListeningKey
            else "ask its listener for it once more, or leave it out"
        )
        message = f"{what} holds no {kind} of a listening test: {place}: {first['msg']}; {remedy}"
        raise InvalidRequestError(message, parameter=kind) from None
