"""Flags of suspect hypotheses: text without speech, missing last words.

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
from speechlab.evaluate._speech.rows import HEAR, recognised, unrecognised
from speechlab.evaluate._systems import ask_each
from speechlab.evaluate._writing.contents import Finding
from speechlab.metrics import edits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from speechlab.client import Client
    from speechlab.evaluate._systems import System
    from speechlab.store import Store


_INSERTED = {"word": 5, "char": 10}
_LOST = {"word": 3, "char": 6}
_NEEDED = [
    *("errors", "unit", "signature", "reference_length", "reference_normalized", "hypothesis_normalized"),
    *("hits", "substitutions", "deletions", "insertions"),
]


def flagged(table: pd.DataFrame) -> pd.DataFrame:
    """Return scored rows with ``hallucination`` and ``tail_lost``; missing for rows without a score."""
    bare = table[_NEEDED].reset_index(drop=True)
    all_steps = edits(bare, equal=True).astype({"operation": str})
    by_row = all_steps.groupby("utterance", observed=True)["operation"].apply(list).to_dict()
    loops = table["loop"].fillna(value=False).astype(bool).tolist()
    made_up: list[bool | None] = []
    lost_tails: list[bool | None] = []
    for at, row in enumerate(bare.itertuples(index=False)):
        if is_missing(row.errors):
            made_up.append(None)
            lost_tails.append(None)
            continue
        steps = by_row.get(at, [])
        unit = "char" if row.unit == "char" or "norm:custom:mixed_" in str(row.signature) else "word"
        has_text = bool(str(row.hypothesis_normalized))
        is_silent = not str(row.reference_normalized)
        run = 0 if loops[at] else _longest(steps)
        made_up.append(has_text and (is_silent or run >= _INSERTED[unit]))
        lost_tails.append(has_text and _at_the_end(steps) >= _LOST[unit])
    return table.assign(
        hallucination=pd.array(made_up, dtype="boolean"), tail_lost=pd.array(lost_tails, dtype="boolean")
    )


def _longest(steps: Sequence[str]) -> int:
    return max((len(list(run)) for step, run in groupby(steps) if step == "insert"), default=0)


def _at_the_end(steps: Sequence[str]) -> int:
    return len(list(takewhile(lambda step: step == "delete", reversed(steps))))


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
    recordings = pd.DataFrame(rows)
    return pd.concat([recordings.assign(language=code) for code in languages], ignore_index=True)


def recognised_silence(systems: Sequence[System], rows: pd.DataFrame, how: dict[str, Any]) -> pd.DataFrame:
    """Return the results of each system: ``system``, ``hypothesis``, ``hallucination``, ``status`` and ``error``.

    A text without letters or digits, such as a full stop, is no hallucination.
    """
    by_name = {system.name: system for system in systems}

    def hear(name: str, lab: Client) -> pd.DataFrame:
        system = by_name[name]
        return recognised(lab, rows, "language", identify=system.identify, **how, **system.options)

    results, unreachable = ask_each(
        {system.name: system.lab for system in systems if system.lab is not None}, hear, needed=False
    )
    tables = []
    for system in systems:
        transcripts = (
            results[system.name] if system.name in results else unrecognised(rows, unreachable[system.name])
        )
        texts, status = transcripts[f"{HEAR}hypothesis"], transcripts[f"{HEAR}status"]
        made_up = texts.map(lambda text: any(map(str.isalnum, str(text)))).astype("boolean")
        made_up = made_up.where(texts.notna() & status.isin(["ok", "cached"]))
        results_of_system = rows.assign(system=system.name, hypothesis=texts, hallucination=made_up)
        tables.append(results_of_system.assign(status=status, error=transcripts[f"{HEAR}error"]))
    return pd.concat(tables, ignore_index=True)


def silence_findings(results: pd.DataFrame) -> list[Finding]:
    """Return a finding for each system: the number of recordings without speech in which it recognised a text."""
    findings = []
    for name in results["system"].unique():
        rows = results[results["system"] == name]
        flags = rows["hallucination"].dropna()
        label = f"{name}: " if name else ""
        by_sound = rows[rows["hallucination"].fillna(value=False)]["sound"].value_counts(sort=False)
        sounds = ", ".join(f"{count} of {sound}" for sound, count in by_sound.items())
        where = f" ({sounds})" if sounds else ""
        if not len(flags):
            words = f"{label}none of {len(rows)} recordings in which nobody speaks could be recognised."
            findings.append(Finding(words, systems=(str(name),)))
            continue
        failed = f"; {len(rows) - len(flags)} failed" if len(flags) < len(rows) else ""
        words = (
            f"{label}a text was recognised in {int(flags.sum())} of {len(flags)} recordings in which nobody speaks"
            f"{where}{failed}."
        )
        findings.append(
            Finding(words, systems=(str(name),), numbers={"texts": int(flags.sum()), "of": len(flags)})
        )
    return findings
