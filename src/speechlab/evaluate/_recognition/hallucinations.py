"""Text that nobody said: flags of made-up and lost text, and recordings without speech, which are recognized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.audio import AudioClip
from speechlab.evaluate._advice.evidence import mark_empty_outputs
from speechlab.evaluate._recognition.conditions import RATE
from speechlab.evaluate._speech.speech_rows import HEAR
from speechlab.evaluate._writing.contents import Finding
from speechlab.metrics import edits

if TYPE_CHECKING:
    from speechlab.store import Store

# Words of a run of inserted text, or characters, from which it is made up; loops are not.
_MIN_INSERTED = {"word": 5, "char": 10}
# Words of the end of the reference, or characters, that are missing from a text which lost its tail.
_MIN_LOST = {"word": 3, "char": 6}
_REQUIRED_COLUMNS = [
    *("errors", "unit", "signature", "reference_length", "reference_normalized", "hypothesis_normalized"),
    *("hits", "substitutions", "deletions", "insertions"),
]


def flag_hallucinations_and_truncation(table: pd.DataFrame) -> pd.DataFrame:
    """Return scored rows with ``empty``, ``hallucination`` and ``tail_lost``; missing for rows without a score."""
    bare = table[_REQUIRED_COLUMNS].assign(loop=table["loop"].fillna(value=False)).reset_index(drop=True)
    all_steps = edits(bare, equal=True).astype({"operation": str})
    by_row = all_steps.groupby("utterance", observed=True)["operation"].apply(list).to_dict()
    flags = [
        _detect_invention_and_truncation(row, by_row.get(at, []))
        for at, row in enumerate(bare.itertuples(index=False))
    ]
    columns = pd.DataFrame(flags, table.index, ["hallucination", "tail_lost"], dtype="boolean")
    empty = mark_empty_outputs(table).astype("boolean").where(table["errors"].notna())
    return table.assign(empty=empty, hallucination=columns["hallucination"], tail_lost=columns["tail_lost"])


def _detect_invention_and_truncation(row: Any, steps: Sequence[str]) -> tuple[bool | None, bool | None]:
    """Return whether a row has made-up text, and whether it lacks the end, by the steps of its alignment."""
    if is_missing(row.errors):
        return None, None
    unit = "char" if row.unit == "char" or "norm:custom:mixed_" in str(row.signature) else "word"
    runs = [len(list(run)) for step, run in groupby(steps) if step == "insert" and not row.loop]
    inserted = max(runs, default=0)
    deleted = len(list(takewhile(lambda step: step == "delete", reversed(steps))))
    has_text, is_silent = bool(str(row.hypothesis_normalized)), not str(row.reference_normalized)
    return has_text and (is_silent or inserted >= _MIN_INSERTED[unit]), has_text and deleted >= _MIN_LOST[
        unit
    ]


# Levels of white noise in dBFS; None is silence.
_LEVELS_DB = (None, -60.0, -40.0, -25.0)
_LENGTHS_S = (1.0, 15.0)


def build_speechless_rows(count: int, languages: Sequence[str], seed: int, store: Store) -> pd.DataFrame:
    """Make recordings of silence and of noise at three levels, of 1 to 15 s, for each language."""
    generator = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        for level in _LEVELS_DB:
            length = round(float(generator.uniform(*_LENGTHS_S)), 1)
            frames = round(length * RATE)
            samples = np.zeros(frames, np.float32)
            if level is not None:  # in dB relative to a full-scale square wave
                noise = 10 ** (level / 20) * generator.standard_normal(frames)
                samples = noise.clip(-1, 1).astype(np.float32)
            blob = store.blobs.add_bytes(AudioClip(samples, RATE).encode("flac"), ".flac")
            sound = "silence" if level is None else f"noise at {level:g} dBFS"
            facts = {"sound": sound, "number": number, "duration_s": length}
            rows.append(facts | {"audio": str(store.blobs.resolve_path(blob.sha256, blob.suffix))})
    return pd.DataFrame([{**row, "language": code} for code in languages for row in rows])


def collect_silence_transcripts(rows: pd.DataFrame, by_system: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the transcripts of all systems: ``system``, ``hypothesis``, ``hallucination``, ``status`` and ``error``.

    A text without letters or digits, such as a full stop, is no hallucination.
    """
    tables = []
    for name, transcripts in by_system.items():
        texts, status = transcripts[f"{HEAR}hypothesis"], transcripts[f"{HEAR}status"]
        made_up = texts.map(lambda text: any(map(str.isalnum, str(text)))).astype("boolean")
        made_up = made_up.where(texts.notna() & status.isin(["ok", "cached"]))
        results_of_system = rows.assign(system=name, hypothesis=texts, hallucination=made_up)
        tables.append(results_of_system.assign(status=status, error=transcripts[f"{HEAR}error"]))
    return pd.concat(tables, ignore_index=True)


def build_silence_findings(results: pd.DataFrame) -> list[Finding]:
    """Return a finding for each system: the number of recordings without speech in which it recognized a text."""
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
            f"{label}a text was recognized in {texts} of {len(flags)} recordings in which nobody speaks"
            f"{where}{failed}."
        )
        numbers = {"texts": texts, "of": len(flags)}
        if not len(flags):
            words = f"{label}none of {len(rows)} recordings in which nobody speaks could be recognized."
            numbers = {}
        findings.append(Finding(words, systems=(name,), numbers=numbers))
    return findings
