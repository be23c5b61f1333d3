"""A real Chromium for tests of what people see, without a network."""

from __future__ import annotations

import base64
import os
import shutil

import pytest

from support.browser import FAKE_MODEL, FLAGS, Page


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
        css = player._css
        shown.files["/player.js"] = ("text/javascript", player._esm)
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
        css = preview._css
        shown.files["/preview.js"] = ("text/javascript", preview._esm)
        page = shown.show(
            f"<!DOCTYPE html><meta charset=utf-8><title>t</title><style>{css}</style><script>{FAKE_MODEL}</script>"
            f'<body style="{body_style}"><div id="cell"></div>'
        )
        names = "title summary running done total recent earlier"
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


ANSWERING = """
window.model = new (class extends FakeModel {
  async send(content) {
    (window.sent ??= []).push(content);
    for (const [message, buffers] of await window.ask(content)) {
      const views = buffers.map((text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer));
      this.emit("msg:custom", message, views);
    }
  }
})(state);
"""


@pytest.fixture
def show_table(shown):
    """Show an AudioTable by its real module, in a page whose model asks the real table."""

    def show(table, body_style=""):
        answers = []

        def send(content, buffers=()):
            answers.append((content, [base64.b64encode(data).decode() for data in buffers]))

        def ask(content):
            answers.clear()
            table._asked(table, content, [])
            return list(answers)

        table.send = send
        shown.page.expose_function("ask", ask)
        shown.files["/table.js"] = ("text/javascript", table._esm)
        page = shown.show(
            f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>t</title><style>{table._css}</style>"
            f'<script>{FAKE_MODEL}</script><body style="{body_style}"><main id="cell"></main>'
        )
        names = "columns count revision reference max_rating editable chosen sound title"
        page.evaluate(
            f"""async (state) => {{
              window.leaked = [];
              document.addEventListener("keydown", (event) => leaked.push(event.key));
              {ANSWERING}
              const widget = (await import("/table.js")).default;
              window.cleanup = widget.render({{ model, el: document.getElementById("cell") }});
            }}""",
            {name: getattr(table, name) for name in names.split()},
        )
        page.wait_for_function("document.querySelectorAll('.sl-row').length > 0 || model.get('count') === 0")
        return page

    return show
