"""The pages of the reference on the contract: checks of its statements, and readings of what it leaves open."""

from __future__ import annotations

import csv
from itertools import groupby
from typing import TYPE_CHECKING

from speechlab.conform import OUT_OF_REACH, list_checks, read_statements

if TYPE_CHECKING:
    from pathlib import Path


def readings_page(path: Path) -> str:
    """Return the page in Markdown, a table for each area."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    lines = ["# Readings of the contract", "", "What the contract leaves open, and how both sides read it."]
    for area, of_area in groupby(rows, lambda row: row["area"]):
        lines += [
            "",
            f"## {area}",
            "",
            "| # | § | open | the service | the client |",
            "|---|---|---|---|---|",
        ]
        for row in of_area:
            cells = (row[name] for name in ("statement", "section", "open", "service", "client"))
            lines.append(f"| {' | '.join(cells)} |".replace("](", "](../docs/"))
    return "\n".join(lines) + "\n"


def checks_page() -> str:
    """The page in Markdown; what a check tries stands at its first statement."""
    lines = [
        "# What conform tries",
        "",
        "Statements that are a service's duty, and the checks that try them. (a) is advisory.",
        "",
        "| # | § | checks | what is tried, or why it is not |",
        "|---|---|---|---|",
    ]
    first_row: dict[str, int] = {}
    for number, statement in read_statements().items():
        tried_by = [check for check in list_checks() if number in check.statements]
        names = ", ".join(f"`{check.id}`" + ("" if check.binding else " (a)") for check in tried_by)
        earlier = {first_row[check.id]: None for check in tried_by if check.id in first_row}
        subjects = [
            check.title + (f" ({check.needs})" if check.needs else "")
            for check in tried_by
            if check.id not in first_row
        ]
        subjects += [f"as in {' and '.join(map(str, earlier))}"] if earlier else []
        first_row |= {check.id: number for check in tried_by if check.id not in first_row}
        subject = "; ".join(subjects) or OUT_OF_REACH[number]
        lines.append(f"| {number} | {statement.section} | {names or '–'} | {subject} |")
    return "\n".join(lines) + "\n"
