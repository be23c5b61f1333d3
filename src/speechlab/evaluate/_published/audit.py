"""An audit of published predictions: which ranks hold, which are chance, and who follows wrong references."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
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
from speechlab.evaluate._writing.sentences import join_names


@shorten_tracebacks
def audit(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    language: str = "en",
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
            and ``pred_text`` or ``hypothesis``, perhaps with ``system``, ``set``, ``id`` and ``speaker``; those of
            the Open ASR leaderboard, which name system and set (``MODEL_…_DATASET_….jsonl``); and reports of several
            recognizers.
        language: The language of the texts; reports have their own.
        normalize: As for :func:`speechlab.metrics.error_rate`, such as ``"open-asr"``.
        title: Title of the report.

    Returns:
        A report: ``summary`` has the systems with their ``rank``, ``group`` (a number), the ranks that chance could
        give them (``rank_low`` to ``rank_high``), ``needed`` (utterances that would show the difference from the
        rank before, where it is not shown), ``followed`` (share of suspected references that it has, with an
        interval) and ``follows``; ``tables["sets"]`` the same by set, ``differences`` all pairs.

    Raises:
        InvalidRequestError: A file cannot be read or lacks a column; the texts are of several languages; or the
            systems are fewer than two, or have no utterance in common.
    """
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not all(isinstance(path, str | os.PathLike) for path in paths):
        raise build_argument_error("source", source, "a folder, a file, or a list of them")
    predictions, notes = read_predictions([Path(path) for path in paths])
    return audit_predictions(predictions, language, normalize, title, notes)


def audit_predictions(
    predictions: pd.DataFrame, language: str, normalize: str, title: str, notes: Sequence[str] = ()
) -> Report:
    """Return the audit of predictions that were read."""
    codes = predictions.get("language", pd.Series([language])).dropna().unique().tolist()
    if len(codes) > 1:
        message = f"the reports are of {join_with_and(sorted(codes))}; give those of one language"
        raise InvalidRequestError(message, parameter="source")
    record = build_record("audit", None, language=codes[0], normalize=normalize)
    keys = ["system", "set", "recording"]
    own = [*keys, "text", "hypothesis", *({"speaker"} & {*predictions.columns})]
    rows = predictions.reindex(columns=own).astype({"recording": "string"})
    number = rows.groupby(keys, dropna=False).cumcount().astype(str)  # equal names stay as many
    rows["utterance"] = rows["set"] + "\n" + rows["recording"].fillna("") + "\n" + number
    scored = score_predictions(rows, record)
    rows, left_out = _select_common_rows(rows, scored)
    return Report.of(build_audit_report(title, rows, record, [*notes, *left_out]))


def _select_common_rows(rows: pd.DataFrame, scored: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the utterances that all systems have with one reference, in blocks; and notes on the others."""
    systems = rows["system"].unique()
    if len(systems) < 2:
        message = (
            f"there is nothing to compare among {format_count(len(systems), 'system')}; give two or more"
        )
        raise InvalidRequestError(message, parameter="source")
    of = scored.groupby("utterance")
    is_common = (of["system"].transform("nunique") == len(systems)) & (
        of["reference_normalized"].transform("nunique") == 1
    )
    common, notes = scored[is_common].reset_index(drop=True), []
    if not len(common):
        message = f"no utterance is in all {len(systems)} systems with the same reference; give fewer systems"
        raise InvalidRequestError(message, parameter="source")
    excluded = rows[~rows["utterance"].isin(common["utterance"])]
    for name, owners in rows.groupby("set", sort=False)["system"]:
        if absent := [system for system in systems if system not in set(owners)]:
            notes.append(
                f"{name}: left out, as {join_names(absent)} {'has' if len(absent) == 1 else 'have'} none of it."
            )
            excluded = excluded[excluded["set"] != name]
    if count := excluded["utterance"].nunique():
        notes.append(f"{format_count(count, 'utterance')} that not all have with one reference: left out.")
    first = common[common["system"] == systems[0]]
    named = (first["set"] + "\n" + first["recording"]).mask(
        first.duplicated(["set", "recording"], keep=False)
    )
    spoken = {"speaker": first["set"] + "\n" + first["speaker"]} if "speaker" in first.columns else {}
    frame = pd.DataFrame({"audio": named, "text": first["text"], **spoken}).reset_index(drop=True)
    blocks = group_rows_into_blocks(frame, "audio", "text", "auto", by_speaker=False)
    if blocks.names is not None:
        common[BLOCK] = common["utterance"].map(dict(zip(first["utterance"], blocks.names, strict=True)))
    about = [f"All are of {blocks.about}; others may give other ranks."] if blocks.about else []
    return common, [*notes, *blocks.notes, *about]
