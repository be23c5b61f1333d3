"""Build the wheel, and install it with nothing else in an empty environment. Run by ``poe wheel``.

    python tools/wheel.py FOLDER [--oldest] [--extra NAME]

``FOLDER/dist`` holds the wheel, ``FOLDER/env`` the environment. With ``--oldest`` each dependency of ours has the
lowest version that pyproject.toml allows, and what they need in turn the newest.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

from packaging.metadata import Metadata

if TYPE_CHECKING:
    from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def build(folder: Path) -> Path:
    """The wheel of this checkout."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True, timeout=120)
    (wheel,) = folder.glob("speechlab-*.whl")
    return wheel


def requirements(wheel: Path) -> list[Requirement]:
    """What the wheel requires, with all extras."""
    with ZipFile(wheel) as files:
        (name,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        return list(Metadata.from_email(files.read(name), validate=False).requires_dist or ())


def oldest(required: list[Requirement]) -> list[str]:
    """Constraints for pip: each requirement at its lowest version."""
    lowest = {
        f"{requirement.name}=={bound.version}"
        for requirement in required
        for bound in requirement.specifier
        if bound.operator in {">=", "=="}
    }
    return sorted(lowest)


def install(wheel: Path, folder: Path, *, extras: list[str], constraints: list[str]) -> Path:
    """A new environment with the wheel; its interpreter."""
    venv.create(folder, clear=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    listed = folder / "constraints.txt"
    listed.write_text("".join(f"{line}\n" for line in constraints), "utf-8")
    target = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    options = ["--quiet", "--no-compile", "--constraint", str(listed), target]
    # uv takes a third of the time; pip does it where there is none, and where it finds no index
    uv = shutil.which("uv", path=str(Path(sys.executable).parent))
    given = [uv, "pip", "install", "--python", str(python), *options] if uv else None
    if not given or subprocess.run(given, check=False, timeout=900).returncode:
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
        subprocess.run([*pip, *options], check=True, timeout=900)
    return python


def main() -> None:
    """Read the command line and do both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--oldest", action="store_true")
    parser.add_argument("--extra", action="append", default=[])
    asked = parser.parse_args()
    wheel = build(asked.folder / "dist")
    constraints = oldest(requirements(wheel)) if asked.oldest else []
    print(install(wheel, asked.folder / "env", extras=asked.extra, constraints=constraints))


if __name__ == "__main__":
    main()
