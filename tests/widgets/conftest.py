"""A real Chromium for tests of what people see, without a network."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

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
WIDGETS = Path(__file__).parents[2] / "src" / "speechlab" / "widgets"

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


@pytest.fixture(scope="module")
def chromium():
    """The system's Chromium, for one file: while Playwright lives, no other test can run an event loop here."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        reason = "needs Chromium: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Page:
    """A page that can load only what a test gave it, and that remembers every attempt at more."""

    def __init__(self, page):
        self.page = page
        self.files = {}
        self.refused = []
        self.errors = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.route("**/*", self._serve)

    def _serve(self, route):
        path = route.request.url.removeprefix(ORIGIN)
        if path in self.files:
            content_type, body = self.files[path]
            route.fulfill(content_type=content_type, body=body)
        else:
            self.refused.append(route.request.url)
            route.abort()

    def show(self, html):
        self.files["/"] = ("text/html; charset=utf-8", html)
        self.files["/favicon.ico"] = ("image/x-icon", b"")
        self.page.goto(f"{ORIGIN}/")
        return self.page


@pytest.fixture(params=["light"])
def shown(request, chromium):
    """An empty page in a fresh context; parametrise indirectly with ``"dark"`` for the other scheme."""
    context = chromium.new_context(color_scheme=request.param, viewport={"width": 820, "height": 640})
    page = Page(context.new_page())
    page.page.set_default_timeout(10_000)
    yield page
    context.close()
    assert page.refused == []
    assert page.errors == []


@pytest.fixture
def show_player(shown):
    """Show a Player's state by its real module, in a page with a stand-in for the model."""

    def show(player, body_style=""):
        css = (WIDGETS / "_player.css").read_text(encoding="utf-8")
        shown.files["/player.js"] = ("text/javascript", (WIDGETS / "_player.js").read_text(encoding="utf-8"))
        page = shown.show(
            f"<!DOCTYPE html><meta charset=utf-8><title>t</title><style>{css}</style><script>{FAKE_MODEL}</script>"
            f'<body style="{body_style}"><div id="cell"></div>'
        )
        names = "audio peaks sample_rate duration facts title lang segments current_time playing selected selection"
        state = {name: getattr(player, name) for name in names.split()}
        for name in ("audio", "peaks"):
            state[name] = list(state[name])
        state["selection"] = list(state["selection"])
        page.evaluate(
            """async (state) => {
              for (const name of ["audio", "peaks"]) state[name] = new DataView(new Uint8Array(state[name]).buffer);
              window.leaked = [];
              document.addEventListener("keydown", (event) => leaked.push(event.key));
              window.starts = [];
              const start = AudioBufferSourceNode.prototype.start;
              AudioBufferSourceNode.prototype.start = function (when, offset, duration) {
                starts.push([offset, duration, this.buffer.sampleRate, this.buffer.length]);
                return start.call(this, when, offset, duration);
              };
              window.model = new FakeModel(state);
              const widget = (await import("/player.js")).default;
              window.cleanup = widget.render({ model, el: document.getElementById("cell") });
            }""",
            state,
        )
        return page

    return show


@pytest.fixture
def show_preview(shown):
    """Show a BatchPreview's state by its real module, in a page with a stand-in for the model."""

    def show(preview, body_style=""):
        css = (WIDGETS / "_preview.css").read_text(encoding="utf-8")
        module = (WIDGETS / "_preview.js").read_text(encoding="utf-8")
        shown.files["/preview.js"] = ("text/javascript", module)
        page = shown.show(
            f"<!DOCTYPE html><meta charset=utf-8><title>t</title><style>{css}</style><script>{FAKE_MODEL}</script>"
            f'<body style="{body_style}"><div id="cell"></div>'
        )
        names = "title summary running done total recent"
        page.evaluate(
            """async (state) => {
              window.model = new FakeModel(state);
              const widget = (await import("/preview.js")).default;
              window.cleanup = widget.render({ model, el: document.getElementById("cell") });
            }""",
            {name: getattr(preview, name) for name in names.split()},
        )
        return page

    return show
