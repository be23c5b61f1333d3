"""The documentation site, built into ``build/docs/html``: ``python tools/site/build.py``.

The pages of ``docs/``, the notebooks and the README stay where they are; copies are laid out below
``build/docs/source`` as in the checkout, so that their links hold, and the reference is written beside them.
A warning fails the build: a link that leads nowhere, a docstring that does not render, a public name without an
entry, a page that loads something from elsewhere. Exit status 1 then.
"""

from __future__ import annotations

import gc
import re
import shutil
import sys
from pathlib import Path

from checks import checks_page, readings_page
from gallery import gallery
from hear import heard_page
from reference import write, write_reference
from sphinx.cmd.build import build_main

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
BUILD = ROOT / "build" / "docs"
COPIED = (
    "docs/*.md", "docs/extend/*.md", "docs/*.csv", "docs/*.json", "docs/images/*", "deploy/*",
    "benchmarks/*.py", "notebooks/*.ipynb", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
)  # fmt: skip
MADE = {"reference", "README.md", "gallery.md"}
"""Pages that are written here, and not copied."""


def main() -> int:
    """Build the site and say where it is."""
    gc.set_threshold(200_000)  # a site is millions of nodes that stay to the end
    source, pages = BUILD / "source", BUILD / "html"
    wanted = {path.relative_to(ROOT): path for pattern in COPIED for path in ROOT.glob(pattern)}
    wanted |= {Path("public_names.txt"): ROOT / "tests" / "public_names.txt"}
    _copy(wanted, source)
    home = (ROOT / "README.md").read_text("utf-8") + (HERE / "contents.md").read_text("utf-8")
    write(source / "README.md", _heard(home))
    write(source / "gallery.md", gallery(source / "notebooks", source / "docs" / "images"))
    names = (source / "public_names.txt").read_text("utf-8").split()
    write_reference(names, source / "reference")
    write(source / "reference" / "readings.md", readings_page(ROOT / "docs" / "readings.csv"))
    write(source / "reference" / "checks.md", checks_page())
    options = ["-c", str(HERE), "-d", str(BUILD / "doctrees"), "-D", "root_doc=README"]
    options += ["-W", "--keep-going", "-q"]
    failed = build_main([*options, *sys.argv[1:], str(source), str(pages)])
    if not failed:
        write(pages / "hear.html", heard_page())
        shutil.copy2(pages / "README.html", pages / "index.html")
        print(f"The site is in {(pages / 'index.html').relative_to(ROOT)}")
    return failed


def _heard(home: str) -> str:
    """Put a table that can be heard in the place of its picture."""
    picture = re.compile(r"^!\[([^]]*)\]\(docs/images/languages-light\.png\)$", re.MULTILINE)
    assert picture.search(home), "the README has no picture of a table any more"
    return picture.sub(
        r'<iframe class="hear" src="hear.html" title="\1" loading="lazy"></iframe>\n\n'
        "Press ▶ to hear a row. There are two each in English, Japanese and Chinese: what was to be said, what a\n"
        "recognizer understood, and where both differ.",
        home,
    )


def _copy(wanted: dict[Path, Path], folder: Path) -> None:
    """Copy files with their times, so that only changed ones are read again; remove what is no longer wanted."""
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        if path.is_file() and relative not in wanted and relative.parts[0] not in MADE:
            path.unlink()
    for relative, path in wanted.items():
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.stat().st_mtime != path.stat().st_mtime:
            shutil.copy2(path, target)


if __name__ == "__main__":
    sys.exit(main())
