"""Systems compared: their order by language and condition, and the answer that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._pandas import pd
from speechlab.display import format_count, join_with_and
from speechlab.evaluate._advice.choice import MARGIN, recommend_system
from speechlab.evaluate._advice.conclusions import build_choice_conclusion
from speechlab.evaluate._advice.evidence import (
    AnswerEvidence,
    build_answer_evidence,
    list_mostly_failing_systems,
)
from speechlab.evaluate._advice.no_worse import apply_prices
from speechlab.evaluate._recognition.condition_effects import (
    choose_loudest_or_last_condition,
    format_condition,
    parse_noise_level,
)
from speechlab.evaluate._recognition.conditions import AS_RECORDED
from speechlab.evaluate._speech.blocks import BLOCK, count_texts, describe_few_texts, find_speaker_column
from speechlab.evaluate._speech.ranking import score_for_ranking
from speechlab.evaluate._speech.summary import choose_block_unit
from speechlab.evaluate._statistics import MIN_PAIRS
from speechlab.evaluate._writing.columns import format_language
from speechlab.evaluate._writing.contents import Conclusion, Finding
from speechlab.evaluate._writing.differences import (
    build_study_differences,
)
from speechlab.evaluate._writing.sentences import capitalize_unless_name
from speechlab.metrics import Ranking, judge, rank

if TYPE_CHECKING:
    from speechlab.evaluate._advice.advice import Advice


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
    holds_in_several = hardest and where[0] != f"In {format_condition(hardest)}"
    lines = [_put_noise_level_first(answer.certainty, hardest) if holds_in_several else answer.certainty]
    for language, advice in clean.items():
        label = f"{language}, " if len(clean) > 1 else ""
        lines.append(capitalize_unless_name(f"{label}as recorded: {advice.lead}; {advice.words}."))
    return Conclusion(title, "\n".join(lines))


def _put_noise_level_first(certainty: str, condition: str) -> str:
    level = f"At {parse_noise_level(condition):g} dB"
    return f"{level}, it {certainty[3:]}" if certainty.startswith("It ") else f"{level}: {certainty}"


def _describe_settled_noise(
    order: SystemOrder, conditions: Sequence[str], hardest: str, margin: float, baseline: str
) -> tuple[str, str]:
    """Return where the choice under the loudest noise holds, and that elsewhere no difference is shown, if so."""
    alone = f"In {format_condition(hardest)}"
    codes = {code for code, _ in order.evidence}
    if len(codes) > 1 or (next(iter(codes), ""), hardest) not in order.evidence:
        return alone, ""
    (code,) = codes
    names = sorted((name for name in conditions if name.startswith("noise ")), key=parse_noise_level)
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
    levels = join_with_and([f"{parse_noise_level(name):g}" for name in reversed(loud)])
    where = f"In loud noise ({levels} dB)" if len(loud) > 1 else alone
    return where, "; otherwise no difference is shown" if is_open else ""
