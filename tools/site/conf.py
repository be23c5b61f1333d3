"""Settings of the documentation site; ``poe docs`` builds it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel
from reference import MEMBERS, Name, lent_names, resolve_annotations
from sphinx.domains.python import PythonDomain
from sphinx.util import logging
from sphinx.util.inspect import stringify_signature

from speechlab import __version__

if TYPE_CHECKING:
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
    (r"py:class", r"speechlab\.contract\.Annotated"),
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
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}

_FOREIGN = re.compile(
    r"<(?:script|link|img|iframe|audio|video|source)\b[^>]*?\b(?:src|href)=[\"'](?:https?:)?//[^\"']+"
)
_DEFAULTS_MADE = re.compile(r"<[\w. -]+>")
"""Functions as defaults, and fields that a factory fills."""
_log = logging.getLogger(__name__)


def setup(app: Sphinx) -> None:
    """Have each build checked at its end."""
    resolve_annotations()
    for field in PythonDomain.directives["class"].doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.connect("autodoc-process-signature", _readable_signature)
    app.connect("autodoc-process-docstring", _plain_returns, priority=400)  # napoleon's is 500
    app.connect("build-finished", _check)


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
