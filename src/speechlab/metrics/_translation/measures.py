"""Measures of translations: sacrebleu's metrics with the requested options, and functions of the user."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from speechlab._arguments import column_names
from speechlab.errors import InvalidRequestError, MissingDependencyError
from speechlab.metrics._alignment.units import auto_unit
from speechlab.metrics._arguments import check_choice
from speechlab.text import language_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

METRICS = ("chrf", "chrf++", "bleu", "ter")
# sacrebleu's tokenisers without a download; its other ones fetch a model on first use.
_TOKENIZERS = ("13a", "char", "intl", "ja-mecab", "ko-mecab", "none", "zh")
_NEEDS = {"ja-mecab": ("MeCab", "ja"), "ko-mecab": ("mecab_ko", "ko")}
# Arguments with another name here, or with an effect on the meaning of a result.
_OURS = {"self", "references", "tokenize", "trg_lang"}


def make_metrics(
    names: Sequence[str], tokenize: str, options: Mapping[str, Mapping[str, Any]] | None, *, single: bool
) -> dict[str, Any]:
    """Sacrebleu's metrics by their names."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    measure_names = column_names(names, "metrics")
    if not measure_names:
        message = f"metrics is empty; name some of {', '.join(map(repr, METRICS))}"
        raise InvalidRequestError(message, parameter="metrics")
    untyped_options: object = options  # type hints are not enforced at run time
    if untyped_options is not None and not isinstance(untyped_options, Mapping):
        message = f"options is {options!r:.60}; give a dict from metrics to dicts of sacrebleu's arguments"
        raise InvalidRequestError(message, parameter="options")
    for name in options or {}:
        check_choice(name, measure_names, "options", "options are for the requested metrics only, not for")
    classes: dict[str, tuple[Any, dict[str, Any]]] = {
        "chrf": (CHRF, {}),
        "chrf++": (CHRF, {"word_order": 2}),
        "bleu": (BLEU, {"tokenize": tokenize, "effective_order": single}),
        "ter": (TER, {}),
    }
    instances = {}
    for name in measure_names:
        check_choice(name, METRICS, "metrics", "there is no metric")
        kind, fixed = classes[name]
        instances[name] = _made(name, kind, fixed, (options or {}).get(name, {}))
        instances[name].num_refs = 1
    return instances


def _made(name: str, kind: Any, fixed: dict[str, Any], given: object) -> Any:
    allowed = [argument for argument in inspect.signature(kind.__init__).parameters if argument not in _OURS]
    if not isinstance(given, Mapping):
        message = f"options of {name!r} are {given!r:.60}; give a dict of sacrebleu's arguments"
        raise InvalidRequestError(message, parameter="options")
    for option in given:
        check_choice(option, allowed, "options", f"{name!r} has no option")
    try:
        return kind(**(fixed | dict(given)))
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        message = f"sacrebleu does not take the options {dict(given)!r:.200} for {name!r}: {error}"
        raise InvalidRequestError(message, parameter="options") from error


def tokenizer(tokenize: str, language: str | None) -> str:
    """The tokeniser for BLEU."""
    check_choice(tokenize, ("auto", *_TOKENIZERS), "tokenize", "there is no tokeniser")
    if tokenize != "auto":
        module, extra = _NEEDS.get(tokenize, ("sacrebleu", ""))
        if find_spec(module) is None:
            message = (
                f"the tokeniser {tokenize!r} needs MeCab; install it with: pip install 'sacrebleu[{extra}]'"
            )
            raise MissingDependencyError(message)
        return tokenize
    code = None if language is None else language_code(language)
    if code == "ja" and find_spec("MeCab") is not None and find_spec("ipadic") is not None:
        return "ja-mecab"
    if code is None or code == "zh":
        return code or "13a"
    return "char" if auto_unit(code) == "char" else "13a"


Scorer: TypeAlias = Callable[[list[str], list[str], list[str]], Iterable[float]]
"""A function from sources, translations and references to one score for each translation, such as COMET's."""


def checked_scorers(scorers: object, names: Iterable[str]) -> Mapping[str, Scorer]:
    """Return the scorers of the user."""
    if scorers is None:
        return {}
    if not isinstance(scorers, Mapping) or not all(
        isinstance(name, str) and callable(scorer) for name, scorer in scorers.items()
    ):
        message = f"scorers is {scorers!r:.60}; give a dict from names to functions"
        raise InvalidRequestError(message, parameter="scorers")
    reserved = set(names) & set(scorers)
    if reserved:
        message = f"the scorer {min(reserved)!r} has the name of another metric; give it a name of its own"
        raise InvalidRequestError(message, parameter="scorers")
    return scorers


def scored_by(
    scorer: Scorer, name: str, texts: tuple[list[str], list[str], list[str]]
) -> NDArray[np.float64]:
    """Return the score of each translation."""
    answers = scorer(*texts)
    try:
        values = np.array([float(value) for value in answers], dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array([math.nan])
    if len(values) != len(texts[1]) or not np.isfinite(values).all():
        message = (
            f"the scorer {name!r} gave {answers!r:.60}; it must give one finite number for each of "
            f"{len(texts[1])} texts"
        )
        raise InvalidRequestError(message, parameter="scorers")
    return values
