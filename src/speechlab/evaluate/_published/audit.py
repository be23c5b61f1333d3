"""An audit of published predictions: which ranks hold, which are chance, and who follows wrong references."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from speechlab._arguments import build_argument_error
from speechlab._brief import shorten_tracebacks
from speechlab._pandas import pd
from speechlab.display import format_count, join_with_and
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._audit.audit_report import build_audit_report, score_predictions
from speechlab.evaluate._published.reading import read_predictions
from speechlab.evaluate._report import Report
from speechlab.evaluate._speech.blocks import BLOCK, group_rows_into_blocks
from speechlab.evaluate._writing.record import build_record
from speechlab.evaluate._writing.sentences import join_names, quote_name
from speechlab.text import get_language_name, guess_language

# Texts of a set from which its language is guessed.
_GUESSED_FROM = 200


@shorten_tracebacks
def audit(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    language: str | None = None,
    normalize: str = "auto",
    title: str = "Audit",
) -> Report:
    """Say of published predictions which ranks hold and which are chance, and who follows the wrong references.

    Systems are ranked on the utterances that all have (:func:`speechlab.metrics.rank`), over all sets together, and
    for each set with p-values that are corrected for all sets. A reference is suspected where more than half of the
    other systems agree on other words. A system follows them if it has the suspected words much more often than the
    others have, and than slips like its own coincide by chance.

    Args:
        source: A folder of files by system and set (``system/set.csv``), or files: CSV or JSON lines with ``text``
            and ``pred_text`` or ``hypothesis``, perhaps with ``system``, ``set``, ``id`` and ``speaker``; a folder
            of one set, with a file for each system; those of the Open ASR leaderboard, which name system and set
            (``MODEL_…_DATASET_….jsonl``); and reports of several recognizers.
        language: The language of the texts; reports have their own. None takes Japanese and Chinese by their script,
            and all else as English.
        normalize: As for :func:`speechlab.metrics.error_rate`, such as ``"open-asr"``.
        title: Title of the report.

    Returns:
        A report: ``summary`` has the systems with their ``rank``, ``group`` (letters), the ranks that chance could
        give them (``rank_low`` to ``rank_high``), ``needed`` (utterances that would show the difference from the
        rank before, where it is not shown), ``followed`` (share of suspected references that it has, with an
        interval) and ``follows``; ``tables["sets"]`` the same by set, ``differences`` all pairs.

    Raises:
        InvalidRequestError: No file can be read; the texts are of several languages; or the systems are fewer than
            two, or have no utterance in common.
    """
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not all(isinstance(path, str | os.PathLike) for path in paths):
        raise build_argument_error("source", source, "a folder, a file, or a list of them")
    predictions, faults, notes = read_predictions([Path(path) for path in paths])
    return audit_predictions(predictions, language, normalize, title, faults, notes)


def audit_predictions(
    predictions: pd.DataFrame,
    language: str | None,
    normalize: str,
    title: str,
    faults: Mapping[str, str],
    notes: Sequence[str],
) -> Report:
    """Return the audit of predictions that were read, with the faults of files that could not be."""
    names = predictions["system"].unique()
    code, guessed = _choose_language(predictions, language)
    record = build_record("audit", None, language=code, normalize=normalize)
    own = ["system", "set", "recording", "text", "hypothesis", *({"speaker"} & {*predictions.columns})]
    rows = predictions.reindex(columns=own).astype({"recording": "string"})
    absent = _describe_absent_predictions(rows)
    reasons = [*faults.values(), *([absent] if absent else [])]
    if not len(rows.dropna(subset=["text", "hypothesis"])):
        message = "no row has both a reference and a prediction; give files that have"
        raise InvalidRequestError("\n".join([message, *reasons]), parameter="source")
    common, lost, left_out = _select_common_rows(score_predictions(rows, record), reasons)
    kept = common["system"].unique()
    clauses = [re.split(r"; |\. ", fault)[0] for fault in faults.values()]
    clauses = [f"{join_names([*faults])} could not be read"] if len(faults) > 1 else clauses
    clauses += [absent] if absent else []
    clauses += [f"{join_names([*lost])} are left out"] if len(lost) > 1 else [*lost.values()]
    clauses += [f"{len(kept)} of {len(names)} systems are compared"] if len(kept) < len(names) else []
    record["settings"]["left_out"] = f"{'; '.join(clauses)}." if clauses else ""
    if count := int((rows["text"].isna() & rows["hypothesis"].notna()).sum()):
        left_out.append(f"{format_count(count, 'row')} without a reference: left out.")
    common, of_blocks = _add_blocks(common, kept[0])
    why = [f"{words}." for words in (*faults.values(), *lost.values())]
    return Report.of(
        build_audit_report(title, common, record, [*why, *notes, *guessed, *left_out, *of_blocks])
    )


def _describe_absent_predictions(rows: pd.DataFrame) -> str:
    """Return which systems have no prediction for how many of their utterances; of many, the worst by name."""
    lacks = rows[rows["text"].notna()].groupby("system", sort=False)["hypothesis"].agg(["size", "count"])
    missing = (lacks["size"] - lacks["count"]).sort_values(ascending=False, kind="stable")
    missing = missing[missing > 0]
    if not len(missing):
        return ""
    name = missing.index[0]
    of = format_count(int(lacks["size"][name]), "utterance")
    words = f"{quote_name(name)} has no prediction for {missing.iloc[0]:,} of {of}"
    if others := len(missing) - 1:
        words += f", {format_count(others, 'other system')} for {missing.iloc[1:].sum():,} together"
    return words


def _choose_language(predictions: pd.DataFrame, language: str | None) -> tuple[str, list[str]]:
    """Return the language of reports, the given one, or that of the references; and a note if it is guessed."""
    codes = predictions.get("language", pd.Series([language])).dropna().unique().tolist()
    if is_guessed := not codes:
        texts = predictions.dropna(subset="text").drop_duplicates(["set", "text"])
        codes = texts.groupby("set", sort=False)["text"].agg(_guess_language).unique().tolist() or ["en"]
    if len(codes) > 1:
        given = join_with_and(sorted(codes))
        message = f"the predictions are of {given}; give those of one language, or language="
        raise InvalidRequestError(message, parameter="language")
    return codes[0], [f"The texts are taken as {get_language_name(codes[0])}."] if is_guessed else []


def _guess_language(texts: pd.Series[str]) -> str:
    """Return Japanese or Chinese if most texts are in their script, and a tenth of these in kana; else English."""
    found = Counter(guess_language([text]) for text in texts.head(_GUESSED_FROM))
    if 2 * (found["ja"] + found["zh"]) <= found.total():
        return "en"
    return "ja" if 9 * found["ja"] >= found["zh"] else "zh"


def _select_common_rows(
    scored: pd.DataFrame, reasons: Sequence[str]
) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Return the utterances that all systems have; why systems are left out, and notes on other utterances.

    An utterance is a reference of a set; equal ones are as many, in the order of the names of their recordings. Those
    systems are left out without which most predictions remain.
    """
    keys = ["system", "set", "reference_normalized"]
    number = scored.sort_values("recording", kind="stable").groupby(keys, observed=True).cumcount()
    said = scored["reference_normalized"].astype("string")
    scored = scored.assign(utterance=scored["set"] + "\n" + said + "\n" + number.astype(str))
    counts = scored.groupby(["set", "utterance"], sort=False)["system"].value_counts()
    has = counts.unstack("system", fill_value=0)[scored["system"].unique()]
    # Whose utterances most others have too, first; and how many utterances the first so many of them share.
    best = (has.T @ has.sum(axis=1)).sort_values(ascending=False, kind="stable").index
    shared = has[best].cumprod(axis=1).sum().tolist()
    most = max(range(2, len(best) + 1), key=lambda count: (count * shared[count - 1], count), default=0)
    if not most or not shared[most - 1]:
        found = f"{format_count(len(best), 'system')} ({join_names(scored['system'].unique().tolist())})"
        message = (
            f"no utterance of a set is in all {found} with the same reference; "
            "if these are sets, name the files system/set.csv; else give fewer systems"
        )
        if not most:
            message = (
                f"there is nothing to compare among {found}; give two or more, in folders or a column system"
            )
        raise InvalidRequestError("\n".join([message, *reasons]), parameter="source")
    kept = has[[name for name in has.columns if name in best[:most]]]
    is_common = kept.all(axis=1)
    lost = {
        name: f"{quote_name(name)} is left out, as it has {has.loc[is_common, name].sum():,} of the others' "
        f"{shared[most - 1]:,} utterances with their reference"
        for name in best[most:]
    }
    notes = []
    for name, rows in kept[kept.any(axis=1)].groupby(level="set", sort=False):
        missing = rows[~rows.all(axis=1)]
        if len(missing):
            owners, others = (missing.columns[mask].tolist() for mask in (missing.any(), ~missing.all()))
            who = f"{join_names(others, 'or')} lacks, or has with another reference"
            who = (
                f"{join_names(owners)} alone {'has' if len(owners) == 1 else 'have'}"
                if len(owners) < len(others)
                else who
            )
            notes.append(f"{name}: {len(missing):,} of {len(rows):,} utterances left out, which {who}.")
    is_shared = scored["utterance"].isin(is_common[is_common].index.get_level_values("utterance"))
    return scored[is_shared & scored["system"].isin(kept.columns)].reset_index(drop=True), lost, notes


def _add_blocks(common: pd.DataFrame, system: str) -> tuple[pd.DataFrame, list[str]]:
    """Return rows with the blocks of their utterances, by those of one system; and notes on them."""
    first = common[common["system"] == system].reset_index(drop=True)
    spoken = {"speaker": first["set"] + "\n" + first["speaker"]} if "speaker" in first.columns else {}
    frame = pd.DataFrame({"audio": None, "text": first["text"], **spoken})
    blocks = group_rows_into_blocks(frame, "audio", "text", "auto", by_speaker=False)
    if blocks.names is not None:
        common[BLOCK] = common["utterance"].map(dict(zip(first["utterance"], blocks.names, strict=True)))
    about = [f"All are of {blocks.about}; others may give other ranks."] if blocks.about else []
    return common, [*blocks.notes, *about]
