"""Build what a release consists of. Run by ``poe release`` (group ``release``).

``build/release`` then holds the source archive and the wheel, ``sbom.json`` (CycloneDX: every package that
``speechlab[local]`` installs, with its version and license), and ``SHA256SUMS``.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"
RELEASE = BUILD / "release"


def run(*command: str) -> str:
    """Its standard output."""
    done = subprocess.run(command, check=True, cwd=ROOT, timeout=1200, stdout=subprocess.PIPE, text=True)
    return done.stdout


def main() -> None:
    """Make the folder anew."""
    shutil.rmtree(RELEASE, ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(RELEASE))
    made = run(sys.executable, "tools/wheel.py", str(BUILD / "wheel"), "--extra", "local")
    shutil.copy(next((BUILD / "wheel" / "dist").glob("*.whl")), RELEASE)
    for origin in (BUILD / "wheel" / "env").rglob("speechlab-*.dist-info/direct_url.json"):
        origin.unlink()  # a path of the machine that builds
    bom = ["--output-reproducible", "--output-file", str(RELEASE / "sbom.json")]
    run(sys.executable, "-m", "cyclonedx_py", "environment", *bom, made.splitlines()[-1])
    files = sorted(path for path in RELEASE.iterdir())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (RELEASE / "SHA256SUMS").write_text("".join(sums), "utf-8")
    print(RELEASE)


if __name__ == "__main__":
    main()
