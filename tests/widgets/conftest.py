"""A real Chromium for tests of what people see, without a network."""

import asyncio
import contextlib
import os
from pathlib import Path

import pytest
from PIL import Image

from support.browser import FLAGS, Page, chromium_path
from support.firefox import Firefox
from support.staged_voices import voices_service

IMAGES = Path(__file__).parents[2] / "docs" / "images"


@contextlib.contextmanager
def run_loop(loop):
    """Let Playwright's event loop run, which no other test's can do meanwhile."""
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def playwright_loop():
    """Playwright, and its event loop, which does not run but in files that use it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield playwright, loop
        asyncio._set_running_loop(loop)


@pytest.fixture(scope="session")
def browser(playwright_loop):
    """The system's Chromium; in its place Firefox with ``BROWSER=firefox`` (``poe firefox``)."""
    playwright, loop = playwright_loop
    with run_loop(loop):
        if os.environ.get("BROWSER") == "firefox":
            opened = Firefox(playwright)
        else:
            opened = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
    yield opened
    with run_loop(loop):
        opened.close()


@pytest.fixture(scope="module")
def chromium(playwright_loop, browser):
    """The browser that all files of a worker share."""
    with run_loop(playwright_loop[1]):
        yield browser


@pytest.fixture(scope="module")
def launch(chromium):
    """Launch another browser with flags of its own, which is closed with the file."""
    opened = []

    def launch(*flags):
        opened.append(chromium.browser_type.launch(executable_path=chromium_path(), args=[*FLAGS, *flags]))
        return opened[-1]

    yield launch
    for one in opened:
        one.close()


@pytest.fixture(params=["light"])
def shown(request, chromium):
    """An empty page in a fresh context; parametrize indirectly with ``"dark"`` for the other scheme."""
    context = chromium.new_context(color_scheme=request.param, viewport={"width": 820, "height": 640})
    page = Page(context.new_page())
    page.page.set_default_timeout(10_000)
    yield page
    context.close()
    assert page.refused == []
    assert page.errors == []


@pytest.fixture
def save_picture(tmp_path):
    """Takes a picture of a widget in few colors, into the folder of the guide's pictures where that is asked for."""
    folder = Path(os.environ.get("WIDGET_PICTURES") or tmp_path)

    def save(page, selector, name):
        path = folder / f"{name}.png"
        page.wait_for_timeout(100)
        page.locator(selector).first.screenshot(path=str(path))
        Image.open(path).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
        assert 4_000 < path.stat().st_size < 120_000
        assert (IMAGES / path.name).exists()

    return save


WATCH_STARTS = """
state.peaks = new DataView(new Uint8Array(state.peaks).buffer);
window.starts = [];
window.words = [];
const fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
  words.push(text);
  return fillText.call(this, text, ...place);
};
const start = AudioBufferSourceNode.prototype.start;
AudioBufferSourceNode.prototype.start = function (when, offset, duration) {
  const sound = this.buffer;
  starts.push({ when, offset, duration, rate: sound.sampleRate, length: sound.length, sound });
  return start.call(this, when, offset, duration);
};
"""


@pytest.fixture
def show_player(shown):
    """Show a Player by its real module, in a page whose model asks the real player."""

    def show(player, body_style=""):
        shown.answer(player)
        names = (
            "clips piece_s duration title layers tier current_time playing selected selection view loop speed"
        )
        names += " active_clip equal_level spectrogram"
        names += " snap_s lang" if hasattr(player, "snap_s") else ""
        state = {name: getattr(player, name) for name in names.split()}
        state.update(peaks=list(player.peaks), selection=list(player.selection), view=list(player.view))
        return shown.show_widget("player", player, state, before=WATCH_STARTS, body_style=body_style)

    return show


@pytest.fixture
def show_test(shown):
    """Show a ListeningTest by its real module, in a page whose model asks the real test and has its session."""

    def show(test, body_style="", answering=True):
        shown.answer(test, "session")
        names = "test method title question instructions trials order_seed no_preference session words design"
        silent = "" if answering else "model.send = () => {};"
        return shown.show_widget("test", test, names, after=silent, body_style=body_style)

    return show


@pytest.fixture
def show_preview(shown):
    """Show a BatchPreview's state by its real module, in a page with a stand-in for the model."""

    def show(preview, body_style=""):
        names = "title summary running done total recent earlier"
        return shown.show_widget("preview", preview, names, body_style=body_style)

    return show


CONTROLS = """
// Stands in for the views of ipywidgets: the same elements and class names, with the real widgets behind them.
const filled = [];
function elementOf(number, state) {
  const make = (parent, name, className) =>
    parent.appendChild(Object.assign(document.createElement(name), { className }));
  const kind = state.model.replace("Model", "").toLowerCase();
  const el = document.createElement(kind === "button" ? "button" : "div");
  el.className = `jupyter-widgets widget-${kind} ${kind === "button" ? "jupyter-button" : "widget-inline-hbox"}`;
  if (state.button_style) el.classList.add(`mod-${state.button_style}`);
  let fill = (now) => { el.textContent = now.value; };
  if (kind === "button") {
    el.addEventListener("click", () => window.control(number, true));
    fill = (now) => { el.textContent = now.description; el.disabled = now.disabled; };
  } else if (kind === "textarea") {
    const label = make(el, "label", "widget-label");
    const input = make(el, "textarea", "widget-input");
    label.textContent = state.description;
    label.htmlFor = input.id = `control-${number}`;
    input.placeholder = state.placeholder;
    input.rows = 2;
    input.addEventListener("input", () => window.control(number, input.value));
    fill = (now) => { if (input !== document.activeElement) input.value = now.value; };
  } else if (kind === "checkbox") {
    const label = make(el, "label", "widget-label-basic");
    const input = make(label, "input", "");
    input.type = "checkbox";
    make(label, "span", "").textContent = state.description;
    input.addEventListener("change", () => window.control(number, input.checked));
    fill = (now) => { input.checked = now.value; };
  }
  fill(state);
  filled.push([number, fill]);
  return el;
}
export function stand(model) {
  model.save_changes = function () { window.keep(this.pending); this.pending = {}; };
  model.widget_manager = {
    get_model: async (number) => ({ number, name: (await window.control(number)).model }),
    create_view: async ({ number }) => {
      const el = elementOf(number, await window.control(number));
      return { el, remove: () => el.remove() };
    },
  };
  window.standing = setInterval(async () => {
    await model.send({ type: "nothing" });
    const states = await window.controls();
    for (const [number, fill] of filled) fill(states[number]);
  }, 150);
}
"""


@pytest.fixture(scope="module")
def voices_lab():
    """A client of a service whose voices are tones, quiet and loud, or fail."""
    with voices_service() as client:
        yield client


@pytest.fixture
def show_table(shown):
    """Show an AudioTable by its real module, in a page whose model asks the real table."""

    def show(table, body_style=""):
        def keep(changes):
            for name, value in changes.items():
                setattr(table, name, value)

        def control(number, value=None):
            widget = table._controls[int(number)]
            if value is not None and hasattr(widget, "click"):
                widget.click()
            elif value is not None:
                widget.value = value
            names = "value description placeholder disabled button_style"
            return {
                "model": widget._model_name,
                **{name: getattr(widget, name, "") for name in names.split()},
            }

        shown.answer(table)
        if table._controls:
            shown.page.expose_function("keep", keep)
            shown.page.expose_function("control", control)
            shown.page.expose_function("controls", lambda: [control(n) for n in range(len(table._controls))])
            shown.files["/controls.js"] = ("text/javascript", CONTROLS)
        names = "columns count revision reference max_rating editable chosen sound title answers view"
        state = {name: getattr(table, name) for name in names.split()}
        state["_controls"] = [f"IPY_MODEL_{number}" for number in range(len(table._controls))]
        controls = '(await import("/controls.js")).stand(model);' if table._controls else ""
        page = shown.show_widget("table", table, state, after=controls, body_style=body_style)
        page.wait_for_function("document.querySelectorAll('.sl-row').length > 0 || model.get('count') === 0")
        return page

    return show
