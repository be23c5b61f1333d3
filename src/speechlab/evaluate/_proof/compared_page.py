"""A page compared with the page that follows from its rows: its words, its data, its figures, and all around them."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._files import check_is_regular_file
from speechlab.display import escape
from speechlab.errors import StoreError
from speechlab.evaluate._report import Report, draw_page_figures
from speechlab.evaluate._writing.page import (
    hash_figure,
    render_page_parts,
    render_page_shell,
    replace_direction_marks,
)

if TYPE_CHECKING:
    from speechlab.evaluate._proof.compared import NumberCheck

_OMITTED_SOUND = re.compile(
    r"<p><strong>The sound of [\d,]+ of [\d,]+ rows is not in this page: it would be larger than [\d,]+ MB\."
    r"</strong></p>"
)
_DATA = re.compile(r'(<script type="application/json" id="(?:report|data|sounds)">)[^<]*(?=</script>)')
_SVG = r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]*)"
_IMAGE = re.compile(_SVG)
_FIGURE = re.compile(rf'srcset="{_SVG}"><img src="{_SVG}"[^>]*></picture>\s*<figcaption>([^<]*)</figcaption>')
_SPACES = re.compile(r"[ \t\r\n]+")
_EXCERPT = 60

_TOOL = re.compile(rb'Matplotlib v[\w.+]+|<path id="[A-Za-z][\w -]*-[0-9a-f]+"')
# Names that matplotlib makes of the coordinates, whose last digits differ between processors.
_HASH = re.compile(rb"\b[mp][0-9a-f]{10}\b")
_COORDINATE = re.compile(rb"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_MAX_SHIFT = 0.01  # points


def read_page(page: Path) -> str:
    """Return the text of a page; raises StoreError if it is none."""
    try:
        check_is_regular_file(page)
        return page.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = (
            f"{page} cannot be read ({type(error).__name__}); give a folder or a page that report.save wrote"
        )
        raise StoreError(message) from error


def compare_page(compared: NumberCheck, text: str, held: Mapping[str, Any], anew: Report) -> list[str]:
    """Compare a page with the one made anew; return what could not be compared, in sentences."""
    data: Mapping[str, Any] = held.get("report", {})
    drawn = draw_page_figures(anew)
    sound = bool(data.get("sound"))
    view = anew.build_shown_table()
    above, before = anew.below(view), len(compared.unequal)
    main = _OMITTED_SOUND.sub("", text.partition("<main>")[2].partition("</main>")[0], count=1)
    compared.compare_markup("page", main, "".join(render_page_parts(anew, above, drawn, sound=sound)))
    if len(compared.unequal) == before:
        shell = render_page_shell(anew, above, drawn, view, sound=sound)
        _compare_page_shells(compared, _remove_page_data(text), _remove_page_data(shell))
    reported: Mapping[str, Any] = held.get("data", {})
    recomputed = orjson.loads(orjson.dumps(view.collect_page_data(replace_direction_marks(anew.title))))
    for part in ("rows", "differences", "state"):
        compared.compare_values(
            f"page, {part}", _key_columns_by_name(reported.get(part)), _key_columns_by_name(recomputed[part])
        )
    return _compare_figures(compared, text, data.get("figures", {}), drawn)


def _key_columns_by_name(part: Any) -> Any:
    """Return the state of a page with its columns by name: those of a folder come in another order."""
    columns = part.get("columns") if isinstance(part, dict) else None
    if not isinstance(columns, list) or not all(isinstance(column, dict) for column in columns):
        return part
    # Whether a column of few texts is a category or a label depends on the type that pandas gave it.
    kinds = {"category": "text", "label": "text"}
    by_name = {
        str(column.get("name")): {**column, "kind": kinds.get(str(column.get("kind")), column.get("kind"))}
        for column in columns
    }
    return {**part, "columns": by_name, "columns shown": len(columns)}


def _remove_page_data(page: str) -> str:
    """Return a page without its data and images, whose contents are compared on their own."""
    bare = _OMITTED_SOUND.sub("", _IMAGE.sub("", _DATA.sub(r"\1", page)), count=1)
    return _SPACES.sub(" ", bare).strip(" ")


def _compare_page_shells(compared: NumberCheck, reported: str, recomputed: str) -> None:
    """Compare everything of a page but its data: head, styles, scripts, attributes, and words outside of the text."""
    if reported == recomputed:
        return
    pairs = zip(reported, recomputed, strict=False)
    at = next(
        (at for at, (one, other) in enumerate(pairs) if one != other), min(len(reported), len(recomputed))
    )
    place = f"page, markup after “{recomputed[max(at - 20, 0) : at]}”"
    compared.compare_digests(
        place, reported[at : at + _EXCERPT] or "nothing", recomputed[at : at + _EXCERPT] or "nothing"
    )


def _compare_figures(
    compared: NumberCheck,
    text: str,
    digests: Mapping[str, str],
    drawn: Mapping[str, tuple[bytes, bytes]],
) -> list[str]:
    """Compare the figures of a page with those drawn anew; return which other tools drew."""
    notes = []
    shown = {
        name: (_decode_base64(wide), _decode_base64(phone)) for phone, wide, name in _FIGURE.findall(text)
    }
    for name, forms in drawn.items():
        reported = shown.get(escape(name), (b"", b""))
        if hash_figure(*reported) != digests.get(name):
            compared.compare_digests(f"page, figure {name}", "another drawing", "the drawing of the report")
        elif all(map(_is_equal_drawing, reported, forms)):
            continue
        elif all(map(_has_other_matplotlib_or_fonts, reported, forms)):
            notes.append(f"The figure {name} was drawn by another matplotlib or with other fonts than here.")
        else:
            compared.compare_digests(
                f"page, figure {name}", "another drawing", "the drawing that its rows make"
            )
    return notes


def _decode_base64(data: str) -> bytes:
    try:
        return base64.b64decode(data)
    except binascii.Error:
        return b""


def _is_equal_drawing(reported: bytes, recomputed: bytes) -> bool:
    """Return whether two drawings differ in nothing but the last digits of coordinates."""
    if reported == recomputed:
        return True
    one, other = (_HASH.sub(b"", drawing) for drawing in (reported, recomputed))
    numbers, expected = _COORDINATE.findall(one), _COORDINATE.findall(other)
    return (
        len(numbers) == len(expected)
        and _COORDINATE.sub(b"", one) == _COORDINATE.sub(b"", other)
        and all(
            math.isclose(float(number), float(wanted), rel_tol=0, abs_tol=_MAX_SHIFT)
            for number, wanted in zip(numbers, expected, strict=True)
        )
    )


def _has_other_matplotlib_or_fonts(reported: bytes, recomputed: bytes) -> bool:
    """Return whether a drawing is of another matplotlib, or has letters of other fonts."""
    ours, theirs = (
        {tool.rpartition(b"-")[0] or tool for tool in _TOOL.findall(one)} for one in (recomputed, reported)
    )
    return bool(theirs) and ours != theirs
