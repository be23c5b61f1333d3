"""What is sent and what is read, for each operation; what is refused before anything is sent."""

import base64
import io
import pickle
import re
import tracemalloc

import httpx2
import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab.audio import AudioClip
from speechlab.client import (
    Client,
    SpeechClip,
    SpeechStream,
    Transcript,
    Translation,
    VoiceCatalogue,
    normalize_url,
)
from speechlab.contract import Voice
from speechlab.errors import (
    BadRequestError,
    ConfigurationError,
    ContractError,
    InvalidRequestError,
    SegmentError,
    StreamTruncatedError,
)
from speechlab.text import join_texts


def test_a_catalogue_is_searched_and_shown():
    upper = "0F8FAD5B-d9cb-469f-a165-70867728950e"
    calm = Voice(id=upper, description="Calm <b>", language="ja, en", gender="Female")
    bright = Voice(id="b", description="Bright", language="English", gender="Male", streaming=True)
    catalogue = VoiceCatalogue([calm, bright])
    assert catalogue["calm"] is catalogue[0] is catalogue[upper.lower()]
    assert catalogue["b"] is catalogue[1]
    assert list(catalogue.find(language="en")) == [calm, bright]
    assert list(catalogue.find(language="ja")) == [calm]
    assert list(catalogue.find(gender="male", streaming=True)) == [bright]
    assert len(catalogue.find(language="zh")) == 0
    assert catalogue.frame()["gender"].tolist() == ["Female", "Male"]
    with pytest.raises(InvalidRequestError, match=r"did you mean 'Bright'\? There are 'Calm <b>', 'Bright'"):
        catalogue.one("brght")
    male, ja = "gender='Male'", "language='ja'"
    for asked, said in (
        ({"language": "fr"}, "no voice fits language='fr'; language is one of 'en', 'ja'"),
        ({"gender": "Male", "language": "ja"}, f"no voice fits {ja} and {male}, though each by itself"),
    ):
        with pytest.raises(IndexError) as caught:
            catalogue.find(**asked)[0]
        assert isinstance(caught.value, InvalidRequestError)
        assert str(caught.value) == said


def test_a_voice_is_found_by_the_name_in_its_description():
    """Even where other descriptions contain it."""
    said = (
        "Kokoro, American (kokoro: af_heart)",
        "hibari, very fast (hibari: heart)",
        "Calm and warm",
        "Calm, bright",
    )
    voices = VoiceCatalogue([Voice(id=str(number), description=text) for number, text in enumerate(said, 1)])
    names = {"heart": "2", "AF_Heart": "1", "hibari: heart": "2", "fast": "2", "warm": "3", "4": "4"}
    assert {name: voices[name].id for name in names} == names
    for name in ("calm", "nobody", "", " "):
        with pytest.raises(InvalidRequestError, match="fits"):
            voices[name]


def test_the_table_of_a_catalogue_says_once_what_all_share(http):
    voices = [
        Voice(id=http.VOICE_ID, description="Calm <b>", language="ja", gender=gender, formats=("wav", "mp3"))
        for gender in ("Female", "Male")
    ]
    shown = VoiceCatalogue(voices)._repr_html_()
    assert "<strong>2 voices:</strong> language ja; streams no; formats wav, mp3</caption>" in shown
    assert "wav, mp3</td>" not in shown
    assert shown.count("Calm &lt;b&gt;") == 4  # each once above, and once in the fold with its id
    assert "VoiceExplorer" not in VoiceCatalogue([])._repr_html_()
    # what turns the direction of writing is ended with its field
    voices = [Voice(id=key, description=key, language="en\u202e", gender="x\u2067") for key in "ab"]
    assert "language en\u202e\u202c; gender x\u2067\u2069; streams" in VoiceCatalogue(voices)._repr_html_()


def test_speech_is_a_clip_with_its_bytes(server, lab, http, wav, clip):
    server.script(http.reply(body=wav, content_type="audio/wav"))
    speech = lab.synthesize("こんにちは", voice=http.VOICE_ID)
    assert isinstance(speech, SpeechClip)
    assert speech == clip
    assert (speech.encoded, speech.format, speech.timing.attempts) == (wav, "wav", 1)
    assert speech.voice_id == http.VOICE_ID
    assert server.requests[0].json == {"voice_id": http.VOICE_ID, "text": "こんにちは", "format": "wav"}
    again = pickle.loads(pickle.dumps(speech))
    assert (again.encoded, again.timing, again) == (speech.encoded, speech.timing, speech)
    assert lab.usage.synthesized_chars == 5
    voice = Voice(id=http.VOICE_ID, description="Calm <b> (kokoro: one)", language="Japanese")
    speech = lab.synthesize("costs $5 <i>", voice=voice)
    assert (speech.voice, speech.language) == ("kokoro: one", "ja")
    assert "costs $5 &lt;i&gt;" in speech._repr_html_()


def test_streams_that_cannot_be_cut_into_clips(server, lab, http, wav, clip):
    server.script(http.chunked(wav[44:], content_type="audio/pcm; rate=0"))
    with pytest.raises(ContractError, match="not usable"):
        list(lab.stream_speech("a", voice=http.VOICE_ID, format="pcm").clips())
    mp3 = clip.encode("mp3")
    server.script(http.chunked(mp3, content_type="audio/mpeg"), http.reply(body={"text": "hi"}))
    with lab.stream_speech("a", voice=http.VOICE_ID, format="mp3") as stream:
        with pytest.raises(InvalidRequestError, match="collect"):
            next(stream.clips())
        speech = stream.collect()
    assert speech.source_format == "mp3"
    lab.transcribe(speech)
    assert base64.b64decode(server.requests[1].json["audio"]) == mp3  # it is sent on as it came


def test_every_format_is_decoded_at_its_rate(server, lab, http, clip):
    for kind, media_type, rate in (
        *((kind, f"audio/{kind}", 24_000) for kind in ("mp3", "flac", "ogg", "pcm")),
        ("pcm", 'audio/L16; rate="8000"', 8_000),
    ):
        server.script(http.reply(body=clip.encode(kind), content_type=media_type))
        speech = lab.synthesize("a", voice=http.VOICE_ID, format=kind)
        assert speech.sample_rate == rate
        assert speech.duration_s == pytest.approx(0.5 * 24_000 / rate, abs=0.1)
    server.script(http.reply(body=clip.encode("pcm"), content_type="audio/pcm"))
    assert lab.synthesize("a", voice=http.VOICE_ID, format="pcm", sample_rate=16_000).sample_rate == 16_000


def test_051_a_success_that_is_not_audio_is_an_error(server, lab, http):
    for body, content_type, message in (
        (b'{"error": "x"}', "application/json", "application/json instead of audio"),
        (b"<html>proxy</html>", "text/html; charset=utf-8", "text/html instead of audio"),
        (b"", "audio/wav", "without a single byte"),
        (b"not audio", "audio/wav", "not usable audio"),
    ):
        server.script(http.reply(body=body, content_type=content_type))
        with pytest.raises(ContractError, match=message):
            lab.synthesize("a", voice=http.VOICE_ID)
        assert len(server.requests) == 1


def test_speech_as_it_comes(server, lab, http, wav, clip):
    endless = wav[:4] + b"\xff" * 4 + wav[8:40] + b"\xff" * 4 + wav[44:]  # a header of unknown length: 49
    for data in (wav, endless):
        server.script(http.chunked(data[:145], 0.05, data[145:999], data[999:]))
        with lab.stream_speech("a", voice=http.VOICE_ID) as stream:
            taken = next(stream)  # with one byte of a sample, where clips go on
            rest = AudioClip.concatenate(stream.clips())
            assert stream.collect() == clip
        assert rest.frames == clip.frames - (len(taken) - 44) // 2
        assert server.requests[0].json["stream"] is True
        with lab.stream_speech("a", voice=http.VOICE_ID) as stream:
            assert AudioClip.concatenate(stream.clips()) == clip
    with lab.stream_speech("a", voice=http.VOICE_ID) as stream:
        pieces = list(stream)
    assert b"".join(pieces) == endless
    assert len(pieces) >= 2


def test_047_a_stream_that_lacks_sound_is_cut_short(server, lab, http, wav):
    def read(stream):
        return list(stream.clips())

    for form, data, says in (
        ("wav", wav[:700], "data chunk declares"),
        ("wav", wav[:30], "before its sound"),
        ("wav", wav[:3], "before its sound"),
        ("pcm", wav[44:-1], "within a sample"),
    ):
        for take in (list, read, SpeechStream.collect):
            server.script(http.chunked(data))
            stream = lab.stream_speech("a", voice=http.VOICE_ID, format=form)
            with stream, pytest.raises(StreamTruncatedError, match=says) as caught:
                take(stream)
            assert caught.value.partial == data
    with pytest.raises(ConfigurationError, match="closed"):
        next(stream)
    assert lab.usage.calls == 0


def test_leaving_a_stream_early_closes_the_connection(server, lab, http, wav):
    server.script(http.chunked(wav[:100], 30.0, wav[100:]))
    narrow = lab.with_options(max_concurrency=1)
    with narrow.stream_speech("a", voice=http.VOICE_ID) as stream:
        assert next(stream) == wav[:100]
    assert server.closed_early.wait(20)
    for _ in range(2):  # each would wait for ever for the one before
        stream = narrow.stream_speech("a", voice=http.VOICE_ID)
        assert next(stream) == wav[:100]
        del stream


def test_088_recordings_of_every_form_go_as_plain_base64(server, lab, http, wav, tmp_path):
    path, clip, opened = tmp_path / "a.bin", AudioClip.from_bytes(wav), io.BytesIO(b"before" + wav)
    path.write_bytes(wav)
    opened.seek(6)
    body = {"text": "hi", "language": "en", "confidence": 0.5}
    server.script(http.reply(body=body, X_Speechlab_Model="owner/ears"))
    for audio in (path, str(path), wav, memoryview(wav), opened, (np.array(clip.samples), 24_000), clip):
        transcript = lab.transcribe(audio, language="en", hotwords=["a"])
        assert isinstance(transcript, Transcript)
        assert (transcript.text, transcript.language, transcript.confidence) == ("hi", "en", 0.5)
        assert (transcript.model, len(transcript.segments)) == ("owner/ears", 0)
        sent = server.requests[-1].json
        assert base64.b64decode(sent.pop("audio"), validate=True) == wav
        assert sent == {"language": "en", "hotwords": ["a"]}


def test_a_path_may_begin_with_the_home_folder(server, lab, http, clip, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    clip.save("~/a.wav")
    assert (tmp_path / "a.wav").is_file()
    assert AudioClip.from_file("~/a.wav") == clip
    server.script(http.reply(body={"text": "Hello", "language": "en"}))
    assert lab.transcribe("~/a.wav").text == "Hello"
    pd.DataFrame({"audio": ["~/a.wav"]}).to_csv(tmp_path / "rows.csv", index=False)
    server.script(
        lambda asked: http.reply(404) if "voices" in asked.path else http.reply(body={"text": "Hello"})
    )
    table = sl.batch.transcribe("~/rows.csv", lab.with_options(store=None), store=tmp_path / "store")
    assert list(table["hypothesis"]) == ["Hello"]


def test_long_recordings_go_in_slices_and_can_be_sent_again(server, lab, http, tmp_path):
    data = np.random.default_rng(1).integers(-9_000, 9_000, 700_001, dtype=np.int16)
    path = tmp_path / "long.wav"
    AudioClip(data, 16_000).save(path)
    server.script(http.reply(503), http.RESET, http.reply(body={"text": "hi"}))
    transcript = lab.transcribe(path, vad="segments", min_silence_gap=300)
    assert transcript.timing.attempts == 3
    for request in server.requests:
        sent = request.json
        assert base64.b64decode(sent.pop("audio"), validate=True) == path.read_bytes()
        assert sent == {"vad": "segments", "min_silence_gap": 300}
        assert int(request.headers["content-length"]) == len(request.body)


def test_segments_become_a_table_and_a_text(server, lab, http, wav):
    segments = [
        {"start": 0, "end": 1.5, "text": "こんにちは。"},
        {"start": 2, "end": 3, "text": "<b>元気</b>"},
    ]
    server.script(http.reply(body={"language": "ja", "segments": segments}))
    transcript = lab.transcribe(wav, vad="segments")
    assert (transcript.text, transcript.confidence) == ("こんにちは。<b>元気</b>", None)
    pd.testing.assert_frame_equal(transcript.segments, sl.segments.frame(transcript.segments))
    assert transcript.segments["start"].tolist() == [0.0, 2.0]
    shown = transcript._repr_html_()
    assert "&lt;b&gt;元気" in shown
    assert 'lang="ja"' in shown


def test_texts_are_joined_as_the_language_writes():
    for texts, language, joined in (
        (["a ", "", " b"], "en", "a b"),
        (["今天", "下雨"], "zh-CN", "今天下雨"),
        (["今日は", "雨"], "", "今日は雨"),
        (["hello", "雨"], "", "hello 雨"),
        (["안녕", "하세요"], "", "안녕 하세요"),
    ):
        assert join_texts(texts, language) == joined


def form_fields(request):
    boundary = re.fullmatch(r"multipart/form-data; boundary=(\w+)", request.headers["content-type"])[1]
    *parts, last = request.body.decode().split(f"--{boundary}")
    assert last == "--\r\n"
    found = [re.fullmatch(r'\r\n.*? name="(\w+)"\r\n\r\n(.*)\r\n', part, re.DOTALL) for part in parts[1:]]
    return [match.groups() for match in found]


def test_translation_is_sent_as_a_form_with_repeated_keywords(server, lab, http):
    message = {"role": "assistant", "content": "Hi <i>"}
    body = {
        "id": "trans_1",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3},
        "balance": {"free": 7},
        "source_lang": "ja",
        "target_lang": "en",
        "transcription": "やあ",
    }
    server.script(http.reply(body=body))
    fields = [("source_lang", "ja"), ("target_lang", "en"), ("keywords", ["一", "二"]), ("context", "c")]
    result = lab.translate("や\r\nあ", **dict(fields))
    assert isinstance(result, Translation)
    assert (result.text, result.id, result.model, result.usage.total_tokens) == ("Hi <i>", "trans_1", "m", 3)
    assert (result.balance.free, result.balance.premium) == (7, None)
    assert server.requests[0].path == "/translate/"
    each = [("text", "や\r\nあ"), *fields[:2], ("keywords", "一"), ("keywords", "二"), fields[3]]
    assert form_fields(server.requests[0]) == each
    assert "Hi &lt;i&gt;" in result._repr_html_()
    assert lab.usage.completion_tokens == 1


def test_anything_can_be_sent_as_it_is(server, lab, http):
    server.script(http.reply(400, {"code": 100, "error": "no"}))
    reply = lab.request("POST", "tts", json={"text": ""})
    assert (reply.status, reply.json()["code"], server.requests[0].json) == (400, 100, {"text": ""})
    with pytest.raises(BadRequestError, match="no"):
        reply.raise_for_status()
    lab.request("GET", "/x", headers={"Authorization": "Basic eA=="})
    assert server.requests[1].headers["authorization"] == "Basic eA=="


def test_a_service_is_named_by_itself_or_by_its_address(server, lab, http):
    server.script(http.reply(body=[], X_Speechlab_Service="speechlab/1 abc"))
    assert lab.identity() == lab.identity() == lab.with_options(timeout=1).identity() == "speechlab/1 abc"
    assert len(server.requests) == 1
    for path in ("", "/", "/api/v2", "/api/v2//"):  # 19
        server.script(http.reply(body=[]))
        with Client(server.base_url + path, api_key=http.KEY) as other:
            assert other.identity() == server.base_url + path.rstrip("/")
        assert server.requests[0].path == path.rstrip("/") + "/tts/voices"
    assert normalize_url("HTTPS://Example.ORG:443/v2//") == "https://example.org/v2"
    assert normalize_url("http://[::1]:8100") == "http://[::1]:8100"


def test_the_services_own_time(server, lab, http, wav):
    for header, engine_s, queue_s in (
        ("queue;dur=3.5, engine;dur=250", 0.25, 0.0035),
        ('engine;desc="x";dur="1.5"', 0.0015, None),
        ("engine;dur=nan, queue;dur=-1", None, None),
    ):
        server.script(http.reply(body={"text": "hi"}, Server_Timing=header))
        timing = lab.transcribe(wav).timing
        assert (timing.processing_s, timing.service_queued_s) == (engine_s, queue_s)


def test_long_recordings_are_never_in_memory_as_a_whole(http, tmp_path):
    class Counting(httpx2.AsyncBaseTransport):
        received = 0

        async def handle_async_request(self, request):
            async for piece in request.stream:
                self.received += len(piece)
            assert self.received == int(request.headers["content-length"])
            return httpx2.Response(200, json={"text": "hi"})

    size = 24_000_000
    path = tmp_path / "long.wav"
    with path.open("wb") as file:
        file.write(AudioClip(np.zeros(16, np.int16), 16_000).encode("wav"))
        file.truncate(size)
    transport = Counting()
    with Client("http://127.0.0.1:1", transport=transport) as lab:
        lab.transcribe(path)
        transport.received = 0
        tracemalloc.start()
        lab.transcribe(path)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert transport.received > size * 4 / 3
    assert peak < size / 10


# The last column of docs/contract.md: what a client does with a service that reads the contract otherwise.


def test_024_027_032_to_039_options_of_speech(server, lab, http, clip):
    both = {"formats": ["ogg", "wav"], "sample_rates": [16_000, 24_000]}
    unknown = {name: value for name, value in http.VOICE.items() if name != "sample_rates"}
    for fields, options, sent in (
        ({**http.VOICE, **both}, {"sample_rate": 24_000, "temperature": 0.0}, {"sample_rate", "temperature"}),
        ({**http.VOICE, **both}, {}, set()),
        (unknown, {"sample_rate": 44_100}, {"sample_rate"}),  # only the service knows its providers
    ):
        server.script(http.reply(body=clip.encode("ogg"), content_type="audio/ogg"))
        lab.synthesize("a", voice=Voice.parse(fields), format="ogg", **options)
        body = server.requests[0].json
        assert set(body) == {"voice_id", "text", "format", *sent}
        assert {name: body[name] for name in sent} == options
    lab.synthesize("a", voice=http.VOICE_ID.upper(), format="ogg")
    assert server.requests[1].json["voice_id"] == http.VOICE_ID  # in lower case
    one = Voice.parse({**http.VOICE, "sample_rates": [24_000], "streaming": False})
    for call, told in (
        (lambda: lab.synthesize("a", voice=one, sample_rate=24_000), "has one rate"),
        (lambda: lab.stream_speech("a", voice=one).open(), "does not stream"),
    ):
        with pytest.raises(InvalidRequestError, match=told):
            call()
    assert len(server.requests) == 2


def test_078_079_082_either_form_of_a_transcript(server, lab, http, wav):
    timed = {"start": 0, "end": 1, "text": "b"}
    server.script(http.reply(body={"text": "a"}))
    plain = lab.transcribe(wav, vad="segments")
    assert (plain.text, plain.pieces, plain.confidence, len(plain.segments)) == ("a", None, None, 0)
    for text, segments in (("a", [timed]), ("", [])):
        server.script(http.reply(body={"text": text, "confidence": 0, "segments": segments}))
        found = lab.transcribe(wav)
        assert (found.text, found.confidence, len(found.segments)) == (text, 0, len(segments))
    server.script(http.reply(body={"segments": [{**timed, "end": -1}]}))
    odd = lab.transcribe(wav, vad="segments")
    assert (odd.text, odd.pieces[0].end) == ("b", -1)
    with pytest.raises(SegmentError):
        _ = odd.segments
    server.script(http.reply(body={"language": "en"}))
    with pytest.raises(ContractError, match="neither text nor segments"):
        lab.transcribe(wav)
