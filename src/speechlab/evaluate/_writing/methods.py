"""The methods paragraph of a report: what the study says it did, with the source of each measure."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._platform import find_installed_version, get_package_version
from speechlab.evaluate._study_arguments import parse_language_code
from speechlab.text import get_language_name

if TYPE_CHECKING:
    import pandas as pd


class Methods(NamedTuple):
    """A paragraph and its sources."""

    text: str
    sources: tuple[str, ...]

    def __str__(self) -> str:
        listed = "\n".join(f"[{number}] {source}" for number, source in enumerate(self.sources, 1))
        return f"{self.text}\n\n{listed}" if listed else self.text


_UNITS = {
    "word": "words",
    "char": "characters",
    "reading": "kana",
    "pinyin": "syllables with their tones",
    "toneless": "syllables without tones",
}
_COUNTED = "the fewest substitutions, deletions and insertions that turn the reference into the hypothesis"
_LEVENSHTEIN = (
    "V. I. Levenshtein, Binary codes capable of correcting deletions, insertions, and reversals, "
    "Soviet Physics Doklady 10 (1966)"
)
_WHISPER = "A. Radford et al., Robust speech recognition via large-scale weak supervision, appendix C (2022)"
_MIXED = (
    "N. T. Vu et al., A first speech recognition system for Mandarin-English code-switch conversational speech "
    "(ICASSP 2012)"
)
_NOISES = {
    "speech": "Noise with the long-term spectrum of each recording, its phases drawn by chance with a fixed seed,",
    "white": "White noise with a fixed seed",
}
_OWN_NOISE = "A recording of noise, repeated from a place drawn by chance with a fixed seed,"


def describe_methods(
    title: str, *steps: str, signatures: Iterable[str] = (), noise: str = "speech"
) -> Methods:
    """Describe the methods of a study."""
    sentences_with_sources = [
        _describe_scoring(dict(field.split(":", 1) for field in signature.split("|") if ":" in field))
        for signature in sorted(set(signatures))
    ]
    for name, entry in _load_method_sentences().items():
        if name in steps:
            words = entry["said"].strip().replace("{noise}", _NOISES.get(noise, _OWN_NOISE))
            for package in ("pyopenjtalk-plus", "sudachidict-core", "pypinyin", "sacrebleu"):
                words = words.replace(
                    f"{{{package}}}", find_installed_version(package) or "(not installed here)"
                )
            sentences_with_sources.append((words, tuple(entry.get("sources", ()))))
    cited = tuple(dict.fromkeys(source for _, sources in sentences_with_sources for source in sources))
    sentences = [f"“{title}”: figures by speechlab {get_package_version()}."]
    for words, sources in dict.fromkeys(sentences_with_sources):
        marks = ", ".join(str(cited.index(source) + 1) for source in sources)
        sentences.append(f"{words[:-1]} [{marks}]." if marks else words)
    return Methods(" ".join(sentences), cited)


@cache
def _load_method_sentences() -> dict[str, Any]:
    """What studies do, with the sentence for it and its sources, in the order of a paragraph."""
    return tomllib.loads(Path(__file__).with_name("methods.toml").read_text(encoding="utf-8"))


def list_distinct_values(table: pd.DataFrame, column: str) -> list[str]:
    """Return the different values of a column as texts; none without the column."""
    return sorted(set(table[column].dropna().astype(str))) if column in table.columns else []


def _describe_scoring(parts: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the scoring of rows with one signature, in words."""
    norm = parts.get("norm", "none")
    sources = [_LEVENSHTEIN]
    unit = _UNITS.get(parts.get("unit", ""), parts.get("unit", ""))
    if "mixed_" in norm:
        unit = "words, and single characters of languages without spaces"
        sources.append(_MIXED)
    if norm.startswith(("en-", "open-asr-")) or "whisper" in norm:
        sources.append(_WHISPER)
    normalized = "not normalized" if norm.split("-")[0] == "none" else f"normalized by {norm}"
    how = _COUNTED
    if "compounds" in parts:
        how += ", words written together or apart being alike"
    if "variants" in parts:
        normalized += f" and by a list of variants ({parts['variants']})"
    tool = f" (rapidfuzz {parts['rapidfuzz']})" if "rapidfuzz" in parts else ""
    code = parse_language_code(parts.get("lang"))
    subject = get_language_name(code) if code else "The text"
    return f"{subject} was counted by {unit}, {normalized}: {how}{tool}.", tuple(sources)
