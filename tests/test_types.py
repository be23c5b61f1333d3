"""Pyright reads the public API as mypy does (``poe check`` runs mypy over this folder)."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "types"
PYRIGHT = HERE.parents[1] / "tools" / "javascript" / "node_modules" / ".bin" / "pyright"


@pytest.mark.slow
@pytest.mark.skipif(not PYRIGHT.exists(), reason="needs pyright: npm ci --prefix tools/javascript")
def test_pyright_agrees():
    done = subprocess.run(
        [PYRIGHT, "--project", HERE, "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
