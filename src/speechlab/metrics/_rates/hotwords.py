"""Recall and precision of the words that matter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from speechlab._arguments import require_columns
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.units import prepare
from speechlab.metrics._arguments import as_texts
from speechlab.text import normalizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pandas as pd

_TYPES = {
    "hotword": "string",
    "in_reference": "Int64",
    "in_hypothesis": "Int64",
    "hits": "Int64",
    "recall": "Float64",
    "precision": "Float64",
}
_NEEDED = ("unit", "normalizer", "reference_normalized", "hypothesis_normalized")


def hotword_recall(
    scored: pd.DataFrame, hotwords: Iterable[str] | Mapping[str, Iterable[str]]
) -> pd.DataFrame:
    """Recall and precision of given words and phrases: names, products, glossary terms.

    An occurrence in a hypothesis is a hit if the reference of the same row has one for it, wherever it stands.

    Args:
        scored: What :func:`speechlab.metrics.score` returned.
        hotwords: The words; or for each word its aliases, which count as the word itself, such as
            ``{"GitHub": ["Git Hub", "ギットハブ"]}``. They are normalised like the texts. Where one is part of
            another, the longer one is found.

    Returns:
        One row for each word, in the order given: ``hotword``, ``in_reference`` and ``in_hypothesis`` (how often it
        occurs), ``hits``, ``recall`` (hits over occurrences in references) and ``precision`` (hits over occurrences
        in hypotheses), fractions that are missing where there is nothing to divide by.

    Raises:
        InvalidRequestError: The table was not scored, or a word is empty, or nothing of it is left after
            normalisation, or two words are one after normalisation.

    Example:
        >>> import pandas as pd
        >>> from speechlab.metrics import score
        >>> frame = pd.DataFrame(
        ...     {"text": ["ask Ada", "Ada is here"], "hypothesis": ["ask Aida", "Ada is here"]}
        ... )
        >>> float(hotword_recall(score(frame, language="en"), ["Ada"])["recall"][0])
        0.5
    """
    import pandas as pd

    require_columns(scored, *_NEEDED, argument="scored", hint="Pass what speechlab.metrics.score returned")
    aliases = _aliases(hotwords)

    @cache
    def find_by(unit: str, rules: str) -> Callable[[str], list[str]]:
        return finder(aliases, unit, rules)

    counts = {word: [0, 0, 0] for word in aliases}
    for unit, rules, said, heard in scored[list(_NEEDED)].dropna().itertuples(index=False):
        find = find_by(unit, rules)
        here, there = find(said), find(heard)
        for word in {*here, *there}:
            n, m = here.count(word), there.count(word)
            counts[word] = [total + more for total, more in zip(counts[word], (n, m, min(n, m)), strict=True)]
    rows = [
        (word, n, m, hits, hits / n if n else None, hits / m if m else None)
        for word, (n, m, hits) in counts.items()
    ]
    return pd.DataFrame(rows, columns=list(_TYPES)).astype(_TYPES)


def _aliases(hotwords: Iterable[str] | Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    if isinstance(hotwords, str):
        message = f"hotwords is one text, {hotwords!r}; give a list of words"
        raise InvalidRequestError(message, parameter="hotwords")
    if isinstance(hotwords, Mapping):
        words = as_texts(list(hotwords), "hotwords", "give texts only")
        return {
            word: [word, *as_texts(others, f"aliases of {word!r}", "give texts only")]
            for word, others in zip(words, hotwords.values(), strict=True)
        }
    return {word: [word] for word in as_texts(hotwords, "hotwords", "give texts only")}


def finder(
    aliases: dict[str, list[str]], unit: str, rules: str, *, what: str = "hotword"
) -> Callable[[str], list[str]]:
    """A function from a normalised text to the hotwords in it, each as often as it occurs.

    Args:
        aliases: The words, and for each the spellings that count as it.
        unit: ``"word"`` to find whole words only.
        rules: Signature or id of the normaliser of the texts.
        what: What errors call a word. Two hotwords must differ after normalisation; terms may share a translation,
            and all of them are found where it stands.
    """
    # The rules of a custom function are not known here; its words are taken as they are.
    normalize: Any = str if rules.startswith("custom:") else normalizer(rules.partition("#")[0])
    words: dict[str, list[str]] = {}
    for word, spellings in aliases.items():
        for spelling in spellings:
            form = " ".join(normalize(spelling).split())
            if not form:
                message = f"nothing is left of the {what} {spelling!r} after normalisation ({rules})"
                raise InvalidRequestError(message, parameter="hotwords")
            owners = words.setdefault(form, [])
            if word not in owners:
                owners.append(word)
            if len(owners) > 1 and what == "hotword":
                message = (
                    f"the hotwords {owners[0]!r} and {word!r} are both {form!r} after normalisation ({rules})"
                )
                raise InvalidRequestError(message, parameter="hotwords")
    if not words:
        return lambda _: []
    longest_first = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    spaced = prepare(unit, None, None).unit == "word"
    pattern = re.compile(rf"(?<!\S)(?:{longest_first})(?!\S)" if spaced else longest_first)
    return lambda text: [word for found in pattern.findall(" ".join(text.split())) for word in words[found]]
