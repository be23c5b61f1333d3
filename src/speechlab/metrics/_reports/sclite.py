"""Print-outs in the formats of NIST's sclite (alignments, summaries, detailed report), and a reader of alignments."""

from __future__ import annotations

import re
import statistics
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._arguments import require_columns
from speechlab.errors import InvalidRequestError
from speechlab.metrics._arguments import check_choice
from speechlab.metrics._rates.tables import aligned, as_scored, rows_of
from speechlab.metrics._reports.detailed import detailed
from speechlab.metrics._reports.trn import speaker_of, utf8_text
from speechlab.metrics._signatures import joined_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from speechlab.metrics._alignment.alignment import Alignment
    from speechlab.metrics._rates.tables import Scorable

_WIDTH = 80
_MARKS = {"substitute": "S", "delete": "D", "insert": "I", "equal": ""}
_COUNTS = ("hits", "substitutions", "deletions", "insertions")


def sclite_report(
    scored: Scorable,
    hypotheses: Iterable[str | None] | None = None,
    *,
    report: str = "pra",
    utterance: str | None = None,
    speaker: str | None = None,
    name: str = "system",
    **how: Any,
) -> str:
    """A print-out of scores in a format of sclite, as text.

    Args:
        scored: Result of :func:`score` or :func:`error_rate`; or a table or references without scores.
        hypotheses: Hypotheses, if the first argument has references.
        report: Name of the format in sclite: ``"pra"`` (each alignment, reference above hypothesis), ``"sum"``
            (percentages by speaker), ``"rsum"`` (numbers by speaker) or ``"dtl"`` (overall figures, and the counts of
            substituted, deleted and inserted words).
        utterance: Column with the names of the utterances; None for the index.
        speaker: Column with the speakers; None for the part of an utterance's name before the first ``-`` or ``_``.
        name: Name of the system in the print-out.
        **how: Arguments of :func:`score` for texts without scores. For sclite's own counts,
            ``counts="sclite", normalize=None, language="en"``.

    Raises:
        InvalidRequestError: The table has no scores, its rows were scored in different ways or units, a column is
            missing, or the format does not exist.

    Example:
        >>> print(sclite_report(["the cat sat"], ["the hat sat now"], language="en").partition("REF")[2])
        :  the cat sat ***
        HYP:  the hat sat now
        Eval:     S       I
    """
    check_choice(report, ("pra", "sum", "rsum", "dtl"), "report", "there is no report")
    table = as_scored(scored, hypotheses, how)
    require_columns(table, *(column for column in (utterance, speaker) if column is not None))
    done = table[table["errors"].notna()]
    joined_of(done)
    units = sorted(done["unit"].astype(str).unique())
    if len(units) > 1:
        message = f"figures by {' and by '.join(units)} cannot be added up; select the rows of one unit"
        raise InvalidRequestError(message, parameter="unit")
    names = list(map(str, done.index if utterance is None else done[utterance]))
    speakers = list(map(speaker_of, names)) if speaker is None else list(map(str, done[speaker]))
    if report == "dtl":
        return detailed(map(aligned, rows_of(done)), name)
    if report == "pra":
        return _alignments(done, names, speakers, name)
    counts: dict[str, list[list[int]]] = {}
    for who, row in zip(speakers, done[list(_COUNTS)].itertuples(index=False), strict=True):
        counts.setdefault(who, []).append(list(map(int, row)))
    return _summary(counts, name, raw=report == "rsum")


def _alignments(done: pd.DataFrame, names: Sequence[str], speakers: Sequence[str], name: str) -> str:
    by_speaker: dict[str, list[str]] = {}
    for who, utterance, row in zip(speakers, names, rows_of(done), strict=True):
        by_speaker.setdefault(who, []).append(_printed(utterance, aligned(row)))
    head = ["\n\n\t\tDUMP OF SYSTEM ALIGNMENT STRUCTURE\n", f"System name:   {name}\n", "Speakers: "]
    head += [f"    {number}:  {who}" for number, who in enumerate(by_speaker)]
    parts = ["\n".join(head) + "\n\n"]
    for number, (who, printed) in enumerate(by_speaker.items()):
        parts.append(f"Speaker sentences   {number}:  {who}   #utts: {len(printed)}\n")
        parts += printed
    return "".join(parts)


def _printed(utterance: str, alignment: Alignment) -> str:
    lines = {"REF:  ": "", "HYP:  ": "", "Eval: ": ""}
    for edit in alignment:
        said, heard = edit.reference, edit.hypothesis
        width = max(_width(said or ""), _width(heard or ""))
        cells = (said if said is not None else "*" * width, heard if heard is not None else "*" * width)
        for line, cell in zip(lines, (*cells, _MARKS[edit.operation]), strict=True):
            lines[line] += cell + " " * (width - _width(cell)) + " "
    counts = " ".join(map(str, alignment.tally))
    text = "\n".join(line + cells for line, cells in lines.items())
    return f"id: ({utterance})\nScores: (#C #S #D #I) {counts}\nAttributes: Case_sensitve \n{text}\n\n"


def _width(text: str) -> int:
    """Columns that a text takes in a terminal: two for each wide character."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _summary(counts: dict[str, list[list[int]]], name: str, *, raw: bool) -> str:
    """The table by speaker: utterances, words, and hits, errors of each kind, all errors, utterances with errors."""
    figures = {who: _figures(rows) for who, rows in counts.items()}
    total = _figures([row for rows in counts.values() for row in rows])
    shown = {who: row if raw else _percent(row) for who, row in figures.items()}
    columns = list(zip(*shown.values(), strict=True)) or [(0.0,)] * 8
    below = {
        "Mean": [statistics.fmean(column) for column in columns],
        "S.D.": [statistics.stdev(column) if len(column) > 1 else 0.0 for column in columns],
        "Median": [statistics.median(column) for column in columns],
    }
    sums = "Sum" if raw else "Sum/Avg"
    first = max(len("Median"), len(sums) + 1, *(len(label) + 2 for label in ("SPKR", *shown)))
    head = f"| {'SPKR':<{first - 1}}| # Snt # Wrd | Corr    Sub    Del    Ins    Err  S.Err |"
    inner = len(head) - 2
    dashes = f"|{'-' * first}+{'-' * 13}+{'-' * 41}|"
    lines = [f",{'-' * inner}.", f"|{name:^{inner}}|", f"|{'-' * inner}|", head]
    for who, row in shown.items():
        lines += [dashes, f"| {who:<{first - 1}}|{_cells(row, whole=2, decimals=0 if raw else 1)}"]
    equals = f"|{'=' * inner}|"
    lines += [
        equals,
        f"| {sums:<{first - 1}}|{_cells(total if raw else _percent(total), whole=2, decimals=0 if raw else 1)}",
        equals,
        *(f"|{label:^{first}}|{_cells(row, whole=0, decimals=1)}" for label, row in below.items()),
        f"`{'-' * inner}'",
    ]
    margin = " " * max((_WIDTH - len(head)) // 2, 0)
    title = f"{'SYSTEM SUMMARY PERCENTAGES by SPEAKER':^{_WIDTH}}"
    return "\n".join(["", "", "", title, "", *(margin + line for line in lines), ""])


def _figures(rows: list[list[int]]) -> list[float]:
    hits, substitutions, deletions, insertions = (sum(column) for column in zip(*rows, strict=True))
    wrong = sum(1 for row in rows if sum(row[1:]))
    errors = substitutions + deletions + insertions
    words = hits + substitutions + deletions
    return [len(rows), words, hits, substitutions, deletions, insertions, errors, wrong]


def _percent(row: list[float]) -> list[float]:
    """The same figures as percentages of words; the last as a percentage of utterances."""
    utterances, words, *counts, wrong = row
    return [
        utterances,
        words,
        *(100 * count / max(words, 1) for count in counts),
        100 * wrong / max(utterances, 1),
    ]


def _cells(row: Sequence[float], *, whole: int, decimals: int) -> str:
    cells = [f"{value:.0f}" if place < whole else f"{value:.{decimals}f}" for place, value in enumerate(row)]
    left, right = cells[:2], cells[2:]
    return f"{left[0]:>5}{left[1]:>7} |{right[0]:>5}{''.join(f'{cell:>7}' for cell in right[1:])} |"


_ENTRY = re.compile(
    r"id: \((?P<id>[^()]*)\)\s*\n(?:(?!id: |Speaker sentences |REF:).*\n)*?"
    r"Scores: \(#C #S #D #I\) (?P<counts>[\d ]+)\n"
    r"(?:(?:(?!id: |Speaker sentences ).*\n)*?REF:(?P<ref>[^\n]*)\nHYP:(?P<hyp>[^\n]*)(?:\n|$))?"
)
_BLOCK = re.compile(r"^Speaker sentences\s+\d+:\s+(\S+)", re.MULTILINE)


def read_sclite(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read the alignments that sclite writes with ``-o pra`` as a scored table.

    Args:
        path: The file, in UTF-8.

    Returns:
        A table for all functions that take scored tables, with one row for each utterance: ``utterance``,
        ``speaker``, ``text`` and ``hypothesis`` (the aligned words), and the columns of :func:`score` by words. The
        signature records the counts as sclite's.

    Raises:
        InvalidRequestError: The file has no alignment or is not in UTF-8.

    Example:
        >>> talk = pd.DataFrame({"text": ["good morning"], "hypothesis": ["good mourning"]}, index=["s1-001"])
        >>> _ = Path("talk.pra").write_text(sclite_report(talk, language="en"), "utf-8")
        >>> read_sclite("talk.pra")[["utterance", "error_rate"]]
          utterance  error_rate
        0    s1-001         0.5
    """
    import pandas as pd

    content = utf8_text(path)
    blocks = [(found.start(), found[1]) for found in _BLOCK.finditer(content)]
    rows = []
    for found in _ENTRY.finditer(content):
        while len(blocks) > 1 and blocks[1][0] < found.start():
            del blocks[0]
        hits, substitutions, deletions, insertions = map(int, found["counts"].split())
        said, heard = _words(found["ref"] or ""), _words(found["hyp"] or "")
        errors, length = substitutions + deletions + insertions, hits + substitutions + deletions
        name = found["id"]
        counts = (hits, substitutions, deletions, insertions)
        rows.append(
            (
                name,
                blocks[0][1] if blocks else speaker_of(name),
                said,
                heard,
                said,
                heard,
                errors / max(length, 1),
                errors,
                *counts,
                length,
            )
        )
    if not rows:
        message = f"{Path(path).name} has no alignment; write it with sclite's option -o pra"
        raise InvalidRequestError(message, parameter="path")
    texts = ("utterance", "speaker", "text", "hypothesis", "reference_normalized", "hypothesis_normalized")
    numbers = ("errors", *_COUNTS, "reference_length")
    table = pd.DataFrame(rows, columns=[*texts, "error_rate", *numbers])
    table = table.astype(
        dict.fromkeys(texts, "string") | dict.fromkeys(numbers, "Int64") | {"error_rate": "Float64"}
    )
    signature = "unit:word|lang:any|norm:none|counts:sclite|read:pra"
    return table.assign(
        unit=pd.Categorical(["word"] * len(rows)), signature=pd.Categorical([signature] * len(rows))
    )


def _words(line: str) -> str:
    return " ".join(word for word in line.split() if set(word) != {"*"})
