"""Measures of translations: sacrebleu's metrics with the requested options, and functions of the user."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from speechlab._arguments import to_column_names
from speechlab._require import require
from speechlab.errors import InvalidRequestError, MissingDependencyError
from speechlab.metrics._alignment.units import choose_unit
from speechlab.metrics._inputs import check_choice, check_named_functions
from speechlab.text import language_code

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.metrics._translation.texts import Translations

METRICS = ("chrf", "chrf++", "bleu", "ter")
# sacrebleu's tokenizers without a download; its other ones fetch a model on first use.
_TOKENIZERS = ("13a", "char", "intl", "ja-mecab", "ko-mecab", "none", "zh")
_NEEDS = {"ja-mecab": ("MeCab", "ja"), "ko-mecab": ("mecab_ko", "ko")}
# Arguments with another name here, or with an effect on the meaning of a result.
_RESERVED_ARGUMENTS = {"self", "references", "tokenize", "trg_lang"}


def build_metrics(
    names: Sequence[str], tokenize: str, options: Mapping[str, Mapping[str, Any]] | None, *, single: bool
) -> dict[str, Any]:
    """Sacrebleu's metrics by their names."""
    require("sacrebleu")
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    measure_names = to_column_names(names, "metrics")
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
        instances[name] = _build_metric(name, kind, fixed, (options or {}).get(name, {}))
        instances[name].num_refs = 1
    return instances


def _build_metric(name: str, kind: Any, fixed: dict[str, Any], given: object) -> Any:
    allowed = [
        argument
        for argument in inspect.signature(kind.__init__).parameters
        if argument not in _RESERVED_ARGUMENTS
    ]
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


def choose_tokenizer(tokenize: str, language: str | None) -> str:
    """Return the tokenizer for BLEU."""
    check_choice(tokenize, ("auto", *_TOKENIZERS), "tokenize", "there is no tokenizer")
    if tokenize != "auto":
        module, extra = _NEEDS.get(tokenize, ("sacrebleu", ""))
        if find_spec(module) is None:
            message = (
                f"the tokenizer {tokenize!r} needs MeCab; install it with: pip install 'sacrebleu[{extra}]'"
            )
            raise MissingDependencyError(message)
        return tokenize
    code = None if language is None else language_code(language)
    if code == "ja" and find_spec("MeCab") is not None and find_spec("ipadic") is not None:
        return "ja-mecab"
    if code is None or code == "zh":
        return code or "13a"
    return "char" if choose_unit(code) == "char" else "13a"


# A function from sources, translations and references to one score for each translation, such as COMET's.
Scorer: TypeAlias = Callable[[list[str], list[str], list[str]], Iterable[float]]


class Measurement(NamedTuple):
    """A measure of some translations."""

    score: float  # of the corpus
    signature: str  # with which the same score can be computed again
    statistics: NDArray[Any]  # figures of each translation, shape (translations, figures)
    compute: Callable[[list[Any]], float]  # the score from sums of these figures


def compute_measures(
    metrics: Mapping[str, Any], scorers: object, texts: Translations, system: str
) -> dict[str, Measurement]:
    """Sacrebleu's metrics and the user's scorers of the translations of one system."""
    translations = texts.systems[system]
    # In sacrebleu's order: all first references, then all second ones, and so on; None if missing.
    streams = list(zip_longest(*texts.references))
    measures = {
        name: _measure_with_sacrebleu(metric, translations, streams) for name, metric in metrics.items()
    }
    sources = texts.sources or [""] * len(translations)
    for name, scorer in check_named_functions(scorers, "scorers", metrics).items():
        answers: Any = scorer(sources, translations, texts.first_references)
        try:
            values = np.array([float(value) for value in answers], dtype=np.float64)
        except (TypeError, ValueError):
            values = np.array([math.nan])
        if len(values) != len(translations) or not np.isfinite(values).all():
            message = (
                f"the scorer {name!r} gave {answers!r:.60}; give one finite number for each of "
                f"{len(translations)} texts"
            )
            raise InvalidRequestError(message, parameter="scorers")
        statistics = np.column_stack([values, np.ones(len(values))])
        signature = f"scorer:{getattr(scorer, '__qualname__', name)}"
        measures[name] = Measurement(
            float(values.mean()), signature, statistics, lambda sums: sums[0] / sums[1]
        )
    return measures


def _measure_with_sacrebleu(metric: Any, translations: list[str], streams: list[Any]) -> Measurement:
    sums = metric._extract_corpus_statistics(translations, streams)  # noqa: SLF001 - sums of these are the corpus score
    score = metric._aggregate_and_compute(sums).score  # noqa: SLF001 - as above
    compute = metric._compute_score_from_stats  # noqa: SLF001 - as above
    signature = str(metric.get_signature())
    return Measurement(score, signature, np.array(sums), lambda row: cast("float", compute(row).score))
