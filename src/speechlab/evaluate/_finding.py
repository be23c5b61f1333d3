"""What a study found: an answer to decide by, and findings as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Conclusion(NamedTuple):
    """The answer of a study.

    Attributes:
        text: What to do, or what was learnt: one sentence.
        certainty: How sure that is, and the runner-up: one sentence; empty if there is nothing to add.

    Example:
        >>> str(Conclusion("Take heart.", "It is first on ten sentences, too narrowly to be sure."))
        'Take heart. It is first on ten sentences, too narrowly to be sure.'
    """

    text: str
    certainty: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.certainty}".strip()


@dataclass(frozen=True)
class Finding:
    """A finding of a study.

    Attributes:
        text: The finding in sentences to quote.
        language: Code of the language that it is about; empty if it is about all.
        condition: The condition of the recordings; empty if it is about all.
        systems: The voices, services or settings that it compares.
        numbers: The numbers in its text, by name.

    Example:
        >>> str(Finding("Three of 20 listeners did not finish."))
        'Three of 20 listeners did not finish.'
    """

    text: str
    language: str = ""
    condition: str = ""
    systems: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text


def findings_of(values: Iterable[Any]) -> tuple[Finding, ...]:
    """Return findings from findings, texts (of reports of 0.1) or their plain form in a saved report."""
    return tuple(
        value
        if isinstance(value, Finding)
        else Finding(**{**value, "systems": tuple(value.get("systems", ()))})
        if isinstance(value, Mapping)
        else Finding(str(value))
        for value in values
    )
