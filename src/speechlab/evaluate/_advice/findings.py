"""Findings on rows that may carry an answer: empty outputs, one row with most errors, references to be checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.display import format_count
from speechlab.evaluate._advice.evidence import find_runaway_row, format_row_name, mark_empty_outputs
from speechlab.evaluate._speech.ranking import choose_ranking_counts_by_row
from speechlab.evaluate._study_columns import NO_SPEAKER
from speechlab.evaluate._writing.columns import format_language
from speechlab.evaluate._writing.contents import Conclusion, Finding
from speechlab.evaluate._writing.sentences import capitalize_unless_name, quote_name
from speechlab.metrics import suspects

# Share of words missed in a row whose reference may be that of another recording, and the error rate of most rows.
_UNLIKE, _USUAL = 0.8, 0.3
# Fewest words of such a row, and fewest such rows.
_MIN_LENGTH, _MIN_UNLIKE = 3, 2
# Share of a system's errors from which on the answer tells references.
_DECISIVE = 1 / 3
# Share of recordings from which on systems that err alike may be the same.
_SHARED_MODEL = 0.2


def describe_longer_recordings(some: pd.DataFrame, others: pd.DataFrame) -> str:
    """Return that some recordings are longer than all others, if they are: ``all longer than 10 s``."""
    if "duration_s" not in some.columns or not len(others):
        return ""
    shortest, longest = (
        some["duration_s"].astype("Float64").min(),
        others["duration_s"].astype("Float64").max(),
    )
    if is_missing(shortest) or is_missing(longest) or not shortest > longest >= 1:
        return ""
    return f"all longer than {float(longest):.0f} s"


def list_output_findings(table: pd.DataFrame, text: str, language: str) -> Iterator[Finding]:
    """Yield a finding for each system and language with empty outputs, or with one row that makes many errors."""
    rows = table[table["errors"].notna()]
    rows = rows.assign(**choose_ranking_counts_by_row(rows)[["errors", "reference_length"]])
    name = next((column for column in ("system", "voice_name") if column in rows.columns), None)
    if name == "voice_name" and (rows["voice"] == NO_SPEAKER).all():
        name = None
    keys = [key for key in ("condition", name, language) if key is not None and key in rows.columns]
    for values, part in rows.groupby(keys, observed=True, sort=False):
        facts = dict(zip(keys, values, strict=True))
        condition, system = str(facts.get("condition", "")), str(facts[name]) if name else ""
        where = [quote_name(system) if system else "", format_language(str(facts[language])), condition]
        label = f"{', '.join(filter(None, where))}: "
        about: dict[str, Any] = {"language": str(facts[language]), "condition": condition}
        about["systems"] = tuple(filter(None, [system]))
        if words := _describe_empty_outputs(part):
            yield Finding(f"{label}{words[0]}.", numbers=words[1], **about)
        if words := _describe_runaway_row(part.reset_index(drop=True), text):
            yield Finding(f"{label}{words[0]}.", numbers=words[1], **about)


def _describe_empty_outputs(rows: pd.DataFrame) -> tuple[str, dict[str, Any]] | None:
    """Return how many outputs came back empty, and the rate of the others."""
    is_empty = mark_empty_outputs(rows)
    empty, others = rows[is_empty], rows[~is_empty]
    if not len(empty):
        return None
    lengths = describe_longer_recordings(empty, others)
    words = f"{len(empty):,} of {format_count(len(rows), 'recording')} came back empty"
    words += f", {lengths}" if lengths else ""
    if len(others):
        words += f"; its other {len(others):,} have {describe_error_rate(others)}"
    return words, {"empty": len(empty), "of": len(rows)}


def describe_error_rate(rows: pd.DataFrame) -> str:
    """Return the error rate of rows: ``2.1 errors in 100``."""
    rate = 100 * float(rows["errors"].sum()) / max(float(rows["reference_length"].sum()), 1.0)
    return f"{rate:.1f} errors in 100"


def _describe_runaway_row(rows: pd.DataFrame, text: str) -> tuple[str, dict[str, Any]] | None:
    """Return the row that makes over a third of the errors, and the rate of the others."""
    place = find_runaway_row(rows)
    if place is None:
        return None
    row, others, total = rows.loc[place], rows.drop(index=place), int(rows["errors"].sum())
    words = f"one recording, {format_row_name(row, text)}, makes {int(row['errors']):,} of {total:,} errors"
    words += f"; its other recordings have {describe_error_rate(others)}"
    return words, {"errors": int(row["errors"]), "of": total}


def list_wrong_reference_findings(
    table: pd.DataFrame, text: str, language: str
) -> tuple[list[Finding], bool]:
    """Return findings on references that are likely wrong, and whether these carry the answer."""
    rows = table[table["errors"].notna()]
    if "condition" in rows.columns and len(rows):
        rows = rows[rows["condition"] == rows["condition"].iloc[0]]
    findings, shares = [], [0.0]
    recordings = rows["recording"] if "recording" in rows.columns else pd.Series(rows.index, rows.index)
    of = recordings.nunique()
    unlike = _select_rows_unlike_reference(rows, recordings)
    if (count := recordings[unlike.index].nunique()) >= _MIN_UNLIKE:
        words = f"{count:,} of {of:,} recordings came out wholly unlike their references"
        findings.append(
            Finding(f"{words}, which may be those of others.", numbers={"unlike": count, "of": of})
        )
        shares.append(float(unlike["errors"].sum()) / max(float(rows["errors"].sum()), 1.0))
    if "system" in rows.columns and rows["system"].nunique() > 1:
        count, share = _count_suspect_references(rows, text, language)
        if count > _SHARED_MODEL * of:
            words = f"On {count:,} of {format_count(of, 'recording')} all systems err alike: the references are wrong"
            findings.append(
                Finding(f"{words}, or the systems share a model.", numbers={"alike": count, "of": of})
            )
        elif count:
            words = f"{format_count(count, 'reference looks', 'references look')} wrong: all systems agree against"
            findings.append(
                Finding(f"{words} {'it' if count == 1 else 'them'}.", numbers={"suspects": count})
            )
            shares.append(share)
    return findings, max(shares) > _DECISIVE


def _select_rows_unlike_reference(rows: pd.DataFrame, recordings: pd.Series[Any]) -> pd.DataFrame:
    """Return rows of recordings that came out wholly unlike their reference with all systems, if most did not."""
    lengths = rows["reference_length"].astype("Float64")
    hits = rows["hits"].astype("Float64") / lengths.clip(lower=1)
    is_unlike = (hits <= 1 - _UNLIKE) & (lengths >= _MIN_LENGTH) & ~mark_empty_outputs(rows)
    if not is_unlike.any() or float(rows["error_rate"].astype("Float64").median()) > _USUAL:
        return rows.iloc[:0]
    return rows[is_unlike.groupby(recordings).transform("all")]


def _count_suspect_references(rows: pd.DataFrame, text: str, language: str) -> tuple[int, float]:
    """Return how many references all systems agree against, and the share of a system's errors that they make."""
    err_all = (rows["errors"] > 0).groupby(rows["recording"]).transform("all")
    left = rows[err_all]
    texts = left.pivot_table("hypothesis", "recording", "system", "first", observed=True).dropna()
    if not len(texts) or texts.shape[1] < 2:
        return 0, 0.0
    facts = left.drop_duplicates("recording").set_index("recording")[[text, language]]
    names = [f"speechlab: {place}" for place in range(texts.shape[1])]
    wide = facts.join(texts.set_axis(names, axis="columns"), how="inner")
    found = suspects(wide, names, reference=text, language=language, duration_s=None)
    errors = rows.groupby("system", observed=True)["errors"].agg(["sum", "size"])
    fewest = float(errors.loc[errors["size"] * 2 >= errors["size"].max(), "sum"].min())
    return len(found), float(found["agreed_differences"].sum()) / max(fewest, 1.0)


def add_reference_warning(answer: Conclusion, findings: Sequence[Finding]) -> Conclusion:
    """Return an answer with a line on references that carry it."""
    line = capitalize_unless_name(f"check the references: {str(findings[0]).rstrip('.')}.")
    return Conclusion(answer.text, f"{answer.certainty}\n{line}".strip())
