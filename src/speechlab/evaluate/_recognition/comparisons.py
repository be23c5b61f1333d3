"""Systems and conditions compared: their order, what noise or a band does, and the answer that follows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.display import format_count, format_percent, join_with_and
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._advice.choice import FAR, LEVEL, MARGIN, recommend_system
from speechlab.evaluate._advice.conclusions import build_choice_conclusion
from speechlab.evaluate._advice.evidence import (
    AnswerEvidence,
    build_answer_evidence,
    list_mostly_failing_systems,
)
from speechlab.evaluate._advice.no_worse import apply_prices
from speechlab.evaluate._recognition.conditions import AS_RECORDED
from speechlab.evaluate._speech.blocks import BLOCK, count_texts, describe_few_texts, find_speaker_column
from speechlab.evaluate._speech.ranking import score_for_ranking
from speechlab.evaluate._speech.summary import UNITS, choose_block_unit, choose_ranking_units
from speechlab.evaluate._statistics import MIN_PAIRS
from speechlab.evaluate._writing.columns import capitalize_sentence, format_interval, format_language
from speechlab.evaluate._writing.contents import Conclusion, Finding
from speechlab.evaluate._writing.differences import (
    build_study_differences,
    describe_difference,
    describe_rows_and_blocks,
)
from speechlab.evaluate._writing.sentences import capitalize_unless_name
from speechlab.metrics import Ranking, compare, compute_utterances_needed, judge, rank

if TYPE_CHECKING:
    from speechlab.evaluate._advice.advice import Advice
    from speechlab.evaluate._systems import System


_CONDITION = "condition"
_ORDER_COLUMNS = ("system", "utterances", "error_rate", "group", "first_share", "p_best", "needed")


class SystemOrder(NamedTuple):
    """Systems in order, and by language and condition what could overturn that."""

    systems: pd.DataFrame
    differences: pd.DataFrame
    verdicts: tuple[Finding, ...]
    evidence: Mapping[tuple[str, str], AnswerEvidence] = MappingProxyType({})
    scores: Mapping[tuple[str, str], pd.DataFrame] = MappingProxyType({})


def rank_systems(table: pd.DataFrame, text: str, language: str, about: str = "") -> SystemOrder:
    """Rank the systems of each language and condition on their common recordings, Japanese by readings."""
    places, pairs, verdicts = [], [], []
    evidence: dict[tuple[str, str], AnswerEvidence] = {}
    scored: dict[tuple[str, str], pd.DataFrame] = {}
    block = BLOCK if BLOCK in table.columns else None
    for code, rows in table[table[language].notna()].groupby(language, observed=True, sort=False):
        by_condition, findings = _select_rankable_rows(rows, text, language, str(code))
        texts = count_texts(rows, text, "recording")
        of_few = about or ("" if block else describe_few_texts(texts, rows["recording"].nunique()))
        these = "this" if of_few.startswith("one") else "these"
        only = f" This is about {these} {of_few} alone." if of_few else ""
        verdicts += findings
        if not by_condition:
            continue
        alive = {
            name: _drop_unscored_and_failing_systems(scores, text) for name, scores in by_condition.items()
        }
        rankings = rank(
            pd.concat([scores.assign(condition=name) for name, scores in alive.items()]),
            by=_CONDITION,
            system="system",
            utterance="recording",
            groups=block,
        )
        for name, ranking in rankings.items():
            facts = {"language": code, **({_CONDITION: name} if _CONDITION in table.columns else {})}
            places.append(ranking.systems[list(_ORDER_COLUMNS)].assign(**facts, excluded=ranking.excluded))
            where = str(facts.get(_CONDITION, ""))
            weighed = _build_condition_evidence(by_condition[name], ranking, text, block, of_few, texts)
            evidence[str(code), where], scored[str(code), where] = weighed, by_condition[name]
            pairs.append(weighed.qualify_verdicts(build_study_differences(ranking.pairs, **facts)))
            label = ", ".join(map(str, facts.values()))
            words = f"{label}: {ranking.sentence}{_describe_ranking_limits(ranking)}{only}"
            names = tuple(ranking.systems["system"].tolist())
            count = {"recordings": int(ranking.systems["utterances"].iloc[0])}
            shown = "method" if where in {"", AS_RECORDED} else ""
            verdicts.append(Finding(words, str(code), where, names, count, shown))
    if not places:
        return SystemOrder(pd.DataFrame(), judge([]), tuple(verdicts))
    systems, differences = (pd.concat(tables, ignore_index=True) for tables in (places, pairs))
    return SystemOrder(systems, differences, tuple(verdicts), evidence, scored)


def _drop_unscored_and_failing_systems(scores: pd.DataFrame, text: str) -> pd.DataFrame:
    """Return the scored rows of the systems that did not fail on most of what others have."""
    absent = list_mostly_failing_systems(scores, text, "system")
    return scores[scores["errors"].notna() & ~scores["system"].astype(str).isin(absent)]


def _build_condition_evidence(
    scores: pd.DataFrame, ranking: Ranking, text: str, block: str | None, about: str, texts: int
) -> AnswerEvidence:
    """Return what could overturn the order of a condition."""
    absent = tuple(list_mostly_failing_systems(scores, text, "system"))
    noun = "recording"
    if block is not None:
        unit = choose_block_unit(scores, block)
        noun = "different recording" if unit == "block" else str(unit)
    blocks = int(ranking.pairs["blocks"].iloc[0]) if len(ranking.pairs) else 0
    facts: dict[str, Any] = {"absent": absent, "blocks": (blocks, noun), "about": about, "texts": texts}
    return build_answer_evidence(scores, ranking, text, "recording", system="system", block=block, **facts)


def _select_rankable_rows(
    rows: pd.DataFrame, text: str, language: str, code: str
) -> tuple[dict[str, pd.DataFrame], list[Finding]]:
    """Return the rows of a language that can be ranked, by condition, and findings on those that cannot."""
    by_condition: dict[str, pd.DataFrame] = {}
    findings = []
    conditions = rows.groupby(_CONDITION, observed=True, sort=False) if _CONDITION in rows else [("", rows)]
    for condition, group in conditions:
        label = ", ".join(filter(None, (code, str(condition))))
        where_shown = "page" if condition in {"", AS_RECORDED} else ""
        extra = (BLOCK, find_speaker_column(group) or BLOCK, "file")
        keep = [*dict.fromkeys(("system", "recording", *(name for name in extra if name in group.columns)))]
        scores = score_for_ranking(group, text, language, keep)
        alive = scores[scores["errors"].notna()]
        failed = [name for name in group["system"].unique() if name not in set(alive["system"])]
        if failed:
            has = "has" if len(failed) == 1 else "have"
            heard = group.loc[group["system"].isin(failed), "hypothesis"].notna().any()
            why = f"{has} no row that can be scored" if heard else "failed on all recordings"
            words = f"{label}: {'; '.join(failed)} {why}, and {has} no place in the order."
            findings.append(Finding(words, code, str(condition), tuple(failed), shown=where_shown))
        count = alive["system"].nunique()
        if count < 2:
            continue
        present = _drop_unscored_and_failing_systems(scores[scores["system"].isin(alive["system"])], text)
        if not (present.groupby("recording")["system"].nunique() == present["system"].nunique()).any():
            words = f"{label}: no recording was recognized by all; run the study again for the others."
            findings.append(Finding(words, code, str(condition), shown=where_shown))
            continue
        by_condition[str(condition)] = scores[scores["system"].isin(alive["system"])]
    return by_condition, findings


def _describe_ranking_limits(order: Ranking) -> str:
    """What a ranking cannot show, or leaves out."""
    words = ""
    if order.pairs["blocks"].iloc[0] < MIN_PAIRS:
        what = "recordings" if order.tested == "utterance" else "blocks of recordings"
        words = f" Fewer than {MIN_PAIRS} {what} can show no difference."
    if order.excluded:
        verb = "is" if order.excluded == 1 else "are"
        words += f" {format_count(order.excluded, 'recording')} that not all systems have {verb} left out."
    return words


# Ratios of error rates between which a sentence says that they double.
_NEARLY_TWICE, _TWICE = 1.7, 2.4
# Lines of a summary that the answer tells.
_MAX_CLAUSES = 3
# What noise is called, from a ratio of speech to noise in dB on.
_LOUDNESS = ((15, "faint noise"), (7, "noise"), (-math.inf, "loud noise"))
# Change of an error rate, as a fraction, that a sentence calls hardly a change.
_NEGLIGIBLE_CHANGE = 0.01


def build_systems_conclusion(
    order: SystemOrder,
    speed: pd.DataFrame,
    findings: Sequence[Finding],
    conditions: Sequence[str] = (),
    margin: float = MARGIN,
    baseline: str = "",
    no_worse: pd.DataFrame | None = None,
) -> Conclusion:
    """Return which system to take for each language: in the hardest condition, if there are some, and without it."""
    here: dict[str, Advice] = {}
    clean: dict[str, Advice] = {}
    hardest = choose_loudest_or_last_condition(conditions) if conditions else ""
    where = _describe_settled_noise(order, conditions, hardest, margin, baseline) if hardest else ("", "")
    for (code, condition), evidence in order.evidence.items():
        if condition not in {hardest, "", AS_RECORDED}:
            continue
        calls = speed[speed["language"] == code] if len(speed) and condition != hardest else speed.iloc[:0]
        advice = recommend_system(evidence, calls, "recording", margin, baseline)
        if no_worse is not None:
            tests = no_worse[(no_worse["language"] == code) & (no_worse["condition"] == condition)]
            tied = evidence.order.tied if evidence.runaway is None else ()
            advice = apply_prices(advice, tied, tests, baseline)
        (here if condition == hardest or not hardest else clean)[format_language(code)] = advice
    if not here:
        why = str(findings[0]) if findings else "No recording was recognized by all systems."
        return Conclusion("No system can be advised.", why)
    answer = build_choice_conclusion(here, where[0])
    title = f"{answer.text.removesuffix('.')}{where[1]}."
    holds_in_several = hardest and where[0] != f"In {_format_condition(hardest)}"
    lines = [_put_noise_level_first(answer.certainty, hardest) if holds_in_several else answer.certainty]
    for language, advice in clean.items():
        label = f"{language}, " if len(clean) > 1 else ""
        lines.append(capitalize_unless_name(f"{label}as recorded: {advice.lead}; {advice.words}."))
    return Conclusion(title, "\n".join(lines))


def _put_noise_level_first(certainty: str, condition: str) -> str:
    level = f"At {_parse_noise_level(condition):g} dB"
    return f"{level}, it {certainty[3:]}" if certainty.startswith("It ") else f"{level}: {certainty}"


def _describe_settled_noise(
    order: SystemOrder, conditions: Sequence[str], hardest: str, margin: float, baseline: str
) -> tuple[str, str]:
    """Return where the choice under the loudest noise holds, and that elsewhere no difference is shown, if so."""
    alone = f"In {_format_condition(hardest)}"
    codes = {code for code, _ in order.evidence}
    if len(codes) > 1 or (next(iter(codes), ""), hardest) not in order.evidence:
        return alone, ""
    (code,) = codes
    names = sorted((name for name in conditions if name.startswith("noise ")), key=_parse_noise_level)
    here = [name for name in (*names, AS_RECORDED) if (code, name) in order.evidence]
    if hardest not in here:
        return alone, ""
    nothing_timed = pd.DataFrame({"system": pd.Series(dtype="string"), "error": pd.Series(dtype="string")})
    advice = {
        name: recommend_system(order.evidence[code, name], nothing_timed, "recording", margin, baseline)
        for name in here
    }
    lead, count = advice[hardest].lead, 0
    while count < len(here) and (advice[here[count]].certainty, advice[here[count]].lead) == (
        "settled",
        lead,
    ):
        count += 1
    if not count:
        return alone, ""
    rest = [order.evidence[code, name].order for name in here[count:]]
    is_open = rest and all(len(one.tied) == len(one.systems) for one in rest)
    loud = [name for name in here[:count] if name != AS_RECORDED]
    levels = join_with_and([f"{_parse_noise_level(name):g}" for name in reversed(loud)])
    where = f"In loud noise ({levels} dB)" if len(loud) > 1 else alone
    return where, "; otherwise no difference is shown" if is_open else ""


def build_streams_conclusion(
    summary: pd.DataFrame, systems: Sequence[System], differences: pd.DataFrame, advice: Conclusion | None
) -> Conclusion:
    """Return when streamed text is final and how much of it is wrong, against whole recordings if there are any."""
    lines = summary[summary["streams"].notna() & summary["ranking_rate"].notna()]
    if "condition" in lines.columns:
        lines = lines[lines["condition"] == AS_RECORDED]
    if not len(lines):
        return Conclusion("No stream could be scored.", "The table of rows has the reasons.")
    rows = lines.assign(unit=choose_ranking_units(lines)).to_dict("records")
    waits = [
        None if is_missing(row.get("finalization_s")) else f"{row['finalization_s']:.2f} s" for row in rows
    ]
    if advice is not None:
        keys = ("system", "language") if len({row["language"] for row in rows}) > 1 else ("system",)
        timed_rows = zip(waits, rows, strict=True)
        times = [f"{wait} ({', '.join(row[name] for name in keys)})" for wait, row in timed_rows if wait]
        more = f" Streamed text is final {join_with_and(times)} after the end of speech." if times else ""
        return Conclusion(advice.text, f"{advice.certainty}{more}".strip())
    (live,) = (system for system in systems if system.is_streaming)
    partner, clauses, certainties = live.find_unstreamed_system(systems), [], []
    for wait, row in zip(waits[:_MAX_CLAUSES], rows[:_MAX_CLAUSES], strict=True):
        whole_rate = _find_unstreamed_rate(summary, partner, row)
        against = "" if is_missing(whole_rate) else f" (whole: {format_percent(whole_rate)})"
        share_wrong = (
            f"{format_percent(row['common_rate'])} of {UNITS.get(row['unit'], 'words')} are wrong{against}"
        )
        language = format_language(str(row["language"]))
        timing = f"is final {wait} after the end of speech" if wait else "has no times"
        clauses.append(f"{timing} in {language}, where {share_wrong}")
        certainties.append(
            f"{f'{language}: ' if len(rows) > 1 else ''}{_describe_stream_certainty(row, differences, partner)}"
        )
    return Conclusion(
        f"Streamed text {'; it '.join(clauses)}.", f"{capitalize_sentence('; '.join(certainties))}."
    )


def _find_unstreamed_rate(summary: pd.DataFrame, system: System | None, row: Mapping[Any, Any]) -> Any:
    """Return the error rate of the system on the same recordings whole, if there is one."""
    same = summary[summary["system"] == system.name] if system is not None else summary.iloc[:0]
    for name in ("voice", "language", *(["condition"] if "condition" in row else [])):
        same = same[same[name] == row[name]]
    return next(iter(same["common_rate"]), None)


def _describe_stream_certainty(
    row: Mapping[Any, Any], differences: pd.DataFrame, whole: System | None
) -> str:
    """How sure the difference from whole recordings is, and the times of streams."""
    count = format_count(int(row["utterances_scored"]), "recording")
    ends = format_interval(row.get("finalization_s_low"), row.get("finalization_s_high"))
    times = f"; final texts came after {ends} s" if ends else ""
    if not is_missing(most := row.get("finalization_s_p95")):
        times = f"; 95 of 100 texts are final within {most:.2f} s"
    differences_of_both = [
        difference
        for difference in differences.to_dict("records")
        if whole is not None
        and difference["language"] == row["language"]
        and difference["condition"] in {"", AS_RECORDED}
        if {difference["a"], difference["b"]} == {row["system"], whole.name}
    ]
    if not differences_of_both:
        return f"that is of {count}{times}"
    if differences_of_both[0]["n"] < MIN_PAIRS:
        return f"{count} cannot show whether the rates differ by chance; take {MIN_PAIRS} or more{times}"
    p = differences_of_both[0]["p_holm"]
    beyond = "is beyond chance" if not is_missing(p) and p < LEVEL else "may be chance"
    return f"the difference in errors {beyond} on {count}{times}"


def compare_conditions(table: pd.DataFrame, text: str, language: str) -> pd.DataFrame:
    """Compare each condition with the recordings as they are, by the exact test paired by recording."""
    comparisons = []
    sides = ["system"] if "system" in table.columns else []
    blocks = [BLOCK] if BLOCK in table.columns else []
    options: dict[str, Any] = {"on": "recording", "draws": 2, "groups": next(iter(blocks), None)}
    for key, rows in table[table[language].notna()].groupby([*sides, language], observed=True, sort=False):
        scores_by_condition = {
            str(name): score_for_ranking(group, text, language, ["recording", *blocks])
            for name, group in rows.groupby("condition", observed=True, sort=False)
        }
        unchanged = scores_by_condition.pop(AS_RECORDED, pd.DataFrame())
        *system, code = key
        for name, group in scores_by_condition.items():
            label = "".join(f"{part}, " for part in system)
            names = (f"{label}{AS_RECORDED}", f"{label}{name}")
            try:
                comparison = compare(unchanged, group, names=names, **options)
            except InvalidRequestError:  # no recording has a score under both conditions
                continue
            pairs = unchanged.merge(group[["recording", "errors"]], on="recording", suffixes=("", "_after"))
            block = pairs[options["groups"] or "recording"]
            changes = (pairs["errors_after"] - pairs["errors"]).dropna().groupby(block).sum()
            # recordings, or blocks of them, with which the difference would show in 8 of 10 studies
            needed = compute_utterances_needed(changes.to_numpy(dtype="int64"), LEVEL, 0.8)
            facts = {"language": str(code), "condition": name, "system": "".join(map(str, system))}
            further = {"needed": pd.NA if needed is None else needed, "low": None, "high": None}
            comparisons.append({**comparison.row(), **facts, **further})
    return judge(comparisons)


def build_condition_findings(differences: pd.DataFrame) -> tuple[Finding, ...]:
    """Return what conditions do as findings, with ``before``, ``after`` (error rates), ``p`` and ``recordings``."""
    findings = []
    for row in differences.to_dict("records"):
        system = tuple(filter(None, [str(row["system"])]))
        label = ", ".join([*system, format_language(str(row["language"])), str(row["condition"])])
        words = f"{label}: {describe_difference(row)} ({row['verdict']})."
        numbers = {"before": row["value_a"], "after": row["value_b"], "p": row["p_holm"]}
        numbers |= {"recordings": row["n"], "blocks": row["blocks"], "needed": row["needed"]}
        findings.append(Finding(words, str(row["language"]), str(row["condition"]), system, numbers, ""))
    return tuple(findings)


def choose_loudest_or_last_condition(conditions: Sequence[str]) -> str:
    """Return the condition that an answer is about: the loudest noise, or the last band."""
    levels = {name: _parse_noise_level(name) for name in conditions if name.startswith("noise ")}
    return min(levels, key=lambda name: levels[name]) if levels else conditions[-1]


def _parse_noise_level(condition: str) -> float:
    return float(condition.removeprefix("noise ").removesuffix(" dB"))


def build_conditions_conclusion(findings: Sequence[Finding], conditions: Sequence[str]) -> Conclusion:
    """Return what the hardest condition does to each language, and whether that is beyond chance."""
    hardest = choose_loudest_or_last_condition(conditions)
    at_hardest = [finding for finding in findings if finding.condition == hardest]
    if not at_hardest:
        return Conclusion(
            f"What {_format_condition(hardest)} does could not be measured.",
            "No recording has a score with and without it.",
        )
    at_hardest.sort(key=lambda finding: finding.numbers["before"] - finding.numbers["after"])
    effects = [_describe_error_change(finding) for finding in at_hardest]
    lead = f"{_format_condition(hardest)} {effects[0]}{''.join(f'; {effect}' for effect in effects[1:])}."
    proven = [finding for finding in at_hardest if finding.numbers["p"] < LEVEL]
    most = max(at_hardest, key=lambda finding: finding.numbers["recordings"]).numbers
    count, on = most["blocks"], describe_rows_and_blocks(most["recordings"], most["blocks"], "recording")
    if count < MIN_PAIRS:
        certainty = f"{on} cannot show whether that is chance; take {MIN_PAIRS} or more."
    elif len(proven) == len(at_hardest):
        certainty = f"That is beyond chance on {on}.{_describe_harmless_noise(findings, conditions)}"
    elif proven:
        names = join_with_and([_format_systems_and_language(finding) for finding in proven])
        certainty = f"Beyond chance on {on}: {names}; the rest may be chance."
        certainty += _describe_harmless_noise(findings, conditions)
    else:
        needed = [finding.numbers["needed"] for finding in at_hardest]
        further = max((float(total) - count for total in needed if not is_missing(total)), default=0)
        advice = f"; about {further:,.0f} more would show it" if 0 < further <= FAR else ""
        certainty = f"On {on}, that may be chance{advice}."
    return Conclusion(capitalize_sentence(lead), certainty)


def _describe_harmless_noise(findings: Sequence[Finding], conditions: Sequence[str]) -> str:
    """Return the loudest noise under which no rise of errors is shown, where a louder one has one."""
    fine = ""
    for name in [condition for condition in conditions if condition.startswith("noise ")]:
        numbers = [finding.numbers for finding in findings if finding.condition == name]
        if any(figures["p"] < LEVEL and figures["after"] > figures["before"] for figures in numbers):
            break
        fine = name
    return f" Down to {fine.removeprefix('noise ')} no rise is shown." if fine else ""


def _format_condition(condition: str) -> str:
    if condition.startswith("noise "):
        level = _parse_noise_level(condition)
        return f"{next(word for least, word in _LOUDNESS if level >= least)} ({level:g} dB)"
    return f"the band of {condition}"


def _format_systems_and_language(finding: Finding) -> str:
    return ", ".join([*finding.systems, format_language(finding.language)])


def _describe_error_change(finding: Finding) -> str:
    before, after = finding.numbers["before"], finding.numbers["after"]
    who, rates = (
        _format_systems_and_language(finding),
        f"({format_percent(before)} to {format_percent(after)})",
    )
    if abs(after - before) < _NEGLIGIBLE_CHANGE:
        return f"hardly changes {who} {rates}"
    if after < before:
        return f"lowers the errors of {who} {rates}"
    if not before or after / before < _NEARLY_TWICE:
        return f"raises the errors of {who} {rates}"
    if after / before < _TWICE:
        return f"doubles the errors of {who} {rates}"
    return f"multiplies the errors of {who} by {after / before:.1f} {rates}"
