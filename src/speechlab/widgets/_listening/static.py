"""What stands of a listening test in the saved notebook: what is asked, and how many have answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.display import element

if TYPE_CHECKING:
    from collections.abc import Sequence

    from speechlab.display import Html


def static_test(title: str, question: str, facts: Sequence[str]) -> Html:
    """Return it; systems and sounds are not in it, so that a notebook that was passed on unblinds nobody."""
    return element(
        "div",
        element("strong", title, dir="auto"),
        element("p", question, dir="auto", style="margin:4px 0"),
        element("p", " · ".join(facts), style="margin:4px 0;opacity:.74"),
        style="font-size:13px;line-height:1.45;max-width:620px",
    )
