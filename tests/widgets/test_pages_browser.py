"""What clips and reports show, in a real browser: it is all there, it plays, and text stays text."""

import numpy as np
import pytest

import speechlab as sl
from speechlab.audio import AudioClip
from speechlab.client import SpeechClip
from speechlab.contract import ReplySegment
from speechlab.display import Html, audio_figure, diff, document, element, render_details, table
from support.browser import looks

pytestmark = pytest.mark.browser

HOSTILE = [
    "<img src=x onerror='window.fired=1'>",
    "<script>window.fired=1</script>",
    "'\"><svg onload=window.fired=1>",
    "</style><script>window.fired=1</script>",
    "</title><script>window.fired=1</script>",
    "日本語<iframe src='javascript:parent.fired=1'></iframe>",
]


def hostile_page(text):
    clip = AudioClip(0.5 * np.sin(np.arange(24_000) / 20), 24_000, text)
    return (
        Html(clip._repr_html_())
        + audio_figure(None, title=text, facts=[text], text=text, lang="ja")
        + table([text], [[text]], caption=text, langs=[text])
        + render_details(text, text)
        + diff([("substitute", text, text)], lang=text, separator=text)
    )


def test_text_from_outside_never_runs(shown):
    """In whole documents, and in parts of a page that has no policy."""
    parts = [hostile_page(text) for text in HOSTILE]
    pages = [document(text, part, text, footer=text) for text, part in zip(HOSTILE, parts, strict=True)]
    for html, texts in [*zip(pages, ([text] for text in HOSTILE), strict=True), ("".join(parts), HOSTILE)]:
        page = shown.show(html)
        page.wait_for_timeout(50)
        assert page.evaluate("window.fired") is None
        assert page.locator("script, svg, iframe").count() == 0
        titles = page.locator("figcaption strong").all_inner_texts()
        assert titles == [text for text in texts for _ in range(2)]


def test_a_clip_shows_its_waveform_and_plays(shown):
    clip = AudioClip(0.5 * np.sin(np.arange(48_000) / 20), 24_000, "tone")
    page = shown.show(document("Report", Html(clip._repr_html_())))
    image = page.get_by_role("img", name="Waveform of tone, 2.00 s, -9 dBFS")
    assert image.evaluate("node => [node.naturalWidth, node.naturalHeight]") == [480, 48]
    # The page's policy forbids eval, and with it Playwright's own waiting.
    page.evaluate("""() => {
      const audio = document.querySelector("audio");
      const later = (done) => (audio.currentTime > 0.2 ? done() : setTimeout(later, 20, done));
      return audio.play().then(() => new Promise(later));
    }""")
    assert page.evaluate("document.querySelector('audio').duration") == pytest.approx(2.0, abs=0.02)


def test_a_document_fits_schemes_and_screens_and_runs_nothing(shown):
    rows = [["long" * 10, "x" * 60, 0.5]] * 3
    smuggled = Html(
        "<script>window.fired=1</script><img src=http://elsewhere.test/x.png onerror='window.fired=1'>"
    )
    body = element("h2", "Rates") + table(["a", "b", "c"], rows) + smuggled
    page = shown.show(document("Report", body, "テスト"))
    for scheme, width in looks(page, ("light", 360), ("dark", 360)):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(20, 23, 29)") is (scheme == "dark")
    assert page.evaluate("window.fired") is None  # by the policy of the page


def test_html_for_a_notebook_is_a_plain_text():
    for shown in (
        AudioClip(np.zeros(10), 8_000),
        SpeechClip(np.zeros(10, np.float32), 8_000, text="said"),
        sl.Transcript("heard", pieces=(ReplySegment(start=0.0, end=1.0, text="heard"),)),
        sl.Translation("said"),
        sl.client.VoiceCatalogue([]),
    ):
        assert type(shown._repr_html_()) is str  # marimo shows a subclass as an object
