"""Tables for papers: Markdown and LaTeX, with all outside text escaped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from speechlab._arguments import is_missing, is_number, is_whole_number

if TYPE_CHECKING:
    import pandas as pd

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        "\N{REPLACEMENT CHARACTER}": "?",  # LuaTeX takes it for invalid UTF-8
    }
)
_LIGATURE = re.compile(r"(?<=([-',]))(?=\1)")
"""Separator between characters that LaTeX would draw as one, such as dashes and quotation marks."""
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")
_SPACE = re.compile(r"\s+")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and characters that change the writing direction."""
_FIGURE = re.compile(r"–|[-+]?[\d.,]+(e[-+]?\d+)?\s?%?( to [-+]?[\d.,]+\s?%?)?")


def markdown_table(table: pd.DataFrame) -> str:
    """Write a table as Markdown; characters that Markdown or HTML would interpret have a backslash."""
    heads = [markdown_text(name) for name in table.columns]
    right = [_is_figures(table.iloc[:, number]) for number in range(len(heads))]
    lines = [heads, ["---:" if one else "---" for one in right]]
    lines += [[markdown_text(value) for value in row] for row in table.itertuples(index=False, name=None)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def latex_table(table: pd.DataFrame, caption: str, label: str) -> str:
    """Write a table as LaTeX, with the rules of the package booktabs."""
    right = [_is_figures(table.iloc[:, number]) for number in range(len(table.columns))]
    rows = [" & ".join(map(latex_text, row)) + r" \\" for row in table.itertuples(index=False, name=None)]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(caption)}}}",
            rf"\label{{{label}}}",
            rf"\begin{{tabular}}{{{''.join('r' if one else 'l' for one in right)}}}",
            r"\toprule",
            " & ".join(map(latex_text, table.columns)) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def latex_text(value: object) -> str:
    """Escape a text or a cell for LaTeX, on one line."""
    text = _LIGATURE.sub(r"\\hbox{}", _written(value).translate(_LATEX))
    # After the end of a row, or after \item, these characters begin an argument.
    return f"{{}}{text}" if text.startswith(("[", "*")) else text


def markdown_text(value: object) -> str:
    """Escape a text or a cell for Markdown, on one line."""
    return _MARKDOWN.sub(r"\\\1", _written(value))


def _written(value: object) -> str:
    if is_missing(value):
        return "–"
    if isinstance(value, bool) or not is_number(value):
        return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", _SPACE.sub(" ", str(value)).strip())
    if is_whole_number(value):
        return str(value)
    small = 0 < abs(float(value)) < 0.0995  # two decimals would be too coarse
    return f"{float(value):.2g}" if small else f"{float(value) + 0.0:.2f}"


def _is_figures(column: pd.Series[str]) -> bool:
    known = [value for value in column if not is_missing(value)]
    return bool(known) and all(_FIGURE.fullmatch(_written(value)) for value in known)
