"""The methods of listening tests, and the questions of a test: for the browser, and in the key for the author."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

from speechlab.errors import InvalidRequestError
from speechlab.listening._files import KeyTrial, Role

_MAX_QUESTIONS = 2_000
# Low and mid-range anchor; source: ITU-R BS.1534-3, 5.1.
ANCHORS_HZ = {"anchor 3.5 kHz": 3_500.0, "anchor 7 kHz": 7_000.0}


class Method(NamedTuple):
    """A method of a listening test."""

    measure: str  # name of a system's mean
    difference: str  # name of a pair's difference
    scale: str  # of the answers, for their agreement
    digits: int
    smallest: float  # difference that matters, by default
    largest: float  # possible difference
    ratings: tuple[int, int] | None = None  # lowest and highest; None for a choice


METHODS = {
    "mos": Method("mean opinion score", "difference of means", "ordinal", 2, 0.2, 4.0, (1, 5)),
    "ab": Method(
        "share preferred",
        "share preferring the first less share preferring the second",
        "nominal",
        2,
        0.2,
        1.0,
    ),
    "abx": Method("share right", "share right less 0.5", "nominal", 2, 0.15, 0.5),
    "mushra": Method("MUSHRA score", "difference of means", "interval", 1, 5.0, 100.0, (0, 100)),
}


class Stimulus(NamedTuple):
    """The recording of a sound, and its treatment."""

    row: int
    kind: str  # ``"clip"``, ``"noise"`` for added noise, or the name of an anchor
    seed: int  # of the dither and the noise


@dataclass(frozen=True)
class Material:
    """The recordings and texts of a test."""

    rows: Mapping[tuple[str, str], int]  # of the table, by item and system
    items: Sequence[str]
    systems: Sequence[str]
    texts: Mapping[str, tuple[str, str]]  # text of an item and its language, if listeners see it
    reference: str | None


@dataclass
class Questions:
    """The questions."""

    test: str
    order_seed: str  # of each listener's order
    shown: list[dict[str, Any]] = field(default_factory=list)  # for the browser
    key: list[KeyTrial] = field(default_factory=list)  # for the author
    sounds: dict[str, Stimulus] = field(default_factory=dict)


def list_question_systems(
    material: Material, method: str, pairs: Sequence[tuple[str, str]], item: str
) -> list[tuple[str, ...]]:
    """Return the systems of each question about an item."""
    rows, systems = material.rows, material.systems
    if method == "mos":
        return [(system,) for system in systems if (item, system) in rows]
    if method == "mushra":
        absent = [name for name in systems if (item, name) not in rows]
        if absent:
            message = (
                f"item {item!r} has no recording of {absent[0]!r}; MUSHRA compares all systems in each item"
            )
            raise InvalidRequestError(message, parameter="frame")
        return [tuple(systems)]
    compared = pairs or list(combinations(systems, 2))
    return [pair for pair in compared if all((item, system) in rows for system in pair)]


def check_question_count(
    material: Material, method: str, pairs: Sequence[tuple[str, str]], training: Sequence[str]
) -> None:
    """Refuse too many questions, or none that counts, before the recordings are read."""
    systems = material.systems
    if method != "mos" and len(systems) == 1:
        message = (
            f"there are only recordings of {systems[0]!r}, and {method!r} compares systems; add those of another "
            "system, or use method='mos'"
        )
        raise InvalidRequestError(message, parameter="system")
    practiced = set(training)
    counts = {item: len(list_question_systems(material, method, pairs, item)) for item in material.items}
    counted = sum(count for item, count in counts.items() if item not in practiced)
    total = sum(counts.values())
    if practiced and not counted and practiced.issuperset(material.items):
        message = "all items are for practice, so no answer would count; give training=0, or more items"
        raise InvalidRequestError(message, parameter="training")
    if not counted:
        message = (
            "there are no questions: no item of the test has recordings of two compared systems"
            if material.rows
            else "there are no questions: the frame has no rows"
        )
        raise InvalidRequestError(message, parameter="frame")
    if total > _MAX_QUESTIONS:
        message = (
            f"the test has {counted:,} questions and {total - counted:,} for practice, but at most "
            f"{_MAX_QUESTIONS:,} in all are allowed; give fewer items or systems"
        )
        more = ", or only some pairs=" if method in {"ab", "abx"} else ""
        raise InvalidRequestError(message + more, parameter="frame")


class Planner:
    """Makes the questions of a test; all names are random, drawn from a seed that listeners do not know."""

    def __init__(
        self,
        material: Material,
        method: str,
        seed: tuple[object, ...],
        *,
        pairs: Sequence[tuple[str, str]],
        training: Sequence[str],
        checks: int,
    ) -> None:
        self._material = material
        self._method = method
        self._pairs, self._training, self._checks = pairs, training, checks
        # A test with other items, systems or settings has other names, even with the same seed.
        drawn_from = repr(
            (seed, method, pairs, list(material.rows), material.texts, material.reference, training, checks)
        )
        self._random = random.Random(drawn_from)  # noqa: S311 - kept, so that the same test can be made again
        self.plan = Questions(self._create_token(), self._create_token())

    def _create_token(self) -> str:
        return f"{self._random.getrandbits(64):016x}"

    def _add_sound(self, item: str, system: str, kind: str = "clip") -> str:
        token = self._create_token()
        row = self._material.rows[item, system]
        self.plan.sounds[token] = Stimulus(row, kind, self._random.getrandbits(63))
        return token

    def build_questions(self, rate: Callable[[int], int]) -> Questions:
        """Make the questions of all items; ``rate`` gives the sample rate in Hz of a row."""
        tested = [item for item in self._material.items if item not in self._training]
        for item in self._training:
            self._add_item_questions(item, "training", rate)
        for item in tested:
            self._add_item_questions(item, "test", rate)
        groups = random.Random(self.plan.order_seed).sample(range(len(tested)), len(tested))  # noqa: S311 - as above
        places = dict(zip(tested, groups, strict=True))
        for place, trial in enumerate(self.plan.key):
            group = places[trial.item] if trial.role == "test" else -1
            self.plan.key[place] = trial.model_copy(update={"group": group})
            self.plan.shown[place]["group"] = group
        for _ in range(self._checks):
            self._add_attention_check(tested)
        order = self._random.sample(range(len(self.plan.shown)), len(self.plan.shown))
        # Practice comes first. The position of a question does not reveal its systems.
        order.sort(key=lambda place: not self.plan.shown[place]["practice"])
        # Listeners set the volume with a sound of the first question. It is not a check, which may be noise.
        first = next(place for place in order if self.plan.key[place].role != "check")
        order.remove(first)
        order.insert(0, first)
        self.plan.shown = [self.plan.shown[place] for place in order]
        return self.plan

    def _add_item_questions(self, item: str, role: Role, rate: Callable[[int], int]) -> None:
        for systems in list_question_systems(self._material, self._method, self._pairs, item):
            if self._method == "mos":
                self._add_question(item, role, {self._add_sound(item, systems[0]): systems[0]})
            elif self._method == "mushra":
                reference = str(self._material.reference)
                sounds = {self._add_sound(item, name): name for name in systems if name != reference}
                sounds[self._add_sound(item, reference)] = reference
                rate_hz = rate(self._material.rows[item, reference])
                for name, cutoff in ANCHORS_HZ.items():
                    if rate_hz / 2 > cutoff + 1_000:
                        sounds[self._add_sound(item, reference, name)] = name
                self._add_question(item, role, sounds, reference=self._add_sound(item, reference))
            else:
                self._add_comparison(item, role, [(system, "clip", system) for system in systems])

    def _add_comparison(self, item: str, role: Role, sides: list[tuple[str, str, str]]) -> None:
        """Add a question about two sounds; each side has a system, a kind of sound, and its name in the key."""
        sounds = {self._add_sound(item, system, kind): name for system, kind, name in sides}
        if self._method == "ab":
            self._add_question(item, role, sounds, right=next(iter(sounds)) if role == "check" else None)
            return
        same = self._random.randrange(2)
        system, kind, name = sides[same]
        x = self._add_sound(item, system, kind)
        self._add_question(item, role, {**sounds, x: name}, right=list(sounds)[same], x=x)

    def _add_attention_check(self, items: Sequence[str]) -> None:
        tested = set(items)
        audible = {system for pair in self._pairs for system in pair} or set(self._material.systems)
        item, system = self._random.choice(
            [pair for pair in self._material.rows if pair[0] in tested and pair[1] in audible]
        )
        if self._method == "mos":
            self._add_question(item, "check", {self._add_sound(item, system, "noise"): "check"})
        else:
            self._add_comparison(item, "check", [(system, "clip", "clean"), (system, "noise", "check")])

    def _add_question(
        self, item: str, role: Role, sounds: dict[str, str], right: str | None = None, **more: str
    ) -> None:
        trial = self._create_token()
        text, lang = self._material.texts.get(item, ("", ""))
        answers = [token for token in sounds if token != more.get("x")]
        described = {
            "id": trial,
            "practice": role == "training",
            "sounds": sorted(answers),
            "text": text,
            "lang": lang,
            "group": -1,
        }
        self.plan.shown.append({**described, **more})
        self.plan.key.append(KeyTrial(id=trial, role=role, item=item, sounds=sounds, right=right))
