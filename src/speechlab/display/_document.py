"""Documents: self-contained HTML files, which can be mailed, archived and opened without a network."""

from __future__ import annotations

from speechlab.display._html import Html, element

# Nothing is loaded and no script runs, whatever the text contains.
_POLICY = (
    "default-src 'none'; img-src data:; media-src data:; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)


def document(title: str, *body: object, lang: str = "en", footer: object = None) -> Html:
    """Return a self-contained page in light and dark, without scripts and without a network.

    Args:
        title: Title of the page, also its first heading.
        *body: Parts of this room; plain text becomes a paragraph.
        lang: BCP 47 tag of the page's own language.
        footer: Origin of the document: versions, date, run.

    Returns:
        The whole file, to be written as UTF-8.

    Example:
        >>> document("Report", "A paragraph.")[:15]
        '<!DOCTYPE html>'
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", read_page_style()),
    )
    blocks = [block if isinstance(block, Html) else element("p", block, dir="auto") for block in body]
    main = element(
        "main", element("h1", title, dir="auto"), *blocks, element("footer", footer) if footer else None
    )
    return Html("<!DOCTYPE html>\n") + element("html", head, element("body", main), lang=lang) + Html("\n")


def read_page_style() -> Html:
    """Return the style sheet of documents, for pages that other rooms assemble."""
    from importlib.resources import files

    text = files("speechlab.display").joinpath("_document.css").read_text(encoding="utf-8")
    # Our own file, and inside <style> nothing is unescaped: as text its quotes would arrive as entities.
    return Html(f"\n{text}")
