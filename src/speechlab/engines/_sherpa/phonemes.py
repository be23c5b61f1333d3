"""Texts as phonemes for voices of sherpa-onnx, which since its version 2 reads no text without a lexicon.

English and Japanese are read by the readers of the included voices. Other languages need the program ``espeak-ng``.
It is under the GPL, so it is not a part of this package and runs as a program of its own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import unicodedata
from collections.abc import Container

from speechlab._children import build_child_environment
from speechlab.engines._speech.phonemes import Reader, phonemize
from speechlab.errors import EngineError, MissingDependencyError

_TIMEOUT_S = 30.0
# Marks that voices read as pauses and tones; the program leaves them out.
_MARKS = re.compile(r"([,;:.!?…，、；：。！？]+)")
_PLAIN_MARKS = {"，": ",", "、": ",", "；": ";", "：": ":", "。": ".", "！": "!", "？": "?", "…": "."}
# Marks of a word in another language: "(en)".
_SWITCH = re.compile(r"\([a-z-]+\)")
# Kokoro's alphabet in that of espeak-ng, for American and British English.
_KOKORO_LETTERS = {
    "A": "eɪ", "I": "aɪ", "W": "aʊ", "Y": "ɔɪ", "O": "oʊ", "Q": "əʊ", "ʤ": "dʒ", "ʧ": "tʃ", "ᵊ": "ə", "T": "ɾ",
}  # fmt: skip
_RHOTIC = re.compile("ɜɹ")
_LONG_VOWEL = re.compile("([iuɑɔɜ])(?!ː)(?=[^ ]|$)")


def read_text(text: str, alphabet: str, espeak_voice: str, language: str, reader: Reader) -> str:
    """Return the phonemes of a piece of text, in the alphabet ``"kokoro"`` or ``"espeak"``.

    Raises:
        EngineError: The text cannot be read.
        MissingDependencyError: The language needs espeak-ng, which is not installed.
    """
    if alphabet == "text":
        return unicodedata.normalize("NFC", text)
    if alphabet == "kokoro" and language in {"en", "ja"}:
        return phonemize(text, reader, british=espeak_voice.endswith("gb"))
    program = shutil.which("espeak-ng")
    if program is not None:
        return _read_with_espeak(program, text, espeak_voice or language)
    if language == "en":
        british = "gb" in espeak_voice
        return unicodedata.normalize("NFD", _to_espeak_letters(reader.english(text, british=british)))
    raise MissingDependencyError(
        f"a voice in the language {language!r} needs the program espeak-ng, which was not found; "
        "install it (apt install espeak-ng, brew install espeak-ng)"
    )


def select_known(phonemes: str, known: Container[str]) -> str:
    """Return the phonemes that a voice has: as they are, in lower case, or without their accents."""
    selected = ""
    for char in phonemes:
        lower = char.lower()
        parts = [form for form in (char, lower) if form in known][:1] or unicodedata.normalize("NFD", lower)
        selected += "".join(part for part in parts if part in known)
    return selected


def _to_espeak_letters(phonemes: str) -> str:
    read = _RHOTIC.sub("ɜː", phonemes)
    read = _LONG_VOWEL.sub(r"\1ː", read)
    return "".join(_KOKORO_LETTERS.get(char, char) for char in read)


def _read_with_espeak(program: str, text: str, voice: str) -> str:
    parts = _MARKS.split(text.replace("\0", " ").replace("[[", "[ ["))
    clauses = [" ".join(part.split()) for part in parts[::2]]
    spoken = [clause for clause in clauses if any(char.isalnum() for char in clause)]
    if not spoken:
        return ""
    try:
        done = subprocess.run(
            [program, "-q", "--ipa", "-b", "1", "-v", voice, "--stdin"],
            # An empty line ends a clause, so that each clause is one line of the output.
            input="\n\n".join(spoken).encode(),
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            env=build_child_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(
            f"espeak-ng failed on a piece of {len(text)} characters: {type(error).__name__}"
        ) from error
    lines = [line.strip() for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
    if done.returncode or not lines:
        raise EngineError(
            f"espeak-ng cannot read a piece of {len(text)} characters with the voice {voice!r} "
            f"(status {done.returncode})"
        )
    return unicodedata.normalize("NFD", _join_clauses(parts, clauses, lines, len(spoken)))


def _join_clauses(parts: list[str], clauses: list[str], lines: list[str], spoken: int) -> str:
    """Put the marks of the text back between its clauses; without them if the lines are not those of the clauses."""
    lines = [_SWITCH.sub("", line) for line in lines]
    if len(lines) != spoken:
        return ", ".join(lines) + "."
    remaining = iter(lines)
    read = ""
    for clause, mark in zip(clauses, [*parts[1::2], ""], strict=True):
        if any(char.isalnum() for char in clause):
            read += next(remaining)
        if mark:
            read = read.rstrip() + _PLAIN_MARKS.get(mark[0], mark[0]) + " "
    return read.strip()
