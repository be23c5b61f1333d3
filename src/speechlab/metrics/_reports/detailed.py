"""The detailed overall report of NIST's sclite (``dtl``): figures, and the words with errors."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from speechlab.metrics._alignment.alignment import Alignment

_RATES = (  # as sclite spells them
    ("substitions", "substitute"),
    ("deletions", "delete"),
    ("insertions", "insert"),
)
_SUBSTITUTED = (
    "* NOTE: The 'Substitution' words are those reference words\n"
    "        for which the recognizer supplied an incorrect word.\n\n\n"
)
_FALSE = (
    "* NOTE: The 'Falsely Recognized' words are those hypothesis words\n"
    "        which the recognizer incorrectly substituted for a reference word.\n\n"
)


def detailed(alignments: Iterable[Alignment], name: str) -> str:
    """The report of alignments by words."""
    utterances, words = Counter[str](), Counter[str]()
    pairs, inserted, deleted = Counter[str](), Counter[str](), Counter[str]()
    substituted, false = Counter[str](), Counter[str]()
    for alignment in alignments:
        found = Counter(edit.operation for edit in alignment)
        words.update(found)
        wrong = found.keys() - {"equal"}
        utterances.update(["all", *wrong, *(["wrong"] if wrong else [])])
        for edit in alignment:
            if edit.operation == "substitute":
                pairs[f"{edit.reference} ==> {edit.hypothesis}"] += 1
                substituted[str(edit.reference)] += 1
                false[str(edit.hypothesis)] += 1
            elif edit.operation == "insert":
                inserted[str(edit.hypothesis)] += 1
            elif edit.operation == "delete":
                deleted[str(edit.reference)] += 1
    return (
        f"DETAILED OVERALL REPORT FOR THE SYSTEM: {name}\n\n"
        f"{_sentences(utterances)}{_words(words)}"
        f"{_listed('CONFUSION PAIRS', pairs)}\n{_listed('INSERTIONS', inserted)}\n{_listed('DELETIONS', deleted)}\n"
        f"{_listed('SUBSTITUTIONS', substituted)}{_SUBSTITUTED}{_listed('FALSELY RECOGNIZED', false)}{_FALSE}"
    )


def _sentences(counts: Counter[str]) -> str:
    total = counts["all"]
    lines = [
        "SENTENCE RECOGNITION PERFORMANCE\n",
        f" sentences                                        {total:4d}",
        f" with errors                            {_share(counts['wrong'], total)}\n",
        *(f"   with {called:<32}{_share(counts[operation], total)}" for called, operation in _RATES),
    ]
    return "\n".join(lines) + "\n\n\n"


def _words(counts: Counter[str]) -> str:
    substituted, deleted, inserted = (counts[operation] for _, operation in _RATES)
    said = counts["equal"] + substituted + deleted
    errors = substituted + deleted + inserted
    lines = [
        "WORD RECOGNITION PERFORMANCE\n",
        f"Percent Total Error       =  {_share(errors, said)}\n",
        f"Percent Correct           =  {_share(counts['equal'], said)}\n",
        f"Percent Substitution      =  {_share(substituted, said)}",
        f"Percent Deletions         =  {_share(deleted, said)}",
        f"Percent Insertions        =  {_share(inserted, said)}",
        f"Percent Word Accuracy     =  {_percent(said - errors, said)}\n\n",
        f"Ref. words                =           ({said:4d})",
        f"Hyp. words                =           ({said - deleted + inserted:4d})",
        f"Aligned words             =           ({said + inserted:4d})\n",
    ]
    return "\n".join(lines) + "\n"


def _share(count: int, total: int) -> str:
    return f"{_percent(count, total)}   ({count:4d})"


def _percent(count: int, total: int) -> str:
    return f"{100 * count / total:5.1f}%" if total else "UNDEF%"


def _listed(title: str, counts: Counter[str]) -> str:
    """Words, the most frequent first; ties in the order of their code points."""
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    lines = [
        f"{title:<33}Total                 ({len(rows)})",
        f"{'':33}With >=  1 occurrences ({len(rows)})\n",
        *(f"{number:4d}: {count:4d}  ->  {word}" for number, (word, count) in enumerate(rows, 1)),
        "     -------",
        f"{counts.total():10d}\n\n",
    ]
    return "\n".join(lines) + "\n"
