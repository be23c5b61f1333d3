"""Which voice or recognizer to take, how much is understood, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing, is_number
from speechlab.display import format_count, format_percent, join_with_and
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._made import NO_SPEAKER, SIDES
from speechlab.evaluate._speech.blocks import BLOCK
from speechlab.evaluate._speech.ranking import score_for_ranking
from speechlab.evaluate._speech.speed import select_least_concurrent
from speechlab.evaluate._speech.summary import (
    UNITS,
    build_full_names,
    choose_ranking_units,
    choose_start_column,
    summarize_speech,
)
from speechlab.evaluate._statistics import MIN_PAIRS
from speechlab.evaluate._writing.columns import capitalize_sentence, describe_p, format_language
from speechlab.evaluate._writing.contents import Conclusion
from speechlab.evaluate._writing.differences import ENOUGH
from speechlab.metrics import rank

if TYPE_CHECKING:
    import pandas as pd

# Number of languages whose certainty a sentence tells.
_MAX_CERTAINTIES = 2
LEVEL = 0.05
_END_COLUMN = "speechlab: who"
# Number of items below which nothing is advised.
_MIN_ITEMS = 2
# Maximum number of systems that a sentence names; of more systems it gives the number.
_MAX_NAMES = 3
# Number of further items above which more of them are no practical solution.
FAR = 5_000
# Timed calls of each from which one that is sooner in all of them is so beyond chance (2 of 70 orders).
_MIN_CALLS = 4
# Ratio of starting times from which a sentence tells it.
_MIN_SPEED_RATIO = 1.5


def recommend_system(systems: pd.DataFrame, speed: pd.DataFrame, what: str = "sentence") -> dict[str, Any]:
    """Advise on a choice between systems.

    Returns:
        ``name``, the system to take; ``certainty`` (settled, open, none), ``error_rate`` and ``items`` (that all of
        them have), ``more`` (further items that would settle it, if a practical number does); ``lead``, what to do,
        and ``advice``, how sure it is, each as the part of a sentence.
    """
    tied = systems.loc[~(systems["p_best"] < LEVEL).fillna(value=False).astype(bool), "system"].tolist()
    starts = _summarize_starts(speed)
    best = _choose_best(systems, tied, starts)
    rates = systems.set_index("system")["error_rate"]
    count = int(systems["utterances"].iloc[0])
    items = format_count(count, what)
    shared = " that all have" if "excluded" in systems and systems["excluded"].any() else ""
    facts = {"name": best, "error_rate": rates[best], "items": count, "certainty": "open", "more": None}
    facts["lead"] = f"take {best}"
    rest = [name for name in systems["system"] if name != best]
    if not rest:
        single = "it had no other to be compared with; give two or more"
        return facts | {"certainty": "none", "advice": single}
    rivals = [name for name in tied if name != best]
    next_one = (rivals or rest)[0]
    errors = f"error rate {format_percent(rates[best])}, {next_one} {format_percent(rates[next_one])}"
    if not rivals:
        advice = (
            f"it makes significantly fewer errors than {_format_names(rest)} on {items}{shared} ({errors})"
        )
        advice += _describe_speed(best, rest, starts)
        return facts | {"certainty": "settled", "advice": advice}
    if count < _MIN_ITEMS:
        advice = f"{items} cannot tell {_format_names([best, *rivals])} apart; take {ENOUGH} or more"
        return facts | {"certainty": "none", "more": ENOUGH - count, "advice": advice}
    equals = [name for name in rivals if rates[name] == rates[best]]
    facts["lead"] = _describe_undecided(best, rivals, equals, starts)
    if count < MIN_PAIRS:
        advice = f"{items} cannot tell {best} from {_format_names(rivals)} by errors; take {ENOUGH} or more"
        return facts | {"more": ENOUGH - count, "advice": advice}
    standing = f"on these {items}{shared}, "
    if equals:
        standing += f"{_format_names([best, *equals])} make equally many errors"
    else:
        standing += f"{best} makes the fewest errors ({errors}), but that may be chance against "
        standing += _format_names(rivals)
    needed = systems.set_index("system")["needed"].get(rivals[0])
    more = max(int(needed) - count, 1) if is_number(needed) and needed == needed else None
    if more is None or more > FAR:
        return facts | {"advice": f"{standing}; more {what}s would hardly settle it"}
    about = more if more < 100 else round(more, 2 - len(str(more)))  # two significant digits
    settling = f"about {about:,} more {what if more == 1 else f'{what}s'} would settle it"
    return facts | {"more": more, "advice": f"{standing}; {settling}"}


def build_choice_conclusion(choice: pd.DataFrame) -> Conclusion:
    """Return the answer for all languages: what to take, and how sure that is."""
    rows = choice.to_dict("records")
    several = len(rows) > 1
    decided = [row for row in rows if not is_missing(row["name"]) and row["certainty"] != "none"]
    leads = {str(row["lead"]) for row in decided}
    if not decided:
        lead = "Nothing can be advised."
    elif len(leads) == 1 and len(decided) == len(rows):
        lead = f"{capitalize_sentence(*leads)}."
    elif all(row["lead"] == f"take {row['name']}" for row in decided):
        choices = [f"{row['name']} for {format_language(row['language'])}" for row in decided]
        lead = f"Take {join_with_and(choices)}."
    else:
        lead = " ".join(f"{format_language(row['language'])}: {row['lead']}." for row in decided)
    certainties = [
        f"{format_language(row['language'])}: {str(row['advice']).rstrip('.')}"
        if several
        else capitalize_sentence(str(row["advice"]).rstrip("."))
        for row in rows
    ]
    return Conclusion(lead, f"{'. '.join(certainties)}." if certainties else "")


def _choose_best(systems: pd.DataFrame, tied: list[str], starts: pd.DataFrame) -> str:
    """Return the system with the lowest rate; of systems with the same rate, the one that starts first."""
    first = systems.iloc[0]
    equals = systems.loc[systems["error_rate"] == first["error_rate"], "system"]
    timed_names = [name for name in equals if name in starts.index and name in tied]
    if len(timed_names) == len(equals) > 1:
        return str(starts.loc[timed_names, "median"].astype("float64").idxmin())
    return str(first["system"])


def _summarize_starts(speed: pd.DataFrame) -> pd.DataFrame:
    """When the timed calls of each system had their first sound, or their text: median, lowest, highest (s)."""
    start = choose_start_column(speed)
    if start not in speed.columns or "system" not in speed.columns:
        speed = speed.reindex(columns=["system", start, "error"])
    calls = select_least_concurrent(speed)
    calls = calls[calls["error"].isna()]
    return calls.groupby("system", observed=True)[start].agg(["median", "min", "max", "count"]).dropna()


def _describe_earlier_start(first: str, second: str, starts: pd.DataFrame) -> str:
    """Return how much sooner a system starts than another one, if it does so in every call; otherwise empty."""
    if not {first, second} <= set(starts.index) or starts["count"].loc[[first, second]].min() < _MIN_CALLS:
        return ""
    mine, theirs = (starts.loc[name].astype("float64").to_dict() for name in (first, second))
    if mine["max"] >= theirs["min"] or theirs["median"] < _MIN_SPEED_RATIO * mine["median"]:
        return ""
    ratio = theirs["median"] / max(mine["median"], 1e-3)
    times = f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"
    return f"{times} times sooner ({mine['median']:.2f} s, {second} {theirs['median']:.2f} s)"


def _describe_speed(best: str, candidates: list[str], starts: pd.DataFrame) -> str:
    """Return whether a system starts sooner or later than the next one that was timed."""
    rival = next((name for name in candidates if name in starts.index), "")
    if words := _describe_earlier_start(best, rival, starts):
        return f", and starts {words}"
    words = _describe_earlier_start(rival, best, starts)
    return f"; {rival} starts {words}" if words else ""


def _describe_undecided(best: str, rivals: list[str], equals: list[str], starts: pd.DataFrame) -> str:
    """What to do where errors decide nothing: what starts sooner, or that nothing is decided."""
    slower = [words for rival in rivals if (words := _describe_earlier_start(best, rival, starts))]
    if len(slower) == len(rivals):
        return f"take {best}, which starts {slower[0]}"
    lead = f"prefer {best} for now: it is ahead, too narrowly to be sure"
    if equals:
        choice_words = (
            f"any of {_format_names([best, *equals])}" if len(equals) > 1 else f"{best} or {equals[0]}"
        )
        lead = f"take {choice_words}: they are level"
    quick = next(
        ((name, words) for name in rivals if (words := _describe_earlier_start(name, best, starts))), None
    )
    return lead if quick is None else f"{lead}, but {quick[0]} starts {quick[1]}"


def _format_names(names: list[str]) -> str:
    return join_with_and(names) if len(names) <= _MAX_NAMES else f"{names[0]} and {len(names) - 1} others"


def build_rates_conclusion(
    summary: pd.DataFrame, table: pd.DataFrame, text: str, language: str, *, of_speakers: bool = False
) -> Conclusion:
    """Return how much was understood in each language, and how sure that is."""
    if of_speakers and summary["voice"].nunique() > 1:
        return _build_speakers_conclusion(summary, table, text, language)
    unscored = int(table["errors"].isna().sum())
    verbs = ("has", "counts") if unscored == 1 else ("have", "count")
    unscored_words = (
        f"{unscored:,} of {format_count(len(table), 'row')} {verbs[0]} no score and {verbs[1]} nowhere"
    )
    rated = summary.assign(unit=choose_ranking_units(summary), voice_name=build_full_names(summary))[
        summary["ranking_rate"].notna()
    ]
    if not len(rated):
        return Conclusion(
            "Nothing could be scored.", f"{capitalize_sentence(unscored_words)}." if unscored else ""
        )
    by_language = [(str(code), lines) for code, lines in rated.groupby("language", sort=False)]
    lead = "; ".join(_describe_rate(format_language(code), lines) for code, lines in by_language)
    clauses = [
        _describe_certainty(code, lines, table[table[language] == code], text, language)
        for code, lines in by_language[:_MAX_CERTAINTIES]
    ]
    clauses += [unscored_words] if unscored else []
    return Conclusion(f"{capitalize_sentence(lead)}.", f"{'; '.join(clauses)}.")


def _build_speakers_conclusion(
    summary: pd.DataFrame, table: pd.DataFrame, text: str, language: str
) -> Conclusion:
    """Return the rate of all speakers, who are drawn as wholes where they are enough, and those at both ends."""
    pooled = table.assign(voice=NO_SPEAKER, speaker=table["voice"])
    count = table["voice"].nunique()
    if count >= MIN_PAIRS:
        pooled = pooled.assign(**{BLOCK: table["voice"].astype(str)})
    answer = build_rates_conclusion(
        summarize_speech(pooled, language, table.iloc[:0]), pooled, text, language
    )
    spans = {
        str(code): " to ".join(
            f"{format_percent(lines['ranking_rate'].iloc[at])} ({lines['voice_name'].iloc[at]})"
            for at in (0, -1)
        )
        for code, lines in summary[summary["ranking_rate"].notna()].groupby("language", sort=False)
        if len(lines) > 1
    }
    ranges = [
        f"{f'{format_language(code)} ' if len(spans) > 1 else ''}from {rates}"
        for code, rates in spans.items()
    ]
    range_words = f"; of {format_count(count, 'speaker')}" + (
        f", each {join_with_and(ranges)}" if ranges else ""
    )
    return Conclusion(answer.text, f"{answer.certainty.rstrip('.')}{range_words}.")


def _describe_rate(language: str, lines: pd.DataFrame) -> str:
    best = lines.iloc[0]
    unit = UNITS.get(str(best["unit"]), "words")
    rate = format_percent(best["common_rate"])
    if len(lines) == 1:
        who = "" if best["voice"] == NO_SPEAKER else f" of {best['voice_name']}"
        if best["common_rate"] > 1:  # what was added counts as well
            return f"the {language} transcripts{who} have more errors than {unit} ({rate})"
        return f"{rate} of the {language} {unit}{who} came out wrong"
    worst = lines.iloc[-1]
    if worst["common_rate"] == best["common_rate"]:
        return f"in {language}, {rate} of {unit} came out wrong with each of {len(lines)} voices"
    first, last = (
        lines.loc[lines["common_rate"] == end["common_rate"], "voice_name"].tolist() or [end["voice_name"]]
        for end in (best, worst)
    )
    verb = "is" if len(first) == 1 else "are"
    best_words = f"in {language}, {_format_names(first)} {verb} understood best ({rate} of {unit} wrong)"
    return f"{best_words}, {_format_names(last)} worst ({format_percent(worst['common_rate'])})"


def _describe_certainty(code: str, lines: pd.DataFrame, table: pd.DataFrame, text: str, column: str) -> str:
    best, language = lines.iloc[0], format_language(code)
    count = format_count(int(best["utterances_scored"]), "recording")
    if len(lines) > 1:
        return f"{language}: {_describe_extremes(lines, table, text, column)}"
    low, high = best["ranking_rate_low"], best["ranking_rate_high"]
    if is_missing(low):
        needs = best["interval_needs"]
        unit = best.get("interval_unit")
        what = "different recording" if unit == "block" else str(unit)
        short = f"{needs}" if is_missing(unit) else format_count(int(needs or 0), what)
        more = "" if is_missing(needs) or not needs else f", {short} too few to say how exact that is"
        return f"{language}: {count}{more}"
    return f"{language}: {format_percent(low)} to {format_percent(high)} with 95 % confidence, {count}"


def _describe_extremes(lines: pd.DataFrame, table: pd.DataFrame, text: str, language: str) -> str:
    """Return whether the best and the worst voice differ beyond chance, on the sentences that both have.

    They were chosen of all voices, so the p-value is that of the exact paired test times the number of pairs.
    """
    names = [name for name in (*SIDES, "voice") if name in lines.columns]
    best, worst = (tuple(lines[names].iloc[at]) for at in (0, -1))
    keys = table[names].apply(tuple, axis=1)
    scores = score_for_ranking(
        table.assign(**{_END_COLUMN: keys.map({best: "best", worst: "worst"})}), text, language, [_END_COLUMN]
    )
    scores = scores[scores["errors"].notna() & scores[_END_COLUMN].notna()]
    try:
        pairs = rank(scores, system=_END_COLUMN, utterance=text).pairs
    except InvalidRequestError:
        return f"{len(lines)} voices, which were not compared, because they said different sentences"
    if not len(pairs):
        return "only one of both could be scored"
    pair = pairs.iloc[0]
    count = format_count(int(pair["n"]), "sentence")
    if is_missing(pair["p"]) or pair["blocks"] < MIN_PAIRS:
        return f"{count} of both {'is' if count.startswith('1 ') else 'are'} too few to tell them apart"
    p = min(1.0, float(pair["p"]) * len(lines) * (len(lines) - 1) / 2)
    if p < LEVEL:
        return f"best and worst differ by more than chance ({describe_p(p)}, {count})"
    return f"the difference may be chance ({describe_p(p)}, {count})"
