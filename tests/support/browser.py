"""A page in a real Chromium, without a network."""

import base64
import os
from pathlib import Path

import pytest

from support.programs import program

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
MICROPHONE = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
"""A microphone that beeps each second, and that every page may use."""
ORIGIN = "http://page.test"
AXE = Path(__file__).parents[2] / "tools" / "javascript" / "node_modules" / "axe-core" / "axe.min.js"
needs_axe = pytest.mark.skipif(not AXE.exists(), reason="needs axe-core: npm ci --prefix tools/javascript")


def pictures(*cases):
    """All of these themes and widths where pictures are taken anew (``poe pictures``), and else the first."""
    return cases if os.environ.get("WIDGET_PICTURES") else cases[:1]


def chromium_path():
    """The system's Chromium; without one a test is skipped.

    Its build without windows comes first: it draws the same pages with half the processor time.
    """
    return program("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


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
window.AskingModel = class extends FakeModel {
  asking = new Set();
  send(content, callbacks, buffers) {
    const answer = this.ask(content, buffers).finally(() => this.asking.delete(answer));
    this.asking.add(answer);
    return answer;
  }
  async answered() { while (this.asking.size) await Promise.all(this.asking); }
  async ask(content, buffers = []) {
    (window.sent ??= []).push(content);
    const textOf = (data) => btoa(Array.from(new Uint8Array(data), (byte) => String.fromCharCode(byte)).join(""));
    const viewOf = (text) => new DataView(Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0)).buffer);
    const [traits, answers] = await window.ask(content, buffers.map(textOf));
    for (const [name, value] of Object.entries(traits)) {
      if (JSON.stringify(value) !== JSON.stringify(this.get(name))) this.set(name, value);
    }
    for (const [message, data] of answers) this.emit("msg:custom", message, data.map(viewOf));
  }
};
"""


def told(page, widget):
    """The widget, once it has answered all that an ``AskingModel`` of the page has asked it by now."""
    page.evaluate("model.answered()")
    return widget


def press(page, *keys):
    """Press keys, one after the other."""
    for key in keys:
        page.keyboard.press(key)


def violations(page, selector="html", *, every_rule=False):
    """The rules of axe that a part of a page breaks, each with the first element that does.

    Args:
        page: The page.
        selector: The part.
        every_rule: Whether the rules count that axe leaves out unless asked, but for a contrast of 7 to 1.
    """
    if page.evaluate("!window.axe"):
        page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate(
        """([part, every]) => {
          const asked = every ? axe.getRules().map((rule) => rule.ruleId) : [];
          const rules = asked.filter((rule) => rule !== "color-contrast-enhanced");
          const enabled = Object.fromEntries(rules.map((rule) => [rule, { enabled: true }]));
          return axe.run(part, { resultTypes: ["violations"], rules: enabled });
        }""",
        [selector, every_rule],
    )["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found]


def looks(page, *schemes_and_widths):
    """Give each scheme of colors with a width in pixels, once the page has them."""
    for scheme, width in schemes_and_widths:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        yield scheme, width


def assert_readable(page, *schemes_and_widths):
    """Assert that axe finds nothing in a widget, and that nothing of it is cut off, in these schemes and widths."""
    for look in looks(page, *schemes_and_widths):
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), look
        wide = page.evaluate(
            """() => [...document.querySelectorAll(".sl-row *, .sl-tools *, .sl-controls *, .sl-panel *")].filter(
              (node) => node.getBoundingClientRect().right > innerWidth + 0.5 && !node.closest("svg")).length"""
        )
        assert wide == 0, look
        assert violations(page, "#cell") == [], look


class Page:
    """A page that can load only what a test gave it, and that remembers every attempt at more."""

    def __init__(self, page, origin=ORIGIN):
        self.page = page
        self.origin = origin
        self.files = {}
        self.headers = {}
        self.refused = []
        self.errors = []
        self.widget = None
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

    def show_widget(self, name, widget, traits, *, before="", after="", body_style=""):
        """Show a widget by its real module, with an ``AskingModel`` of its state.

        Args:
            name: Name of the module in the page.
            widget: The widget.
            traits: Names of its traits, with spaces between, or a dict of the model's state.
            before: What the page does first, with the state as ``state``.
            after: What it does when there is a ``model``.
            body_style: Style of the body.
        """
        if isinstance(traits, str):
            traits = {trait: getattr(widget, trait) for trait in traits.split()}
        self.files[f"/{name}.js"] = ("text/javascript", widget._esm)
        page = self.show(
            f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>t</title><style>{widget._css}</style>"
            f'<script>{FAKE_MODEL}</script><body style="{body_style}"><main id="cell"></main>'
        )
        page.evaluate(
            f"""async (state) => {{
              {before}
              window.leaked = [];
              document.addEventListener("keydown", (event) => leaked.push(event.key));
              window.model = new AskingModel(state);
              {after}
              const widget = (await import("/{name}.js")).default;
              window.cleanup = widget.render({{ model, el: document.getElementById("cell") }});
            }}""",
            traits,
        )
        return page

    def answer(self, widget, *traits):
        """Let an ``AskingModel`` of the page ask a widget as its model would.

        Args:
            widget: The widget.
            *traits: Names of its traits that change by what it is asked, and that the page has to learn.
        """
        if self.widget is None:
            self.page.expose_function("ask", self.ask)
        self.widget, self.traits = widget, traits
        self.answers = []
        widget.send = lambda content, buffers=(): self.answers.append(
            (content, [base64.b64encode(data).decode() for data in buffers])
        )

    def ask(self, content, texts):
        """Ask it; give the traits and the answers, whose data are base64."""
        self.widget._answer_message(
            self.widget, content, [memoryview(base64.b64decode(text)) for text in texts]
        )
        answers, self.answers[:] = list(self.answers), []
        return {name: getattr(self.widget, name) for name in self.traits}, answers
