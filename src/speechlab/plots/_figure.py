"""What all figures share: a figure without pyplot that shows itself in a notebook, and fonts for any script."""

from __future__ import annotations

import warnings
from functools import cache
from io import BytesIO

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

from speechlab.text import language_code

INK, LINE, SHADE, BAR = "#1a1a1a", "#4d4d4d", "#ececec", "#c9d8e8"
"""Colours that keep their order of lightness in grey."""
SMALL_PT = 8.0
_LATIN = ("DejaVu Sans",)
"""It comes with matplotlib."""
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


class PaperFigure(Figure):
    """A figure that belongs to nobody but its user: no window, no list of open figures."""

    def _repr_png_(self) -> bytes:
        out = BytesIO()
        self.savefig(out, format="png", dpi=_PROOF_DPI)
        return out.getvalue()


def new_figure(width: float, height: float) -> PaperFigure:
    """Make an empty figure.

    Args:
        width: Inches.
        height: Inches.
    """
    figure = PaperFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def fonts(texts: str, language: str | None = None) -> list[str]:
    """Return families of fonts that have the letters of some texts, the first that has a letter draws it.

    Chinese and Japanese write many letters with one code and two shapes, so that the language chooses.

    Args:
        texts: All that is drawn.
        language: ISO 639-1 code; None takes Japanese shapes where there are kana, else Chinese ones.
    """
    code = language_code(language) if language else "ja" if any("぀" <= one <= "ヿ" for one in texts) else "zh"
    order = [code, *_WIDE] if code in _WIDE else list(_WIDE)
    found = [name for each in order for name in _WIDE[each] if name in _installed()]
    if not found and any("⺀" <= one <= "鿿" for one in texts):
        names = " or ".join(families[0] for families in _WIDE.values())
        message = f"no font for Japanese or Chinese is installed, so that boxes are drawn; install {names}"
        warnings.warn(message, stacklevel=4)
    return [*_LATIN, *dict.fromkeys(found)]


@cache
def _installed() -> frozenset[str]:
    return frozenset(font.name for font in fontManager.ttflist)
