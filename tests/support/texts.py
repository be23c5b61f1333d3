"""Texts that people read, kept in a Markdown file that one reviews; `poe texts` writes it anew."""

import os
import re
from pathlib import Path


def describe_report(report):
    """Return what a report says first: its title, how certain that is, its notes and its findings."""
    notes = [f"- Note: {note}" for note in report.notes]
    findings = [f"- {finding}" for finding in report.findings]
    text = "\n".join([report.conclusion.text, report.conclusion.certainty, *notes, *findings])
    return re.sub(r"\b20\d\d-\d\d-\d\d\b", "(date)", text).strip()


def check_texts(path: Path, part: str, texts: dict[str, str]):
    """Check that the texts of one part of a file are these, or write them there if WRITE_TEXTS is set."""
    pieces = re.split(r"^## (.+)\n", path.read_text("utf-8") if path.exists() else "", flags=re.MULTILINE)
    kept = {name: text.strip() for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}
    found = {f"{part}: {name}": text.strip() for name, text in texts.items()}
    if "WRITE_TEXTS" in os.environ:
        kept = {name: text for name, text in kept.items() if not name.startswith(f"{part}: ")} | found
        sections = (f"\n## {name}\n\n{text}\n" for name, text in sorted(kept.items()))
        path.write_text(
            "# Texts that people read; `poe texts` writes them anew\n" + "".join(sections), "utf-8"
        )
    assert found == {name: text for name, text in kept.items() if name.startswith(f"{part}: ")}


def list_calls(path: Path, part: str) -> list[str]:
    """Return the calls that are the titles of one part of a file."""
    return re.findall(rf"^## {re.escape(part)}: (.+)$", path.read_text("utf-8"), flags=re.MULTILINE)


def check_refusals(path: Path, part: str, /, folder: Path | None = None, **names):
    """Check the error of each call of one part of a file, evaluated with these names; one folder is not shown."""
    found = {}
    for call in list_calls(path, part):
        try:
            text = f"(no error) {eval(call, dict(names))!r}"
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        found[call] = text.replace(str(folder or "(none)"), "(folder)")
    assert found, f"{path} has no calls of {part}"
    check_texts(path, part, found)
