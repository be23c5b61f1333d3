"""Transcripts of systems, and flags of suspect ones: text without speech, missing last words.

The rules:

- *hallucination*: a text for an empty reference; or a run of inserted text that is not a loop, of at least five
  words, or ten characters in languages without spaces (and in rows of two languages).
- *lost tail*: the last three words or more of the reference, or six characters, have no counterpart, and the
  hypothesis is not empty.
"""

from __future__ import annotations

from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from speechlab._arguments import is_missing
from speechlab.audio import AudioClip
from speechlab.evaluate._recognition.conditions import RATE, white_noise
from speechlab.evaluate._speech.rows import HEAR, existing_rows, recognised, unrecognised
from speechlab.evaluate._systems import ask_each
from speechlab.evaluate._writing.contents import Finding
from speechlab.metrics import edits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from speechlab.client import Client
    from speechlab.evaluate._systems import System
    from speechlab.store import Store


_INSERTED = {"word": 5, "char": 10}
_LOST = {"word": 3, "char": 6}
_NEEDED = [
    *("errors", "unit", "signature", "reference_length", "reference_normalized", "hypothesis_normalized"),
    *("hits", "substitutions", "deletions", "insertions"),
]


def transcripts_of(
    systems: Sequence[System],
    rows: pd.DataFrame,
    language: str,
    options: Mapping[str, Any],
    *,
    needed: bool = True,
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Return the transcripts of each system by its name, and the reasons of systems that could not be asked."""
    by_name = {system.name: system for system in systems}

    def hear(name: str, client: Client) -> pd.DataFrame:
        system = by_name[name]
        return recognised(client, rows, language, identify=system.identify, **options, **system.options)

    asked = {system.name: system.lab for system in systems if system.lab is not None}
    transcripts, unreachable = ask_each(asked, hear, needed=needed)
    for system in systems:
        if system.had:
            transcripts[system.name] = existing_rows(rows, system.had, language)
        elif system.name in unreachable:
            transcripts[system.name] = unrecognised(rows, unreachable[system.name])
    return {name: transcripts[name] for name in by_name}, unreachable


def flagged(table: pd.DataFrame) -> pd.DataFrame:
    """Return scored rows with ``hallucination`` and ``tail_lost``; missing for rows without a score."""
    bare = table[_NEEDED].assign(loop=table["loop"].fillna(value=False)).reset_index(drop=True)
    all_steps = edits(bare, equal=True).astype({"operation": str})
    by_row = all_steps.groupby("utterance", observed=True)["operation"].apply(list).to_dict()
    flags = [_flags(row, by_row.get(at, [])) for at, row in enumerate(bare.itertuples(index=False))]
    columns = pd.DataFrame(flags, table.index, ["hallucination", "tail_lost"], dtype="boolean")
    return table.assign(hallucination=columns["hallucination"], tail_lost=columns["tail_lost"])


def _flags(row: Any, steps: Sequence[str]) -> tuple[bool | None, bool | None]:
    """Whether a row has made-up text, and whether it lacks the end, by the steps of its alignment."""
    if is_missing(row.errors):
        return None, None
    unit = "char" if row.unit == "char" or "norm:custom:mixed_" in str(row.signature) else "word"
    inserted = (
        0
        if row.loop
        else max((len(list(run)) for step, run in groupby(steps) if step == "insert"), default=0)
    )
    lost = len(list(takewhile(lambda step: step == "delete", reversed(steps))))
    has_text, is_silent = bool(str(row.hypothesis_normalized)), not str(row.reference_normalized)
    return has_text and (is_silent or inserted >= _INSERTED[unit]), has_text and lost >= _LOST[unit]


_LEVELS_DB = (None, -60.0, -40.0, -25.0)
"""Levels of white noise in dBFS; None is silence."""
_LENGTHS_S = (1.0, 15.0)


def speechless_rows(count: int, languages: Sequence[str], seed: int, store: Store) -> pd.DataFrame:
    """Make recordings of silence and of noise at three levels, of 1 to 15 s, for each language."""
    generator = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        for level in _LEVELS_DB:
            length = round(float(generator.uniform(*_LENGTHS_S)), 1)
            frames = round(length * RATE)
            samples = np.zeros(frames, np.float32) if level is None else white_noise(frames, level, generator)
            blob = store.blobs.add(AudioClip(samples, RATE).encode("flac"), ".flac")
            sound = "silence" if level is None else f"noise at {level:g} dBFS"
            facts = {"sound": sound, "number": number, "duration_s": length}
            rows.append(facts | {"audio": str(store.blobs.path(blob.sha256, blob.suffix))})
    return pd.DataFrame([{**row, "language": code} for code in languages for row in rows])


def recognised_silence(
    systems: Sequence[System], rows: pd.DataFrame, options: Mapping[str, Any]
) -> pd.DataFrame:
    """Return the results of each system: ``system``, ``hypothesis``, ``hallucination``, ``status`` and ``error``.

    A text without letters or digits, such as a full stop, is no hallucination.
    """
    tables = []
    for name, transcripts in transcripts_of(systems, rows, "language", options, needed=False)[0].items():
        texts, status = transcripts[f"{HEAR}hypothesis"], transcripts[f"{HEAR}status"]
        made_up = texts.map(lambda text: any(map(str.isalnum, str(text)))).astype("boolean")
        made_up = made_up.where(texts.notna() & status.isin(["ok", "cached"]))
        results_of_system = rows.assign(system=name, hypothesis=texts, hallucination=made_up)
        tables.append(results_of_system.assign(status=status, error=transcripts[f"{HEAR}error"]))
    return pd.concat(tables, ignore_index=True)


def silence_findings(results: pd.DataFrame) -> list[Finding]:
    """Return a finding for each system: the number of recordings without speech in which it recognised a text."""
    findings: list[Finding] = []
    for system, rows in results.groupby("system", sort=False) if len(results) else ():
        name = str(system)
        flags, label = rows["hallucination"].dropna(), f"{name}: " if name else ""
        texts = int(flags.sum())
        by_sound = rows.loc[flags.index[flags], "sound"].value_counts(sort=False)
        sounds = ", ".join(f"{count} of {sound}" for sound, count in by_sound.items())
        where = f" ({sounds})" if sounds else ""
        failed = f"; {len(rows) - len(flags)} failed" if len(flags) < len(rows) else ""
        words = (
            f"{label}a text was recognised in {texts} of {len(flags)} recordings in which nobody speaks"
            f"{where}{failed}."
        )
        numbers = {"texts": texts, "of": len(flags)}
        if not len(flags):
            words = f"{label}none of {len(rows)} recordings in which nobody speaks could be recognised."
            numbers = {}
        findings.append(Finding(words, systems=(name,), numbers=numbers))
    return findings
