"""Pairs that were written down with their class, and the classes that they get (`poe classes` writes the tables)."""

import csv
from collections import Counter
from functools import cache
from itertools import groupby
from pathlib import Path

from speechlab.metrics import classify_differences

TESTS = Path(__file__).parents[1]
PAIRS = TESTS / "metrics" / "rates" / "pairs"
SPOKEN = TESTS / "metrics" / "rates" / "spoken"
RIGHT = TESTS / "metrics" / "rates" / "right.md"
GUIDE = TESTS.parent / "docs" / "error-rates.md"
CLASSES = {
    "en": ("filler", "notation", "homophone", "recognition"),
    "ja": ("filler", "notation", "homophone", "recognition"),
    "zh": ("filler", "notation", "homophone", "tone", "recognition"),
}
"""The classes of each language, the mildest first. "equal": alike after normalization."""
FLOOR = 0.94
"""Share of the pairs of each file whose class must be right."""
SETS = sorted(path.stem for path in PAIRS.glob("*.tsv"))
HEARD = sorted(f"{path.stem}-spoken" for path in SPOKEN.glob("*.tsv"))


def pairs(name):
    """The pairs of a file, such as ``ja-first``, as dicts."""
    with (PAIRS / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@cache
def spoken(language):
    """The differences of sentences that were spoken and recognized, as dicts; ``found``: the class that they get."""
    with (SPOKEN / f"{language}.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    for (_, text, transcript), of_pair in groupby(
        rows, lambda row: (row["voice"], row["text"], row["transcript"])
    ):
        for row, found in zip(
            of_pair, classify_differences(text, transcript, language).differences, strict=True
        ):
            assert (row["reference"], row["hypothesis"]) == (found.reference, found.hypothesis), row
            row["found"] = found.kind
    return rows


@cache
def class_of(reference, hypothesis, language):
    """The worst class among the differences of a pair."""
    found = classify_differences(reference, hypothesis, language).differences
    return max((one.kind for one in found), key=CLASSES[language].index, default="equal")


def is_right(written, found):
    """Whether a class is the written one; what nobody can hear may also be alike after normalization."""
    return found == written or (
        written in {"notation", "filler"} and found in {"equal", "notation", "filler"}
    )


def right_of(name):
    """How many pairs of a file have the right class, and how many there are."""
    language = name.partition("-")[0]
    found = [
        is_right(pair["class"], class_of(pair["reference"], pair["hypothesis"], language))
        for pair in pairs(name)
    ]
    return sum(found), len(found)


def sets_table():
    """A row for each file of pairs, with a column for each language."""
    files = dict.fromkeys(name.partition("-")[2] for name in SETS)
    lines = ["| file | English | Japanese | Chinese |", "|---|---|---|---|"]
    for file in files:
        names = [f"{language}-{file}" for language in CLASSES]
        cells = ["{} of {}".format(*right_of(name)) if name in SETS else "" for name in names]
        lines.append(f"| `{file}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def table(name):
    """The confusion table of spoken sentences, with the differences that get another class below it."""
    language = name.partition("-")[0]
    heard = spoken(language)
    counts = Counter((row["class"], row["found"]) for row in heard)
    rows = [kind for kind in CLASSES[language] if any(written == kind for written, _ in counts)]
    columns = [
        "equal",
        *(kind for kind in CLASSES[language] if any(found == kind for _, found in counts) or kind in rows),
    ]
    right = sum(count for (written, found), count in counts.items() if is_right(written, found))
    lines = [
        f"## {name}",
        "",
        f"| {right} of {counts.total()} right | " + " | ".join(columns) + " |",
        "|---" * (len(columns) + 1) + "|",
        *(f"| {row} | " + " | ".join(str(counts[row, column]) for column in columns) + " |" for row in rows),
    ]
    wrong = [row for row in heard if row["class"] != row["found"]]
    if wrong:
        names = ("reference", "hypothesis", "found", "class", "reason")
        lines += ["", "| said | recognized | found | should be | because |", "|---" * len(names) + "|"]
        lines += dict.fromkeys("| " + " | ".join(row[name] for name in names) + " |" for row in wrong)
    return "\n".join(lines) + "\n"


def page():
    """What is right of spoken sentences and of the files of pairs: right.md."""
    return "\n".join(["# Classes that are right\n", *map(table, HEARD), "## Files of pairs\n", sets_table()])


if __name__ == "__main__":
    RIGHT.write_text(page(), encoding="utf-8")
