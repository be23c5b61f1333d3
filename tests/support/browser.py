"""A page in a real Chromium, without a network."""

from __future__ import annotations

import os
import shutil

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
]
ORIGIN = "http://page.test"


def chromium_path():
    """The system's Chromium; without one a test is skipped."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    reason = "needs Chromium: apt-get install chromium"
    if os.environ.get("CI"):
        pytest.fail(reason)
    return pytest.skip(reason)


FAKE_MODEL = """
window.FakeModel = class {
  constructor(state) { this.state = state; this.listeners = []; this.saved = []; this.pending = {}; }
  get(name) { return this.state[name]; }
  set(name, value) { this.state[name] = value; this.pending[name] = value; this.emit(`change:${name}`); }
  save_changes() { this.saved.push(this.pending); this.pending = {}; }
  on(name, listener) { this.listeners.push([name, listener]); }
  off(name, listener) { this.listeners = this.listeners.filter(([n, l]) => n !== name || l !== listener); }
  emit(name, ...values) { for (const [n, l] of [...this.listeners]) if (n === name) l(...values); }
};
"""


class Page:
    """A page that can load only what a test gave it, and that remembers every attempt at more."""

    def __init__(self, page, origin=ORIGIN):
        self.page = page
        self.origin = origin
        self.files = {}
        self.headers = {}
        self.refused = []
        self.errors = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.route("**/*", self._serve)

    def _serve(self, route):
        path = route.request.url.removeprefix(self.origin)
        if path in self.files:
            content_type, body = self.files[path]
            route.fulfill(headers={**self.headers, "content-type": content_type}, body=body)
        else:
            self.refused.append(route.request.url)
            route.abort()

    def show(self, html):
        self.files["/"] = ("text/html; charset=utf-8", html)
        self.files["/favicon.ico"] = ("image/x-icon", b"")
        self.page.goto(f"{self.origin}/")
        return self.page
