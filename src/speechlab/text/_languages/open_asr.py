"""The English normaliser of the Open ASR Leaderboard, as it stood in August 2026 (commit d1e99b2).

It is Whisper's with more fillers, fewer contractions, American spellings, names and compounds of its own, and spelled
letters joined (b b c is bbc). Nothing is added, so that its texts are those of the leaderboard.

Source: folder ``normalizer`` of huggingface/open_asr_leaderboard.
"""

from __future__ import annotations

import csv
import json
import re
from functools import cache
from importlib.resources import files

from speechlab.text._languages.english import (
    APOSTROPHES,
    BRACKETS,
    COMMAS,
    FULL_STOPS,
    LONE_SIGNS,
    NUMBERS,
    SYMBOLS,
    contractions,
    fillers,
    spellings,
    whisper,
    whisper_spellings,
)
from speechlab.text._normalizer import Normalizer, Step
from speechlab.text._steps import COLLAPSE, LOWER

_FILLERS = r"\b(hmm|mm|mhm|mmm|uh|um|ah|aha|ahh|ahm|eh|ehehe|em|hm|huh|hum|mhum|uhm|umm|uhuh)\b"
_POSSESSIVE = "'s\\b"
_IS = r"\b(it|he|she|what|that|who|here|there|how|when|where|why|this)'s\b"
_NOT_EXPANDED = (r"\bkinda\b", r"\bsorta\b", r"\bdunno\b", r"\bcause\b")
_COMMON = {"a", "i"}


@cache
def _tables() -> dict[str, dict[str, str]]:
    """The leaderboard's own spellings, names and compounds: another form and the one that counts."""
    lines = (files(__package__) / "open_asr.tsv").read_text(encoding="utf-8").splitlines()[1:]
    tables: dict[str, dict[str, str]] = {}
    for row in csv.DictReader(lines, delimiter="\t"):
        forms = dict.fromkeys(row["others"].split(", "), row["one"])
        tables[row["kind"]] = tables.get(row["kind"], {}) | forms
    return tables


def _contractions() -> dict[str, str]:
    rules = {old: new for old, new in whisper().replacers.items() if old not in _NOT_EXPANDED}
    return {
        (_IS if old == _POSSESSIVE else old): (r"\1 is" if old == _POSSESSIVE else rules[old])
        for old in rules
    }


@cache
def _spellings() -> dict[str, str]:
    return whisper_spellings() | _tables()["spelling"]


@cache
def _compound() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(_tables()['compound'])})\b".replace(" ", r"\s+"))


def _compounds(text: str) -> str:
    return _compound().sub(lambda found: _tables()["compound"][" ".join(found[0].split())], text)


def _acronyms(text: str) -> str:
    """Letters and figures that stand alone, side by side, as one word; of "a" and "i" only in three or more."""
    joined: list[str] = []
    run: list[str] = []
    for word in [*text.split(), ""]:
        if len(word) == 1 and word.isalnum():
            run.append(word)
            continue
        together = len(run) >= (2 if _COMMON.isdisjoint(run) else 3)
        joined += ["".join(run)] if together else run
        run = []
        joined.append(word)
    return " ".join(joined[:-1])


OPEN_ASR = Normalizer(
    "open-asr",
    1,
    (
        LOWER,
        *BRACKETS,
        fillers(lambda: _FILLERS),
        APOSTROPHES,
        contractions(_contractions),
        COMMAS,
        FULL_STOPS,
        SYMBOLS,
        Step("compounds", _compounds, lambda: json.dumps(_tables()["compound"])),
        NUMBERS,
        spellings("spellings", _spellings),
        spellings("names", lambda: _tables()["name"]),
        Step("acronyms", _acronyms, "single letters and figures in a row, two; three with a or i"),
        *LONE_SIGNS,
        COLLAPSE,
    ),
)
