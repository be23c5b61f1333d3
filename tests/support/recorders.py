"""A recorder in a page of this machine, whose browser has a microphone that plays a file."""

from __future__ import annotations

import base64

from support.browser import FAKE_MODEL, Page

LOCAL = "http://localhost"


class ShownRecorder(Page):
    """A recorder by its real module, in a page whose model asks the real recorder."""

    def __init__(self, context, recorder, origin=LOCAL, headers=None):
        super().__init__(context.new_page(), origin)
        self.headers = headers or {}
        self.recorder = recorder
        self.page.set_default_timeout(10_000)
        self.answers = []
        self.lost = 0  # so many messages of the browser do not arrive
        recorder.send = lambda content, buffers=(): self.answers.append(
            (content, [base64.b64encode(data).decode() for data in buffers])
        )
        self.page.expose_function("ask", self.ask)
        self.files["/recorder.js"] = ("text/javascript", recorder._esm)
        self.show(
            f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>t</title><style>{recorder._css}</style>"
            f'<script>{FAKE_MODEL}</script><body style="margin:0"><main id="cell"></main>'
        )
        self.page.evaluate(
            """async (state) => {
              window.leaked = [];
              document.addEventListener("keydown", (event) => leaked.push(event.key));
              window.model = new (class extends FakeModel {
                async send(content, callbacks, buffers = []) {
                  const text = (one) => Array.from(new Uint8Array(one), (c) => String.fromCharCode(c)).join("");
                  const texts = buffers.map((one) => btoa(text(one)));
                  const [takes, answers] = await window.ask(content, texts);
                  if (JSON.stringify(takes) !== JSON.stringify(this.get("takes"))) this.set("takes", takes);
                  for (const [message, data] of answers) {
                    const views = data.map((text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
                    this.emit("msg:custom", message, views.map((view) => new DataView(view.buffer)));
                  }
                }
              })(state);
              const widget = (await import("/recorder.js")).default;
              window.cleanup = widget.render({ model, el: document.getElementById("cell") });
            }""",
            {
                name: getattr(recorder, name)
                for name in ["title", "max_s", "processing", "takes", "recording"]
            },
        )

    def ask(self, content, texts):
        if self.lost:
            self.lost -= 1
            return [self.recorder.takes, []]
        self.recorder._asked(self.recorder, content, [memoryview(base64.b64decode(text)) for text in texts])
        given, self.answers[:] = list(self.answers), []
        return [self.recorder.takes, given]

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).click()

    def record(self, seconds, name="Record"):
        self.press(name)
        self.heard(seconds)
        self.press("Stop")
        self.page.get_by_text("Stopped after").wait_for()

    def heard(self, seconds):
        text = "document.querySelector('.sl-time').textContent.split(':')[1].split(' ')[0]"
        self.page.wait_for_function(f"Number({text}) >= {seconds}")

    def taken(self, count):
        self.page.wait_for_function(f"document.querySelectorAll('.sl-take').length === {count}")

    def status(self):
        return self.page.get_by_role("status").text_content()
