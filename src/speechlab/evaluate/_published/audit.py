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
from speechlab.text import get_language_name, guess_language

# A system with less than this share of the utterances of another is left out, rather than the others' utterances.
_LEAST_SHARE = 0.5
# Texts of a set from which its language is guessed.
_GUESSED_FROM = 200
# How many times as many utterances recordings may give as references alone, since some references repeat.
_SPREAD = 1.2


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
    predictions: pd.DataFrame, language: str | None, normalize: str, title: str, notes: Sequence[str] = ()
) -> Report:
    """Return the audit of predictions that were read."""
    code, guessed = _choose_language(predictions, language)
    record = build_record("audit", None, language=code, normalize=normalize)
    own = ["system", "set", "recording", "text", "hypothesis", *({"speaker"} & {*predictions.columns})]
    rows = predictions.reindex(columns=own).astype({"recording": "string"})
    scored = _name_utterances(score_predictions(rows, record))
    common, left_out = _select_common_rows(rows, scored)
    return Report.of(build_audit_report(title, common, record, [*notes, *guessed, *left_out]))


def _choose_language(predictions: pd.DataFrame, language: str | None) -> tuple[str, list[str]]:
    """Return the language of reports, the given one, or that of the references; and a note if it is guessed."""
    codes = predictions.get("language", pd.Series([language])).dropna().unique().tolist()
    guesses: dict[str, str] = {}
    if not codes:
        texts = predictions.dropna(subset="text").drop_duplicates(["set", "text"])
        guesses = {
            str(name): _guess_language(part["text"]) for name, part in texts.groupby("set", sort=False)
        }
        codes = list(dict.fromkeys(guesses.values()))
    if len(codes) > 1:
        where = f" ({', '.join(f'{name}: {code}' for name, code in guesses.items())})" if guesses else ""
        given = join_with_and(sorted(codes))
        message = f"the predictions are of {given}{where}; give those of one language, or language="
        raise InvalidRequestError(message, parameter="language")
    code = codes[0] if codes else "en"
    return code, [f"The texts are taken as {get_language_name(code)}."] if guesses else []


def _guess_language(texts: pd.Series[str]) -> str:
    """Return Japanese or Chinese if most texts are in their script, and a tenth of these in kana; else English."""
    some = texts.head(_GUESSED_FROM).tolist()
    found = [guess_language([text]) for text in some]
    kana, han = found.count("ja"), found.count("zh")
    if 2 * (kana + han) <= len(some):
        return "en"
    return "ja" if 10 * kana >= kana + han else "zh"


def _name_utterances(scored: pd.DataFrame) -> pd.DataFrame:
    """Name the utterance of each row by its recording; by its reference in sets where recordings have several."""
    said = scored["reference_normalized"].astype("string")
    labels = {"recording": scored["recording"].fillna(""), "reference": said}
    names = {}
    for key, cells in labels.items():  # equal ones stay as many
        number = scored.groupby(["system", "set", cells], observed=True).cumcount().astype(str)
        names[key] = scored["set"] + "\n" + cells + "\n" + number
    is_named = scored["recording"].notna().groupby(scored["set"]).transform("all")
    counts = [
        keys.groupby(scored["set"]).transform("nunique")
        for keys in (names["recording"] + "\n" + said, names["reference"])
    ]
    is_sound = is_named & (counts[0] <= _SPREAD * counts[1])
    return scored.assign(utterance=names["recording"].where(is_sound, names["reference"]))


def _select_common_rows(rows: pd.DataFrame, scored: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the utterances that all systems have with one reference, in blocks; and notes on the others."""
    systems = rows["system"].unique().tolist()
    if len(systems) < 2:
        message = (
            f"there is nothing to compare among {format_count(len(systems), 'system')} ({join_names(systems)}); "
            "give two or more: a folder for each, or a column system"
        )
        raise InvalidRequestError(message, parameter="source")
    usual, notes = _select_usual_references(scored), []
    counts = usual["system"].value_counts().reindex(systems, fill_value=0)
    few = [name for name in systems if counts[name] < _LEAST_SHARE * counts.max()]
    if few and len(systems) - len(few) >= 2:
        systems = [name for name in systems if name not in few]
        most = f"{counts.max():,} utterances with the usual reference"
        notes += [f"{name}: left out, as it has {counts[name]:,} of {most}." for name in few]
        rows, scored, usual = (part[part["system"].isin(systems)] for part in (rows, scored, usual))
    is_common = usual.groupby("utterance")["system"].transform("nunique") == len(systems)
    common = usual[is_common].reset_index(drop=True)
    excluded = scored[~scored["utterance"].isin(common["utterance"])]
    for name, owners in rows.groupby("set", sort=False)["system"]:
        if absent := [system for system in systems if system not in set(owners)]:
            has = "has" if len(absent) == 1 else "have"
            notes.append(f"{name}: left out, as {join_names(absent)} {has} none of it.")
            excluded = excluded[excluded["set"] != name]
    if not len(common):
        message = f"no utterance is in all {len(systems)} systems with the same reference; give fewer systems"
        raise InvalidRequestError("\n".join([message, *notes]), parameter="source")
    if count := excluded["utterance"].nunique():
        notes.append(f"{format_count(count, 'utterance')} that not all have with one reference: left out.")
    if count := int(rows["text"].isna().sum()):
        notes.append(f"{format_count(count, 'row')} without a reference: left out.")
    common, of_blocks = _add_blocks(common, systems[0])
    return common, [*notes, *of_blocks]


def _select_usual_references(scored: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have the reference of most systems, which another one has too."""
    keys = ["utterance", "reference_normalized"]
    owners = scored.groupby(keys, sort=False, observed=True).size().reset_index(name="owners")
    most = owners.sort_values("owners", ascending=False, kind="stable").drop_duplicates("utterance")
    return scored.merge(most.loc[most["owners"] > 1, keys], on=keys)


def _add_blocks(common: pd.DataFrame, system: str) -> tuple[pd.DataFrame, list[str]]:
    """Return rows with the blocks of their utterances, by those of one system; and notes on them."""
    first = common[common["system"] == system]
    named = (first["set"] + "\n" + first["recording"]).mask(
        first.duplicated(["set", "recording"], keep=False)
    )
    spoken = {"speaker": first["set"] + "\n" + first["speaker"]} if "speaker" in first.columns else {}
    frame = pd.DataFrame({"audio": named, "text": first["text"], **spoken}).reset_index(drop=True)
    blocks = group_rows_into_blocks(frame, "audio", "text", "auto", by_speaker=False)
    if blocks.names is not None:
        common[BLOCK] = common["utterance"].map(dict(zip(first["utterance"], blocks.names, strict=True)))
    about = [f"All are of {blocks.about}; others may give other ranks."] if blocks.about else []
    return common, [*blocks.notes, *about]
