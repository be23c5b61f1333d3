"""Debian's Firefox in place of Chromium, for ``poe firefox``: never in the gate, where it takes too long."""

import os
import subprocess
import tempfile

import pytest

from support.programs import program

# Firefox draws no picture of a page in another scheme of colors unless it begins with it.
DARK = {"layout.css.prefers-color-scheme.content-override": 0, "ui.systemUsesDarkTheme": 1}
LIGHT = {"layout.css.prefers-color-scheme.content-override": 1, "ui.systemUsesDarkTheme": 0}
SOUND = {"media.autoplay.default": 0, "media.autoplay.blocking_policy": 0}
# One process for pages, and none in advance: a start takes a third of the time.
FEW = {"fission.autostart": False, "dom.ipc.processCount": 1, "dom.ipc.processPrelaunch.enabled": False}
TOO_NEW = "this Playwright asks Firefox for what it does not have; install 'playwright<1.64' for Firefox 153"


class Firefox:
    """A browser for each scheme of colors, with an output of sound that nobody hears."""

    def __init__(self, playwright):
        self._type, self._browsers = playwright.firefox, {}
        self._path, sound = program("firefox-esr", "firefox"), program("pulseaudio")
        self._folder = tempfile.TemporaryDirectory()
        self._address = f"{self._folder.name}/sound"
        protocol = f"module-native-protocol-unix socket={self._address} auth-anonymous=1"
        self._sound = subprocess.Popen(
            [
                sound,
                *("-n", "--daemonize=no", "--exit-idle-time=-1", "--disable-shm=yes"),
                *("--load=module-null-sink", f"--load={protocol}"),
            ],
            env={**os.environ, "HOME": self._folder.name, "XDG_RUNTIME_DIR": self._folder.name},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def new_context(self, *, color_scheme="light", **options):
        """Open an empty context in the browser of a scheme."""
        from playwright.sync_api import Error

        if color_scheme not in self._browsers:
            self._browsers[color_scheme] = self._type.launch(
                channel="moz-firefox",
                executable_path=self._path,
                firefox_user_prefs={**SOUND, **FEW, **(DARK if color_scheme == "dark" else LIGHT)},
                env={**os.environ, "PULSE_SERVER": f"unix:{self._address}"},
                timeout=180_000,
            )
        try:
            return self._browsers[color_scheme].new_context(**options)
        except Error as error:
            pytest.exit(f"{TOO_NEW}: {error}" if "setMediaFeaturesOverride" in str(error) else str(error))

    def new_page(self, **options):
        """Open an empty page in a context of its own."""
        return self.new_context(**options).new_page()

    def close(self):
        """Close the browsers, and end the output of sound."""
        for browser in self._browsers.values():
            browser.close()
        self._sound.terminate()
        self._sound.wait()
        self._folder.cleanup()
