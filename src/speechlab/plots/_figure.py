"""Shared parts of the figures: a figure class without pyplot, and fonts for any script."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
from matplotlib import font_manager, rc_context, rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager, get_font
from matplotlib.ticker import MaxNLocator

from speechlab._arguments import build_argument_error, is_number, require_columns
from speechlab._require import require
from speechlab._traces import warn_user
from speechlab.errors import InvalidRequestError, MissingDependencyError
from speechlab.text import language_code

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.text import Text
    from numpy.typing import NDArray

# Tones of what is no series, on light and on dark axes; they have the same order of contrast in gray.
_TONES = {
    "paper": ("#ffffff", "#14171d"),
    "ink": ("#1a1a1a", "#e8e8e8"),
    "line": ("#4d4d4d", "#b8b8b8"),
    "quiet": ("#8a8a8a", "#8f8f8f"),
    "shade": ("#ececec", "#33373f"),
    "bar": ("#c9d8e8", "#35506b"),
}
SMALL_PT = 8.0
# Label of the notes at the right of rows, which a phone has no room for.
_NOTE = "note"
# Maximum width of a line of a name, in letters; wide letters of Chinese and Japanese count twice.
_NAME_COLUMNS = 36


class Style(NamedTuple):
    """The style of a series; series differ even without color."""

    color: str  # A color of Okabe and Ito's palette, which is safe for color blindness
    marker: str  # shape of the points
    dash: str  # style of the line


_BLACK = "#000000"
# Source: M. Okabe, K. Ito, Color Universal Design (2008).
STYLES = (
    Style("#0072B2", "o", "-"),
    Style("#D55E00", "s", "--"),
    Style("#009E73", "^", "-."),
    Style(_BLACK, "D", ":"),
    Style("#CC79A7", "v", "-"),
    Style("#E69F00", "P", "--"),
    Style("#56B4E9", "X", "-."),
)
# Markers for series whose color is used twice; thirteen series have different ones.
_MARKERS = (*(style.marker for style in STYLES), "*", "<", ">", "p", "h", "d")


def choose_style(number: int) -> Style:
    """Return the style of a series. Series beyond the number of colors repeat a color with another marker."""
    style = STYLES[number % len(STYLES)]._replace(marker=_MARKERS[number % len(_MARKERS)])
    return style._replace(color=choose_tone("ink")) if style.color == _BLACK and _is_dark() else style


def choose_tone(name: str) -> str:
    """Return a color of what is no series, such as ``ink``, that is seen on the axes of matplotlib's style."""
    return _TONES[name][_is_dark()]


def _is_dark() -> bool:
    """Return whether the axes of matplotlib's style are dark."""
    red, green, blue, alpha = to_rgba(rcParams["axes.facecolor"])
    return bool(alpha) and 0.299 * red + 0.587 * green + 0.114 * blue < 0.5


UNITS = {
    "word": "word error rate",
    "char": "character error rate",
    "reading": "reading error rate",
    "pinyin": "pinyin error rate",
    "toneless": "toneless error rate",
    "mixed": "mixed error rate",
}
# The font that comes with matplotlib.
_LATIN = ("DejaVu Sans",)
_WIDE = {
    "ja": ("Noto Sans CJK JP", "Noto Sans JP", "IPAexGothic", "Hiragino Sans", "Yu Gothic", "MS Gothic"),
    "zh": (
        "Noto Sans CJK SC",
        "Noto Sans SC",
        "Source Han Sans SC",
        "PingFang SC",
        "Microsoft YaHei",
        "SimHei",
    ),
}
_PROOF_DPI = 144
_PHONE_INCHES = 3.9
_PHONE_COLUMNS = 20


class PaperFigure(Figure):
    """A figure without a window, which is not in pyplot's list of open figures."""

    def _repr_png_(self) -> bytes:
        out = BytesIO()
        self.savefig(out, format="png", dpi=_PROOF_DPI)
        return out.getvalue()

    def to_svg(self) -> bytes:
        """Return the figure as SVG, with letters as outlines; the same figure gives the same bytes."""
        out = BytesIO()
        with rc_context({"svg.hashsalt": "speechlab", "svg.fonttype": "path"}):
            self.savefig(out, format="svg", metadata={"Date": None})
        return out.getvalue()

    def to_phone_svg(self) -> bytes:
        """Return the figure as SVG as wide as a phone, with letters as large, shorter names and no notes.

        The figure itself stays so, so make other files of it first.
        """
        for axes in self.axes:
            axes.set_xlabel(wrap_name(axes.get_xlabel(), lines=3, columns=_NAME_COLUMNS))
            for note in axes.texts:
                note.set_visible(note.get_label() != _NOTE)
            if isinstance(axes.xaxis.get_major_locator(), MaxNLocator):
                axes.locator_params(axis="x", nbins=5)
            labels, places = axes.get_yticklabels(), axes.get_yticks()
            names = [label.get_text() for label in labels]
            if any(measure_text_width(name) > _PHONE_COLUMNS for name in names) and len(places) == len(names):
                short = [wrap_name(name, columns=_PHONE_COLUMNS) for name in names]
                axes.set_yticks(places, short, fontfamily=labels[0].get_fontfamily(), fontsize=SMALL_PT)
        for legend in self.legends:
            legend.set_ncols(
                compute_legend_size(_PHONE_INCHES, [text.get_text() for text in legend.get_texts()])[0]
            )
        more = sum(0.2 * (len(one.get_texts()) - 1) for one in self.legends)
        self.set_size_inches(_PHONE_INCHES, self.get_figheight() + more)
        return self.to_svg()


def build_panels(
    width: float, heights: Sequence[float], ax: Axes | None = None, *, more: float = 0.0, sharex: bool = False
) -> tuple[PaperFigure, list[Axes]]:
    """Return a figure with panels below each other, or the axes that are given, which hold one panel.

    Args:
        width: Width in inches.
        heights: Heights of the panels in inches.
        ax: Axes of the user to draw in.
        more: Further height of the figure.
        sharex: Whether panels have one horizontal scale.

    Raises:
        InvalidRequestError: Axes are given, and there are several panels.
    """
    if ax is None:
        figure = build_figure(width, sum(heights) + more)
        panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights, sharex=sharex)[:, 0]
        return figure, list(panels)
    if len(heights) > 1:
        message = (
            f"the figure has {len(heights)} panels, and ax is one; leave ax out, or draw a part of the table"
        )
        raise InvalidRequestError(message, parameter="ax")
    return cast("PaperFigure", ax.get_figure(root=True)), [ax]


def build_figure(width: float, height: float) -> PaperFigure:
    """Make an empty figure."""
    figure = PaperFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def choose_fonts(texts: str, language: str | None = None) -> list[str]:
    """Return font families for some texts; each letter is drawn in the first family that has it.

    Many letters of Chinese and Japanese share a code point but differ in shape, so the language determines the font.
    Installed fonts come first. If they lack a letter, the font of the extra `fonts` is added, and fonts that were
    installed since matplotlib wrote its list; only then is there a warning.
    """
    code = language_code(language) if language else "ja" if any("぀" <= one <= "ヿ" for one in texts) else "zh"
    order = [code, *_WIDE] if code in _WIDE else list(_WIDE)
    names = list(dict.fromkeys(name for each in order for name in _WIDE[each]))
    width, kind = unicodedata.east_asian_width, unicodedata.category
    # Emoji are wide as well, and symbols.
    letters = {letter for letter in texts if width(letter) in "WFH" and kind(letter) != "So"}
    families = _select_listed_fonts(names)
    if letters and _find_missing_letters(letters, families):
        advice = _refresh_fonts_and_advise()
        families = _select_listed_fonts(names)
        missing = "".join(sorted(_find_missing_letters(letters, families)))
        if missing and advice:
            warn_user(f"no font for {missing[:12]!r} was found, so boxes are drawn; {advice}", stacklevel=4)
    return [*_LATIN, *families]


def _select_listed_fonts(wanted: Sequence[str]) -> list[str]:
    """Return the families whose files are in matplotlib's list, and still on the disk."""
    files = {font.name: font.fname for font in fontManager.ttflist}
    return [name for name in wanted if name in files and Path(files[name]).exists()]


def _find_missing_letters(letters: set[str], families: Sequence[str]) -> set[str]:
    """Return the letters that neither these families nor the Latin one has."""
    for name in (*_LATIN, *families):
        font = get_font(fontManager.findfont(FontProperties(family=[name])))
        letters = {letter for letter in letters if not font.get_char_index(ord(letter))}
    return letters


def _refresh_fonts_and_advise() -> str:
    """Mend matplotlib's list, which is kept from its first run; return how to install a font if ours is missing."""
    fontManager.ttflist[:] = [font for font in fontManager.ttflist if Path(font.fname).exists()]
    paths, advice = set(font_manager.findSystemFonts()), ""
    try:
        paths.add(str(require("noto_cjk_sans_otc").FONT_PATH))
    except MissingDependencyError as error:
        advice = str(error)
    for path in sorted(paths - {font.fname for font in fontManager.ttflist}):
        with suppress(OSError, RuntimeError):  # a file that is no font
            fontManager.addfont(path)
    return advice


def check_width(width: object) -> float:
    """Check the width of a figure in inches, and return it."""
    if not is_number(width) or not 2 <= width <= 50:
        raise build_argument_error("width", width, "a number of inches from 2 to 50")
    return float(width)


def check_table(table: object, *columns: object, argument: str, hint: str) -> pd.DataFrame:
    """Check that a value is a table with these columns and at least one row, and return it."""
    frame = require_columns(table, *columns, argument=argument, hint=hint)
    if not len(frame):
        raise InvalidRequestError(
            f"{argument} has no rows, so there is nothing to draw. {hint}", parameter=argument
        )
    return frame


def to_numbers(table: pd.DataFrame, column: Any) -> NDArray[np.float64]:
    """Return a column of numbers, with NaN for missing ones."""
    try:
        values: NDArray[np.float64] = table[column].to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        kind = table[column].dtype
        message = f"the column {column!r} holds {kind}, and must hold numbers; choose another column"
        raise InvalidRequestError(message, parameter=str(column)) from None
    return values


def build_row_names(table: pd.DataFrame, columns: Sequence[Any]) -> list[str]:
    """Return a name for each row, from its cells in some columns."""
    cells = table[list(columns)].astype(object)
    rows = cells.where(cells.notna(), "–").itertuples(index=False)
    return [", ".join(str(cell) for cell in row if str(cell)) or "–" for row in rows]


def compute_legend_size(width: float, labels: Sequence[str]) -> tuple[int, float]:
    """Return the number of columns and the height of a legend."""
    columns = max(1, min(len(labels), int(width / (0.5 + 0.075 * max(map(measure_text_width, labels))))))
    return columns, 0.1 + 0.2 * -(-len(labels) // columns)


def draw_legend(
    figure: Figure,
    axes: Axes,
    labels: Sequence[str],
    families: list[str],
    styles: Sequence[Style] | None = None,
) -> None:
    """Draw a legend above the panels: the name of each series next to its mark."""
    marks = [
        axes.plot([], [], style.marker, color=style.color, markersize=5)[0]
        for style in styles or map(choose_style, range(len(labels)))
    ]
    columns, _ = compute_legend_size(figure.get_figwidth(), labels)
    # The names are set below, because matplotlib ignores labels that begin with an underscore.
    ours = isinstance(figure, PaperFigure)  # and no figure of the user, with a layout of its own
    where: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    where = {"loc": "outside upper center"} if ours else where
    legend = (figure if ours else axes).legend(
        marks, list(map(str, range(len(labels)))), ncols=columns, frameon=False,
        prop={"family": families, "size": SMALL_PT}, **where,
    )  # fmt: skip
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(label)
        text.set_parse_math(False)


def draw_scale(axes: Axes, label: str, axis: Literal["x", "y"] = "x") -> None:
    """Label a scale of numbers, and draw its grid lines; for a horizontal scale no line is drawn."""
    (axes.set_xlabel if axis == "x" else axes.set_ylabel)(label, fontsize=SMALL_PT)
    axes.tick_params(labelsize=SMALL_PT)
    axes.grid(axis=axis, color=choose_tone("shade"), linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", *(["left"] if axis == "x" else [])]].set_visible(False)


def disable_math_text(labels: Iterable[Text]) -> None:
    """Have no text taken for a formula."""
    for label in labels:
        label.set_parse_math(False)


def widen_scale(axes: Axes, least: float, lowest: float = -np.inf) -> None:
    """Widen a scale to a minimum span, so that small differences do not look large."""
    low, high = axes.get_xlim()
    if high - low < least:
        begin = max((low + high - least) / 2, lowest)
        axes.set_xlim(begin, begin + least)


def shorten_text(text: str, columns: int) -> str:
    """Return a text on one line, shortened with an ellipsis if necessary."""
    line = " ".join(text.split())
    return (
        line
        if measure_text_width(line) <= columns
        else line[: _count_fitting_letters(line, columns - 1)].rstrip() + "…"
    )


def wrap_name(name: str, lines: int = 2, columns: int = _NAME_COLUMNS) -> str:
    """Break a name into short lines, at spaces if there are any, so that the panel has enough width."""
    remainder = " ".join(name.split())
    folded_lines: list[str] = []
    while remainder:
        if len(folded_lines) == lines - 1:
            folded_lines.append(shorten_text(remainder, columns))
            break
        end = _count_fitting_letters(remainder, columns)
        space = remainder.rfind(" ", 1, end + 1) if end < len(remainder) else -1
        end = space if space > end // 2 else end
        folded_lines.append(remainder[:end].rstrip())
        remainder = remainder[end:].lstrip()
    return "\n".join(folded_lines)


def measure_text_width(text: str) -> int:
    """Return the width of a text in letters; wide letters count twice."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _count_fitting_letters(text: str, columns: int) -> int:
    """Return the number of letters that fit into a line."""
    used = 0
    for place, letter in enumerate(text):
        used += measure_text_width(letter)
        if used > columns:
            return place
    return len(text)


def draw_row_names_and_notes(
    axes: Axes, names: Sequence[str], notes: Sequence[str], families: list[str]
) -> None:
    """Write the names of rows at the left, the first one on top, and notes at the right."""
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), [wrap_name(name) for name in names], fontfamily=families)
    axes.tick_params(axis="y", length=0, pad=8)
    disable_math_text(axes.get_yticklabels())
    for label in axes.get_yticklabels():
        if "\n" in label.get_text():
            label.set_fontsize(SMALL_PT)
    for place, note in enumerate(notes):
        axes.annotate(
            note, (1.01, place), xycoords=("axes fraction", "data"), va="center", fontsize=SMALL_PT,
            color=choose_tone("ink"), annotation_clip=False, parse_math=False, label=_NOTE,
        )  # fmt: skip
