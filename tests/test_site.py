"""The documentation site: what its build would not say, and that its build says what it should.

That a right page is built without a word is seen when the whole site is built, where a warning is an error.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SITE = ROOT / "tools" / "site"
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("notebooks/*.ipynb"),
    ROOT / "pyproject.toml",
]
REAL = {"semver.org", "api.openai.com"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_addresses_are_real_or_reserved_for_examples(page):
    for host in re.findall(r"https?://(?:[^/@\s]+@)?([\w.-]+)", page.read_text("utf-8")):
        reserved = re.search(
            r"^127\.0\.0\.1$|^localhost$|(^|\.)example(\.(com|net|org))?$|\.invalid$|^host$|^unix$", host
        )
        assert reserved or host in REAL, host


def build(folder, text, names):
    """Build a site of one page with the real settings, and return what was said and the exit status."""
    source = folder / "source"
    source.mkdir()
    (source / "index.md").write_text(text, "utf-8")
    (source / "public_names.txt").write_text(names, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", SITE, source, folder / "html"],
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SITE), os.environ["PYTHONPATH"]])},
    )
    return done.stdout + done.stderr, done.returncode


FAULTY = """
# A page

```{eval-rst}
:func:`speechlab.metrics.no_such_function`
```

[no such page](missing.md), [no such heading](#nowhere), ![from elsewhere](https://speech.example/logo.png)

```{eval-rst}
.. autofunction:: speechlab.metrics.holm
```
"""


@pytest.mark.slow
def test_a_build_refuses_what_is_wrong(tmp_path):
    said, status = build(tmp_path, FAULTY, "speechlab.metrics.holm\nspeechlab.metrics.compare\n")
    assert status == 1
    assert "missing.md" in said
    assert "nowhere" in said
    assert "speechlab.metrics.no_such_function" in said
    assert "index.html loads from elsewhere: <img" in said
    assert "without an entry in the reference: speechlab.metrics.compare" in said
    assert "speechlab.metrics.holm" not in said
