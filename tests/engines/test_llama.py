"""The translator: every pair, streaming, terms, line breaks, and no open port."""

import re
import time

import psutil
import pytest

from speechlab.engines import TranslationJob, Translator, create
from speechlab.errors import EngineError, ModelError
from support.clock import ends_within

pytestmark = pytest.mark.engines

SOURCES = {"ja": "私は学生です。", "en": "I read a book at the library.", "zh": "今天天气很好。"}
SCRIPTS = {"ja": "[\u3040-\u30ff\u4e00-\u9fff]", "en": "[A-Za-z]{2}", "zh": "[\u4e00-\u9fff]"}


def whole(engine, *job, **more):
    deltas = list(engine.translate(TranslationJob(*job, **more)))
    return "".join(delta.text for delta in deltas), deltas


@pytest.mark.parametrize(("source", "target"), [("ja", "en"), ("en", "zh"), ("zh", "ja")])
def test_every_pair_gives_text_in_the_right_script(source, target, gemma):
    text, deltas = whole(gemma, SOURCES[source], source, target)
    assert re.search(SCRIPTS[target], text), text
    assert text == text.strip()
    assert deltas[-1].prompt_tokens > 10
    assert deltas[-1].completion_tokens > 1


def test_it_streams_and_repeats_itself_exactly(gemma):
    job = TranslationJob("昨日は友達と映画を見て、帰りました。", "ja", "en")
    started = time.perf_counter()
    deltas, times = [], []
    for delta in gemma.translate(job):
        deltas.append(delta)
        times.append(time.perf_counter() - started)
    assert len(deltas) > 5
    assert times[0] < 0.8 * times[-1]
    # What was translated in between must not change it, not even another pair of languages.
    once = "".join(delta.text for delta in deltas)
    whole(gemma, "昨日は友達と話しました。", "ja", "en")
    whole(gemma, "Hello.", "en", "zh")
    assert once == whole(gemma, job.text, "ja", "en")[0]


def test_closing_the_stream_stops_the_model(gemma):
    stream = gemma.translate(TranslationJob("今日は良い天気です。" * 40, "ja", "en"))
    next(stream)
    with ends_within(5):
        stream.close()
    assert whole(gemma, "はい。", "ja", "en")[0]


def test_097_terms_are_kept_or_reported(gemma):
    sentences = {
        "SpeechLabで音声を合成します。": ("SpeechLab",),
        "KokoroとWhisperを使います。": ("Kokoro", "Whisper"),
        "この会社の名前はNimbusです。": ("Nimbus", "absent"),
    }
    kept = 0
    for text, keywords in sentences.items():
        translation, deltas = whole(gemma, text, "ja", "en", keywords=keywords)
        wanted = [word for word in keywords if word in text]
        lost = [word for word in wanted if word not in translation]
        assert deltas[-1].missing_keywords == tuple(lost)
        assert "KW" not in translation
        kept += len(wanted) - len(lost)
    assert kept >= 3


def test_line_breaks_survive_and_what_has_no_words_is_copied(gemma):
    assert isinstance(gemma, Translator)
    text = "The sun is warm.\n\n  The sea is cold.\r\n… !\n"
    translation, _ = whole(gemma, text, "en", "ja")
    assert re.sub(r"[^\s…!]+", "x", translation) == "x\n\n  x\r\n… !\n", translation
    with pytest.raises(EngineError, match="'fr' is not translated here; choose from: ja, en, zh"):
        gemma.translate(TranslationJob("a", "en", "fr"))


def test_context_is_not_translated(gemma):
    text, _ = whole(gemma, "彼は来ません。", "ja", "en", context="田中さんは病気です。")
    assert "tanaka" not in text.lower() or "sick" not in text.lower()
    assert re.search(SCRIPTS["en"], text)


def test_no_port_is_open_and_nothing_is_printed(capfd):
    def list_open_ports():
        return {c.laddr for c in psutil.Process().net_connections("inet") if c.status == psutil.CONN_LISTEN}

    engine, before = create("gemma"), list_open_ports()
    engine.load()
    whole(engine, "はい。", "ja", "en")
    assert list_open_ports() <= before
    engine.close()
    assert capfd.readouterr() == ("", "")


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"it has no \.gguf file"):
        create("llama", model=str(tmp_path)).find_model()
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF but not really")
    with pytest.raises(ModelError, match=r"broken\.gguf is not a whole model"):
        create("llama", model=str(path)).load()
