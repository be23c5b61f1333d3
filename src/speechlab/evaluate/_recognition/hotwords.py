"""Benefit and cost of hotwords: settings with them against the setting without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from speechlab.display import percent
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._finding import Finding
from speechlab.evaluate._speech.mixed import languages_of_rows, mixed_normalizer
from speechlab.evaluate._speech.summary import BLOCK
from speechlab.evaluate._writing.columns import listed, p_words
from speechlab.metrics import compare, holm, hotword_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from speechlab.evaluate._recognition.systems import System

_LEVEL = 0.05
_GROUP = "speechlab: language and condition"
_COUNTS = ("hotwords_said", "hotwords_hit", "hotwords_added", "unbiased_errors", "unbiased_length")
_MEASURES = ("missed", "added", "rest")


class Hotwords(NamedTuple):
    """The effects of hotwords.

    Attributes:
        table: The rows, with the counts of :func:`speechlab.metrics.hotword_counts`.
        summary: One row for each language, condition and system.
        verdicts: Benefits and costs, in sentences.
    """

    table: pd.DataFrame
    summary: pd.DataFrame
    verdicts: tuple[Finding, ...]


def hotword_effects(table: pd.DataFrame, systems: Sequence[System], language: str) -> Hotwords:
    """Count the hotwords of all settings in the rows of each, and compare settings with and without them.

    Args:
        table: Scored rows.
        systems: The systems; systems of the same service are compared.
        language: Column of the language.
    """
    words = list(dict.fromkeys(word for one in systems for word in one.words))
    if not words:
        return Hotwords(table, pd.DataFrame(), ())
    counted = table.assign(**_counted(table, words, language))
    sides = [name for name in ("condition", "system") if name in table.columns]
    keys = [language, *sides]
    done = counted[counted["hotwords_said"].notna()]
    groups = done.groupby(keys[:-1], observed=True, sort=False).ngroup() if len(keys) > 1 else 0
    done = done.assign(**{_GROUP: groups}).sort_values(_GROUP, kind="stable").drop(columns=_GROUP)
    sums = done.groupby(keys, observed=True, sort=False)[list(_COUNTS)].sum().reset_index()
    sums = sums.rename(columns={language: "language"})
    known = sums["hotwords_said"] > 0
    summary = sums.assign(
        recall=(sums["hotwords_hit"] / sums["hotwords_said"].where(known)).astype("Float64"),
        rest_rate=(sums["unbiased_errors"] / sums["unbiased_length"].clip(lower=1)).astype("Float64"),
    )
    tests = [
        (group, base.name, one.name, measure, found)
        for group, part in done.groupby(
            [name for name in keys if name != "system"], observed=True, sort=False
        )
        for base, one in _pairs(systems)
        for measure in _MEASURES
        if (found := _test(part, base.name, one.name, measure)) is not None
    ]
    chances: Any = holm([found.p for *_, found in tests]) if tests else []
    grouped: dict[Any, dict[str, Any]] = {}
    for (group, base_name, name, measure, found), p in zip(tests, chances, strict=True):
        grouped.setdefault((group, base_name, name), {})[measure] = (found, float(p))
    verdicts = []
    columns = (*(f"p_{measure}" for measure in _MEASURES), "verdict")
    told: dict[str, list[Any]] = {column: [None] * len(summary) for column in columns}
    for (group, base_name, name), found in grouped.items():
        part = summary[(summary["language"] == group[0])]
        if len(group) > 1:
            part = part[part["condition"] == group[1]]
        before, after = (part[part["system"] == one].iloc[0] for one in (base_name, name))
        verdict, few = _verdict(found), _few(found)
        for column, value in zip(columns, (*(found[one][1] for one in _MEASURES), verdict), strict=True):
            told[column][summary.index.get_loc(after.name)] = value
        label = ", ".join(map(str, group))
        sentence = f"{label}: {name} against {base_name}: {_told(before, after, found)}. {verdict}{few}"
        chances_of = {f"p_{measure}": found[measure][1] for measure in _MEASURES}
        condition = str(group[1]) if len(group) > 1 else ""
        verdicts.append(Finding(sentence, str(group[0]), condition, (name, base_name), chances_of))
    kinds: Any = dict(zip(columns, (*["Float64"] * len(_MEASURES), "string"), strict=True))
    summary = summary.assign(**{name: pd.array(told[name], dtype=kinds[name]) for name in columns})
    return Hotwords(counted, summary, tuple(verdicts))


def _counted(table: pd.DataFrame, words: Sequence[str], language: str) -> pd.DataFrame:
    """Count the hotwords of each row, by the rules of its language or languages."""
    codes = languages_of_rows(table[language])
    several = codes.map(len) > 1
    parts = [hotword_counts(table[~several], hotwords=words)]
    for found, part in table[several].groupby(codes[several]):
        normalize = mixed_normalizer(found)
        parts.append(
            hotword_counts(part, hotwords={word: list(filter(None, [normalize(word)])) for word in words})
        )
    return pd.concat(parts).loc[table.index]


def _pairs(systems: Sequence[System]) -> list[tuple[System, System]]:
    """Pairs of the first setting without hotwords of a service, and each of its settings with hotwords."""
    found = []
    for one in systems:
        base = next((other for other in systems if other.lab is one.lab and not other.words), None)
        if one.words and base is not None:
            found.append((base, one))
    return found


def _test(part: pd.DataFrame, base: str, name: str, measure: str) -> Any:
    """Return the exact test of one measure, paired by recording."""
    sides = [part[part["system"] == one].set_index("recording") for one in (base, name)]
    counted = []
    for side in sides:
        if measure == "missed":
            errors, length = side["hotwords_said"] - side["hotwords_hit"], side["hotwords_said"]
        elif measure == "added":
            errors, length = side["hotwords_added"], side["hotwords_said"] * 0 + 1
        else:
            errors, length = side["unbiased_errors"], side["unbiased_length"]
        counted.append(side.assign(errors=errors, reference_length=length))
    try:
        blocks = BLOCK if BLOCK in part.columns else None
        return compare(*counted, names=(base, name), draws=2, groups=blocks)
    except InvalidRequestError:  # no common recording
        return None


def _told(before: Any, after: Any, found: dict[str, Any]) -> str:
    said, words = int(after["hotwords_said"]), []
    p_missed, p_added, p_rest = (found[name][1] for name in _MEASURES)
    if said:
        went = _went(before, after, "hotwords_hit")
        words.append(f"hotwords that came through went {went} of {said} said ({p_words(p_missed)})")
    else:
        words.append("no hotword is said in these recordings")
    verb = "" if said else "went "
    added = _went(before, after, "hotwords_added")
    words.append(f"hotwords put where nobody said them {verb}{added} ({p_words(p_added)})")
    rates = f"from {percent(before['rest_rate'])} to {percent(after['rest_rate'])}"
    return listed([*words, f"the error rate of the rest {rates} ({p_words(p_rest)})"])


def _went(before: Any, after: Any, name: str) -> str:
    return f"from {int(before[name])} to {int(after[name])}"


def _verdict(found: dict[str, Any]) -> str:
    good = [name for name, (one, p) in found.items() if p < _LEVEL and one.difference < 0]
    bad = [name for name, (one, p) in found.items() if p < _LEVEL and one.difference > 0]
    names = {"missed": "hotwords come through", "added": "hotwords put in", "rest": "errors of the rest"}
    helps = (
        "Hotwords help"
        if "missed" in good
        else "Hotwords make it worse"
        if "missed" in bad
        else "No help is shown"
    )
    costs = " and ".join(names[name] for name in bad if name != "missed")
    return f"{helps}; {f'they cost more {costs}' if costs else 'no cost is shown'}."


def _few(found: dict[str, Any]) -> str:
    least = min(one.blocks for one, _ in found.values())
    return f" {least} recording{' is' if least == 1 else 's are'} too few to show much." if least < 20 else ""
