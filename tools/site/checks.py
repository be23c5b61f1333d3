"""The page of the reference that lists the statements of the contract with the checks that try them."""

from __future__ import annotations

from speechlab.conform import OUT_OF_REACH, list_checks, read_statements


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
