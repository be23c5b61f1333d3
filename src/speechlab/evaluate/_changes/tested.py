"""Pairs of rows of two reports, and tests of their differences by voice and language, or by direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any

from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError, MissingDependencyError
from speechlab.evaluate._advice.evidence import find_runaway_row
from speechlab.evaluate._speech.blocks import BLOCK, fold_text, merge_labels_by_keys
from speechlab.evaluate._speech.ranking import READINGS, has_error_counts
from speechlab.evaluate._statistics import MIN_PAIRS, compute_sign_p
from speechlab.evaluate._study_columns import NO_SPEAKER, SIDES
from speechlab.evaluate._writing.differences import BACK, CHRF, ENOUGH, build_study_differences
from speechlab.metrics import (
    BETTER,
    DIFFERENCES,
    POINTS,
    WORSE,
    compare,
    compare_translations,
    score,
    score_translations,
)
from speechlab.text import get_language_name

if TYPE_CHECKING:
    from speechlab.evaluate._writing.contents import Contents
    from speechlab.metrics import Comparison


KEYS = ("id", "file", *SIDES, "voice_name", "language", "text")
_RULE_LABELS = {"unit": "unit", "norm": "normalizer"}
FAILURES_MEASURE = "rows that failed"
DEFAULT_NAMES = ("earlier", "now")
# Columns of a scored table for :func:`speechlab.metrics.compare`, besides its signature.
_SCORE_COLUMNS = (
    *("unit", "reference_normalized", "hypothesis_normalized", "error_rate", "errors", "reference_length"),
    *("hits", "substitutions", "deletions", "insertions"),
)
_RECOGNITION_COLUMNS = ("hypothesis", "status", READINGS.errors, *_SCORE_COLUMNS)
_REQUIRED_COLUMNS = {
    "text",
    "language",
    "hypothesis",
    "status",
    "signature",
    "unit",
    "errors",
    "reference_length",
}
_HELPER_COLUMNS = ("_group", "_block", "_key", "_speaker")


def compare_report_rows(now: Contents, earlier: Contents) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Compare the rows of two reports: by errors; translations by chrF, or by that of back-translations."""
    translated = now.study == earlier.study == "translation"
    later, former = (
        build_grouped_translation_rows(report) if translated else build_grouped_report_rows(report)
        for report in (now, earlier)
    )
    check_both_or_neither_name_systems(now, earlier)
    keys: Sequence[str]
    columns: Sequence[str]
    if translated:
        keys, columns, difference = TEXT_KEYS, _TRANSLATION_COLUMNS, "score_difference"
        has_references = all("reference" in rows.columns for rows in (later, former))
        roles = _BY_REFERENCE if has_references else _BY_WAY_BACK
        compared: Callable[..., dict[str, Any]] = partial(_compare_chrf, *roles)
        old = ("translation_earlier", "chrf_earlier" if has_references else "back_chrf_earlier")
    else:
        _check_same_scoring(later, former)
        keys, columns, difference = KEYS, _RECOGNITION_COLUMNS, "error_difference"
        compared, old = _compare_errors, ("hypothesis_earlier", "errors_earlier")
    pairs, new, dropped = pair_rows(later, former, keys, columns)
    summary = []
    for name in dict.fromkeys([*pairs["_group"], *new["_group"], *dropped["_group"]]):
        tables = [table[table["_group"] == name] for table in (pairs, new, dropped)]
        if values := compared(*tables):
            counts = {"only_now": len(tables[1]), "only_earlier": len(tables[2])}
            summary.append({**values, "group": str(name), **counts})
    summary += _compare_failures(pairs)
    if not summary:
        message = "the two reports have no scored row; their tables say why"
        raise InvalidRequestError(message, parameter="earlier")
    absent = pd.Series(float("nan"), index=pairs.index)
    before, after = (pairs.get(name, absent) for name in (old[1], old[1].removesuffix("_earlier")))
    table = pairs.assign(**{difference: after - before})
    present = [name for name in (*old, "status_earlier") if name in table.columns]
    return sort_rows_by_change(table, present, difference), summary


def build_grouped_report_rows(report: Contents) -> pd.DataFrame:
    """Rows of a report with the column names of studies, each with its group."""
    rows = report.to_study_rows()
    if report.study == "changes" or not set(rows.columns) >= _REQUIRED_COLUMNS:
        message = (
            f"the report {report.title!r} holds no scores that could be compared with those of the other; compare "
            "two reports of translation, or two of round_trip, recognition or voices"
        )
        raise InvalidRequestError(message, parameter="earlier")
    if "voice" not in rows.columns:
        rows = rows.assign(voice=NO_SPEAKER)
    if "voice_name" not in rows.columns:
        rows = rows.assign(voice_name=rows["voice"])
    speaker = rows["voice_name"].where(rows["voice"] != NO_SPEAKER, NO_SPEAKER).fillna("no voice")
    if "file" in rows.columns:  # where no speaker is known, the name is that of a file, which may be a copy
        rows = rows.assign(voice_name=speaker)
    if report.study == "recognition":  # one recognizer; its speakers are blocks, if they are enough
        rows = rows.assign(_speaker=speaker if speaker.nunique() >= MIN_PAIRS else None)
        speaker = pd.Series(NO_SPEAKER, index=rows.index)
    group = speaker.astype(str) + ", " + rows["language"].astype("string").fillna("no language")
    for name in SIDES[::-1]:  # rows without conditions are not paired with rows that have conditions
        labels = rows[name].astype("string") if name in rows.columns else None
        group = group if labels is None else labels + ", " + group
        rows = rows.assign(**{name: "" if labels is None else labels})
    return rows.assign(_group=group.astype(str)).reset_index(drop=True)


def _check_same_scoring(later: pd.DataFrame, former: pd.DataFrame) -> None:
    """Refuse reports that score a language in different ways. Versions of tools may differ."""
    rules = [_collect_scoring_rules(rows) for rows in (later, former)]
    differ = []
    for code in rules[0].keys() & rules[1].keys():
        differ += [
            f"{get_language_name(code)}: {word} {' and '.join(sorted(old))} earlier, {' and '.join(sorted(new))} now"
            for key, word in _RULE_LABELS.items()
            if (new := rules[0][code][key]) != (old := rules[1][code][key])
        ]
    if differ:
        message = (
            f"the two reports were scored in different ways ({'; '.join(sorted(differ))}); score both alike: run the "
            "earlier study again, which takes what was recognized from its store"
        )
        raise InvalidRequestError(message, parameter="earlier")


def _collect_scoring_rules(rows: pd.DataFrame) -> dict[str, dict[str, set[str]]]:
    by_language: dict[str, dict[str, set[str]]] = {}
    for signature in rows["signature"].dropna().astype(str).unique():
        fields = dict(field.split(":", 1) for field in signature.split("|") if ":" in field)
        rules = by_language.setdefault(fields.get("lang", "any"), {name: set() for name in _RULE_LABELS})
        for name, values in rules.items():
            values.add(fields.get(name, "none"))
    return by_language


def check_both_or_neither_name_systems(now: Contents, earlier: Contents) -> None:
    """Refuse to compare a report of several systems with a report of a single service."""
    several = [report for report in (now, earlier) if "system" in report.table.columns]
    if len(several) == 1:
        names = ", ".join(map(repr, several[0].table["system"].astype(str).unique()))
        message = (
            f"one of the reports has the systems {names}, the other one a single service without a name; compare "
            "reports of the same systems, or for recognition report.part(name)"
        )
        raise InvalidRequestError(message, parameter="earlier")


def pair_rows(
    later: pd.DataFrame, former: pd.DataFrame, keys: Sequence[str], columns: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Rows of both reports side by side, ``columns`` of the earlier ones as ``_earlier``; and those of each alone."""
    shared = [name for name in keys if name in later.columns and name in former.columns]
    new, old = (add_row_keys(rows, shared) for rows in (later, former))
    earlier = old[[name for name in ("_key", *columns) if name in old.columns]].add_suffix("_earlier")
    pairs = new.merge(earlier, left_on="_key", right_on="_key_earlier", sort=False)
    return pairs, new[~new["_key"].isin(pairs["_key"])], old[~old["_key"].isin(pairs["_key"])]


def add_row_keys(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    texts = rows[keys].astype("string").fillna("")
    rows = rows.assign(_block=["\x1f".join(cells) for cells in texts.itertuples(index=False, name=None)])
    which = rows.groupby("_block").cumcount()  # equal rows are paired in order
    return rows.assign(_key=rows["_block"] + "\x1f" + which.astype(str))


def _compare_errors(pairs: pd.DataFrame, added: pd.DataFrame, dropped: pd.DataFrame) -> dict[str, Any]:
    """Return the errors of a group: tested if rows are paired, otherwise the rates only; nothing without a score."""
    pairs = pairs[pairs["errors"].notna() & pairs["errors_earlier"].notna()]
    scored = [table.dropna(subset="errors") for table in (pairs, added, dropped)]
    first = next((table.iloc[0] for table in scored if len(table)), None)
    if first is None:
        return {}
    facts = {"language": str(first["language"]), "measure": "error rate"}
    if pairs.empty:
        before, after = _compute_error_rate(dropped), _compute_error_rate(added)
        values = {"value_a": before, "value_b": after, "difference": after - before}
        return {**facts, **values, "unit": str(first["unit"]), "n": 0}
    # Takes of one sentence are not new sentences: they are swapped and drawn together, as are blocks of recordings.
    names = [name for name in ("_block", BLOCK, "_speaker") if name in pairs.columns]
    blocks = merge_labels_by_keys(
        pd.Series(range(len(pairs))), [pairs[name].reset_index(drop=True) for name in names]
    )
    comparison = _compare_pairs(pairs, blocks)
    ends = {} if comparison.blocks >= ENOUGH else {"low": None, "high": None}
    tests = {name: value for name, value in comparison.row().items() if name in DIFFERENCES}
    without = _compare_without_runaway_row(pairs, blocks)
    return {**tests, **facts, **ends, "blocks": comparison.blocks, "without": without}


def _compare_pairs(pairs: pd.DataFrame, blocks: pd.Series[int]) -> Comparison:
    return compare(*_split_scores_by_report(pairs), groups=None if blocks.is_unique else blocks.tolist())


def _compare_without_runaway_row(
    pairs: pd.DataFrame, blocks: pd.Series[int]
) -> tuple[float, float, float] | None:
    """Return both rates and the p-value without the row that makes over a third of the errors, if there is one."""
    rows = pairs.reset_index(drop=True)
    found = [find_runaway_row(rows), find_runaway_row(rows.assign(errors=rows["errors_earlier"]))]
    places = [place for place in dict.fromkeys(found) if place is not None]
    if len(places) != 1 or len(rows) < MIN_PAIRS:
        return None
    test = _compare_pairs(rows.drop(index=places), blocks.drop(index=places)).row()
    return float(test["value_a"]), float(test["value_b"]), float(test["p"])


def _split_scores_by_report(scored: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the scores of both reports for :func:`speechlab.metrics.compare`; Japanese by readings."""
    texts = scored[["text", "language"]]
    sides = [texts.assign(hypothesis=scored[name]) for name in ("hypothesis_earlier", "hypothesis")]
    if has_error_counts(scored, READINGS, "", "_earlier"):
        try:
            return score(sides[0], unit="reading"), score(sides[1], unit="reading")
        except MissingDependencyError:
            pass
    now = scored[[*_SCORE_COLUMNS, "signature"]]
    before = scored[[f"{name}_earlier" for name in _SCORE_COLUMNS]].set_axis(
        list(_SCORE_COLUMNS), axis="columns"
    )
    # The relevant parts of the signatures were compared. Versions of tools may differ.
    return before.assign(signature=now["signature"]), now


def _compute_error_rate(rows: pd.DataFrame) -> float:
    length = rows["reference_length"].sum()
    return float(rows["errors"].sum() / length) if length else float("nan")


def _compare_failures(pairs: pd.DataFrame) -> list[dict[str, Any]]:
    """Compare the failed rows of both reports by the exact test of McNemar (1947)."""
    now, before = (pairs[name].isin(["error", "skipped"]) for name in ("status", "status_earlier"))
    if not (now | before).any():
        return []
    broken, mended = int((now & ~before).sum()), int((before & ~now).sum())
    return [
        {
            "group": FAILURES_MEASURE,
            "measure": FAILURES_MEASURE,
            "unit": "row",
            "n": len(pairs),
            "value_a": float(before.mean()),
            "value_b": float(now.mean()),
            "difference": float(now.mean() - before.mean()),
            "p": compute_sign_p(broken, mended),
            "test": "exact test of McNemar",
            "only_now": 0,
            "only_earlier": 0,
            "more": WORSE,
        }
    ]


def sort_rows_by_change(pairs: pd.DataFrame, old: Sequence[str], difference: str) -> pd.DataFrame:
    """Return the common rows of both reports, the largest changes first."""
    unused = {name for name in SIDES if name in pairs.columns and pairs[name].eq("").all()}
    columns = [
        name
        for name in pairs.columns
        if name not in {*_HELPER_COLUMNS, *unused, *old, difference} and not name.endswith("_earlier")
    ]
    order = sort_by_magnitude(pairs[difference])
    return pairs.loc[order, [*columns, *old, difference]].reset_index(drop=True)


def sort_by_magnitude(changes: pd.Series[Any]) -> pd.Index[Any]:
    """Return the index of changes in the order of their size, whatever their sign; missing ones last."""
    return changes.abs().fillna(-1).sort_values(ascending=False, kind="stable").index


TEXT_KEYS = ("id", "system", "source_lang", "target_lang", "text", "reference")
_TRANSLATION_COLUMNS = ("translation", "back_translation", "chrf", "back_chrf", "status")
_BY_REFERENCE = (CHRF, "reference", "translation")
# A measure of translations, and the columns of the texts that it compares.
_BY_WAY_BACK = (BACK, "text", "back_translation")


def build_grouped_translation_rows(report: Contents) -> pd.DataFrame:
    """Rows with the column names of the study, each with its direction."""
    rows = report.to_study_rows()
    group = rows["source_lang"].astype(object).map(str) + " → " + rows["target_lang"].astype(object).map(str)
    if "system" in rows.columns:
        group = rows["system"].astype(object).map(str) + ", " + group
    return rows.assign(_group=group).reset_index(drop=True)


def _compare_chrf(
    measure: str, reference: str, output: str, pairs: pd.DataFrame, added: pd.DataFrame, dropped: pd.DataFrame
) -> dict[str, Any]:
    """The scores of a direction: tested if rows are paired, otherwise the scores only; nothing without a score."""
    code = next(str(code) for table in (pairs, added, dropped) for code in table["target_lang"])
    facts = {"language": code, "measure": measure, "more": BETTER}
    answered = _drop_incomplete_rows(pairs, reference, output, f"{output}_earlier")
    if len(answered):
        # A repeated text counts as one text: its translations are swapped together.
        texts = answered["text"].map(fold_text)
        groups = None if texts.is_unique else texts.tolist()
        sides = {
            name: answered[output + end].tolist()
            for name, end in zip(DEFAULT_NAMES, ("_earlier", ""), strict=True)
        }
        tests = compare_translations(answered[reference].tolist(), sides, metrics=["chrf"], groups=groups)
        return {
            **{str(name): value for name, value in build_study_differences(tests).iloc[0].items()},
            **facts,
        }
    scores = [
        score_translations(rows[reference].tolist(), rows[output].tolist(), metrics=["chrf"]).chrf
        if len(rows)
        else float("nan")
        for rows in (_drop_incomplete_rows(table, reference, output) for table in (dropped, added))
    ]
    if all(map(isnan, scores)):
        return {}
    values = {"value_a": scores[0], "value_b": scores[1], "difference": scores[1] - scores[0]}
    return {**facts, **values, "unit": POINTS, "n": 0}


def _drop_incomplete_rows(rows: pd.DataFrame, *columns: str) -> pd.DataFrame:
    return rows.dropna(subset=list(columns)) if set(columns) <= set(rows.columns) else rows.iloc[:0]
