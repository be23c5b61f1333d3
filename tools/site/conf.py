"""Settings of the documentation site; ``poe docs`` builds it."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes  # type: ignore[import-untyped]
from pydantic import BaseModel
from reference import MEMBERS, Name, lent_names, resolve_annotations
from sphinx.domains.python import PythonDomain
from sphinx.util import logging
from sphinx.util.inspect import stringify_signature

from speechlab import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

project = "speechlab"
author = "The speechlab authors"
release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
# References of docstrings are checked; types in signatures are often of other packages, or private.
nitpicky = True
nitpick_ignore = [("py:class", name) for name in lent_names()]
nitpick_ignore_regex = [
    (r"py:(class|exc|obj)", r"(?!speechlab\.[a-z]+\.[A-Z]\w+$).*"),
    (r"py:class", r"speechlab\.(contract|service)\.Annotated"),
]
suppress_warnings = ["config.cache"]

# Markdown as GitHub reads it, so that the pages can be read in the checkout, too.
myst_heading_anchors = 4
myst_links_external_new_tab = False
nb_execution_mode = "off"  # the tests execute the notebooks; what is shown is what was committed
nb_ipywidgets_js: dict[
    str, dict[str, str]
] = {}  # live widgets need a kernel, and their script a foreign host

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"exclude-members": "model_config, model_post_init"}
python_display_short_literal_types = True
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"speechlab {release}"
html_static_path = ["site.css", "mark.svg", "copy.js"]
html_css_files = ["site.css"]
html_js_files = ["copy.js"]
html_logo = html_favicon = "mark.svg"
html_search_scorer = str(Path(__file__).parent / "search.js")
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
_FONTS = {
    "font-stack": (
        "'Source Sans 3', 'Segoe UI', 'Helvetica Neue', 'Noto Sans', 'Hiragino Sans', 'Noto Sans CJK JP', sans-serif"
    ),
    "font-stack--headings": (
        "'Source Serif 4', 'Iowan Old Style', 'Palatino Linotype', 'Noto Serif', 'Noto Serif CJK JP', serif"
    ),
    "font-stack--monospace": "'JetBrains Mono', 'SF Mono', 'Cascadia Code', 'Noto Sans Mono', monospace",
}
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {
        **_FONTS,
        "color-brand-primary": "#1f5fa8",
        "color-brand-content": "#1f5fa8",
        "color-sidebar-background": "#f6f7f9",
        "color-code-background": "#f6f7f9",
        "color-api-name": "#1f5fa8",
        "color-api-pre-name": "#1f5fa8",
    },
    # The colors of the pages of reports, which are shown in frames.
    "dark_css_variables": {
        "color-background-primary": "#14171d",
        "color-background-secondary": "#1b1f27",
        "color-brand-primary": "#7fb2ee",
        "color-brand-content": "#7fb2ee",
        "color-sidebar-background": "#1b1f27",
        "color-code-background": "#1b1f27",
        "color-api-name": "#7fb2ee",
        "color-api-pre-name": "#7fb2ee",
    },
}

_FOREIGN = re.compile(
    r"<(?:script|link|img|iframe|audio|video|source)\b[^>]*?\b(?:src|href)=[\"'](?:https?:)?//[^\"']+"
)
_EXCERPT = 10_000
"""Maximum number of characters of a section that the search can quote."""
_LIGHT_PICTURE = re.compile(r"^!\[(?P<alt>[^]]*)\]\((?P<path>images/[\w-]+-light\.png)\)$", re.MULTILINE)
_DEFAULTS_MADE = re.compile(r"<[\w. -]+>")
"""Functions as defaults, and fields that a factory fills."""
_log = logging.getLogger(__name__)


def setup(app: Sphinx) -> None:
    """Have each build checked at its end."""
    resolve_annotations()
    for field in PythonDomain.directives["class"].doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.connect("source-read", _both_themes)
    app.connect("autodoc-process-signature", _readable_signature)
    app.connect("autodoc-process-docstring", _plain_returns, priority=400)  # napoleon's is 500
    app.connect("html-page-context", _search_excerpts)
    app.connect("build-finished", _write_excerpts)
    app.connect("build-finished", _check)


def _both_themes(app: Sphinx, page: str, source: list[str]) -> None:
    """Show the dark picture in the dark theme, where there is one that the page does not show anyway."""

    def of_both(picture: re.Match[str]) -> str:
        dark = picture["path"].replace("-light.", "-dark.")
        if dark in source[0] or not (Path(app.srcdir) / page).parent.joinpath(dark).exists():
            return picture[0]
        themes = (("only-light", picture["path"]), ("only-dark", dark))
        return "\n\n".join(
            f"```{{image}} {path}\n:alt: {picture['alt']}\n:class: {kind}\n```" for kind, path in themes
        )

    source[0] = _LIGHT_PICTURE.sub(of_both, source[0])


def _readable_signature(
    _app: Sphinx,
    what: str,
    _name: str,
    obj: object,
    _options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Give a pydantic model the signature of its fields, and defaults that Sphinx can read."""
    if what == "class" and isinstance(obj, type) and issubclass(obj, BaseModel):
        obj.model_rebuild()
        signature = stringify_signature(
            inspect.signature(obj), show_return_annotation=False, unqualified_typehints=True
        )
    return _DEFAULTS_MADE.sub("...", MEMBERS.sub(r"\1", signature)) if signature else signature, returned


def _plain_returns(
    _app: Sphinx, _what: str, _name: str, _obj: object, _options: object, lines: list[str]
) -> None:
    """Keep what stands before a colon from being read as a type: our types stand in the signature."""
    for number, line in enumerate(lines[:-1]):
        if line.strip() in {"Returns:", "Yields:"}:
            lines[number + 1] = re.sub(r"^ *", r"\g<0>: ", lines[number + 1])


def _search_excerpts(app: Sphinx, page: str, _template: str, _context: object, _doctree: object) -> None:
    """Give the search page the texts of all pages."""
    if page == "search":
        app.add_js_file("excerpts.js", priority=100)


def _write_excerpts(app: Sphinx, failure: Exception | None) -> None:
    """Write the texts of all pages by section, from which the search quotes when the site lies on a disk."""
    if failure is None and app.builder.format == "html":
        texts = {page: _sections(app.env.get_doctree(page)) for page in app.env.found_docs}
        words = f"window.EXCERPTS = {json.dumps(texts, ensure_ascii=False)};\n"
        (Path(app.outdir) / "_static" / "excerpts.js").write_text(words, "utf-8")


def _sections(page: nodes.document) -> list[tuple[str, str]]:
    """Return the name and the beginning of the text of each section, without markup and without those below it."""
    for markup in list(page.findall(nodes.raw)):
        markup.parent.remove(markup)
    return [
        (section["ids"][0], "\n".join(_own_texts(section))[:_EXCERPT])
        for section in page.findall(nodes.section)
    ]


def _own_texts(section: nodes.section) -> Iterator[str]:
    return (child.astext() for child in section.children if not isinstance(child, nodes.section))


def _check(app: Sphinx, failure: Exception | None) -> None:
    """Warn of public names without an entry, and of pages that load something from elsewhere."""
    if failure is not None or app.builder.format != "html":
        return
    documented = app.env.domains.python_domain.objects
    for name in (Path(app.srcdir) / "public_names.txt").read_text("utf-8").split():
        if Name.at(name).home not in documented:
            _log.warning("public name without an entry in the reference: %s", name)
    for page in Path(app.outdir).rglob("*.html"):
        for found in _FOREIGN.findall(page.read_text("utf-8")):
            _log.warning("%s loads from elsewhere: %s", page.name, found)
