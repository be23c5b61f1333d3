"""Programs that pip does not install."""

import os
import shutil

import pytest


def program(*names: str, package: str | None = None) -> str:
    """The path of the first of these programs that is installed; its Debian package has the same name, or `package`.

    Without one the test is skipped, and the reason is the line that installs it. Where `.ci/run` has installed the
    package, the test fails instead.
    """
    package = package or names[0]
    for name in names:
        if found := shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin"):
            return found
    reason = f"needs {names[0]}: apt-get install {package}"
    if package in os.environ.get("INSTALLED_PACKAGES", "").split():
        pytest.fail(reason)
    return pytest.skip(reason)
