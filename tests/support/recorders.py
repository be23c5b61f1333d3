"""A recorder in a page of this machine, whose browser has a microphone that plays a file."""

from support.browser import Page

LOCAL = "http://localhost"


class ShownRecorder(Page):
    """A recorder by its real module, in a page whose model asks the real recorder."""

    def __init__(self, context, recorder, origin=LOCAL, headers=None):
        super().__init__(context.new_page(), origin)
        self.headers = headers or {}
        self.recorder = recorder
        self.page.set_default_timeout(10_000)
        self.lost = 0  # so many messages of the browser do not arrive
        self.answer(recorder, "_outlines", "takes")
        self.show_widget(
            "recorder", recorder, "title max_s processing _outlines takes recording", body_style="margin:0"
        )

    def ask(self, content, texts):
        if not self.lost:
            return super().ask(content, texts)
        self.lost -= 1
        return {}, []

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
