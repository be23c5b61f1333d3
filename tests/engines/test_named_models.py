"""Models that users name: what a name means, what is fetched of it, and what is refused before a download."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from speechlab.engines import ModelStore, add_model, create, send_progress_to, status
from speechlab.engines._speech.kokoro_model import KokoroModel
from speechlab.engines._weights.formats import GGUF_FORMAT, WHISPER_FORMAT, WHISPER_SIZES
from speechlab.engines._weights.hub import find_or_fetch_model
from speechlab.engines._weights.names import HubName, parse_model_name
from speechlab.errors import ConfigurationError, ModelError
from support.model_hub import COMMIT, use_model_hub

TOKENS = [
    {"id": 50257 + number, "content": f"<|{token}|>"}
    for number, token in enumerate(("startoftranscript", "en", "de", "ja", "yue", "transcribe"))
]
TOKENIZER = json.dumps({"added_tokens": TOKENS})
WHISPER = {
    "README.md": b"# a model",
    "config.json": json.dumps({"alignment_heads": [], "lang_ids": [1], "suppress_ids": []}).encode(),
    "model.bin": b"w" * 3_000,
    "tokenizer.json": TOKENIZER.encode(),
    "vocabulary.json": b'["x"]',
    "model.fp32.onnx": b"not needed" * 500,
}
SMALL = "Systran/faster-whisper-small"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with use_model_hub(monkeypatch, tmp_path / "hf") as hub:
        yield hub


@pytest.fixture
def store(tmp_path):
    return ModelStore(tmp_path / "store")


def fetch(name, store, kind=WHISPER_FORMAT, **options):
    return find_or_fetch_model(parse_model_name(name, kind.usual), kind, store, **options)


def test_a_name_means_a_repository():
    for name, meaning in (
        ("small", HubName(SMALL)),
        ("large-v3-turbo@v1", HubName("mobiuslabsgmbh/faster-whisper-large-v3-turbo", "v1")),
        ("o/n", HubName("o/n")),
        ("Org-1/a.b_c@refs/pr/1:q/f-Q4_K_M.gguf", HubName("Org-1/a.b_c", "refs/pr/1", "q/f-Q4_K_M.gguf")),
        ("o/n:Q8_0", HubName("o/n", "", "Q8_0")),
    ):
        assert parse_model_name(name, WHISPER_SIZES) == meaning


def test_what_is_here_comes_before_a_repository_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "o" / "n").mkdir(parents=True)
    assert parse_model_name("o/n", {}) == (tmp_path / "o" / "n").relative_to(tmp_path)


def test_create_refuses_what_is_no_path_and_no_name():
    for name in ("/nowhere/model", "a/b/c", "o/m.gguf", "?", "o/n:", "../x", "C:\\models\\x"):
        with pytest.raises(ModelError, match=r"no such folder or file .* a usual size \(tiny, .*owner/name"):
            create("whisper", model=name)
    for name, meant in (
        ("smal", "small"),
        ("whisper-medium", "medium"),
        ("large_v3_turbo@main", "large-v3-turbo"),
    ):
        proposed = f"did you mean '{meant}'\\? Else give an existing path, a usual size, or"
        with pytest.raises(ModelError, match=proposed):
            create("whisper", model=name)


def test_the_usual_sizes_are_those_of_faster_whisper():
    theirs = pytest.importorskip("faster_whisper").utils._MODELS
    assert theirs == WHISPER_SIZES


def test_only_the_needed_files_are_fetched_once(hub, store):
    hub.add(SMALL, WHISPER)
    steps = []
    with send_progress_to(lambda model, done, total: steps.append((model, done, total))):
        found = fetch("small", store)
    needed = {"config.json", "model.bin", "tokenizer.json", "vocabulary.json"}
    assert set(found.files) == set(hub.fetched) == needed
    assert (found.commit, found.main.read_bytes()) == (COMMIT, WHISPER["model.bin"])
    size = sum(len(WHISPER[name]) for name in needed)
    assert steps[0] == (SMALL, 0, size)
    assert steps[-1] == (SMALL, size, size)
    record = json.loads(next((store.root / "hub").glob("*.json")).read_text())
    assert record["commit"] == COMMIT
    assert len(record["files"]["model.bin"]["sha256"]) == 64
    asked = len(hub.requests)
    hub.repositories.clear()
    assert fetch("small", store, allow_download=False).files == found.files
    assert len(hub.requests) == asked


def test_a_remembered_name_stays_with_its_commit(hub, store):
    hub.add(SMALL, WHISPER)
    main = fetch("small", store).main
    hub.add(SMALL, WHISPER, commit="f" * 40, revisions=("main", COMMIT))
    os.truncate(main, 5)  # damaged on the disk: fetched again, of the commit that is remembered
    again = fetch("small", store)
    assert (again.commit, again.main.read_bytes()) == (COMMIT, WHISPER["model.bin"])


def without(*names):
    return {name: data for name, data in WHISPER.items() if name not in names}


@pytest.mark.parametrize(
    ("name", "files", "reason"),
    [
        (
            "small",
            without("model.bin") | {"model.safetensors": b"x"},
            r"lacks model\.bin \(it has PyTorch or safetensors",
        ),
        ("small", without("vocabulary.json"), r"lacks vocabulary\.json or vocabulary\.txt"),
        ("small", {"ggml-small.bin": b"x"}, r"weights of whisper\.cpp: ggml-small\.bin"),
        ("small", WHISPER | {"config.json": b'{"add_source_bos": false}'}, "not that of a Whisper model"),
        (SMALL + "@nope", WHISPER, r"no revision 'nope'"),
        ("Systran/nothing", WHISPER, r"/Systran/nothing does not exist, or is private; .*hf auth login"),
        (SMALL + ":model.bin", WHISPER, "a whole folder"),
    ],
)
def test_an_unusable_model_is_refused_before_its_download(name, files, reason, hub, store):
    hub.add(SMALL, files)
    with pytest.raises(ModelError, match=reason):
        fetch(name, store)
    assert "model.bin" not in hub.fetched


def test_terms_that_were_not_accepted_are_named_with_their_page(hub, store):
    hub.add(SMALL, WHISPER, gated=True)
    with pytest.raises(ModelError, match=rf"accept them at {hub.url}/{SMALL}, then log in"):
        fetch("small", store)
    assert not hub.fetched


def test_a_disk_that_is_too_small_is_named_before_the_download(hub, store):
    hub.add(SMALL, WHISPER)
    hub.sizes["model.bin"] = 10**15
    with pytest.raises(
        ModelError, match=r"needs 1,000,000,\d+ MB in .* are free; nothing was downloaded; .*HF_HOME"
    ):
        fetch("small", store)
    assert not hub.fetched


def test_without_a_network_the_address_is_named(hub, store, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://user:secret@127.0.0.1:9")
    with pytest.raises(ModelError, match=r"http://127\.0\.0\.1:9 cannot be reached") as failure:
        fetch("small", store)
    assert "secret" not in str(failure.value)
    with pytest.raises(ModelError, match="allow_download = false"):
        fetch("small", store, allow_download=False)


def test_a_failing_download_is_not_called_unreachable(hub, store):
    hub.add(SMALL, WHISPER)
    hub.failing["model.bin"] = 403
    with pytest.raises(ModelError, match="answered HTTP 403"):
        fetch("small", store)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"compute_type": "float17"},
            "compute_type='float17' is not known on the device 'cpu'; choose one of: auto, ",
        ),
        ({"languages": ["ja", "xx"]}, r"does not know the languages \['xx'\]; it knows de, en, ja, yue"),
    ],
)
def test_a_named_recognizer_says_first_what_it_cannot_do(options, reason, hub, store):
    hub.add(SMALL, WHISPER)
    with pytest.raises((ConfigurationError, ModelError), match=reason):
        create("whisper", model="small", store=store, **options).find_model()


def test_a_damaged_download_is_fetched_once_more(hub, store):
    hub.add(SMALL, WHISPER)
    hub.damaged.add("model.bin")
    with pytest.raises(ModelError, match=r"'model\.bin' .* damaged twice"):
        fetch("small", store)
    assert hub.fetched.count("model.bin") == 2
    hub.damaged.clear()
    assert fetch("small", store).main.read_bytes() == WHISPER["model.bin"]


GGUF = b"GGUF" + bytes(1_200)
FILES = {
    "qwen-Q4_K_M.gguf": GGUF,
    "qwen-Q8_0.gguf": GGUF + b"8",
    "big/qwen-F16-00001-of-00002.gguf": GGUF + b"1",
    "big/qwen-F16-00002-of-00002.gguf": GGUF + b"2",
    "mmproj-F16.gguf": GGUF,
    "README.md": b"x",
}


@pytest.mark.parametrize(
    ("name", "fetched"),
    [
        ("o/n", ["qwen-Q4_K_M.gguf"]),
        ("o/n:q8_0", ["qwen-Q8_0.gguf"]),
        ("o/n:qwen-Q8_0.gguf", ["qwen-Q8_0.gguf"]),
        ("o/n:F16", ["big/qwen-F16-00001-of-00002.gguf", "big/qwen-F16-00002-of-00002.gguf"]),
    ],
)
def test_one_gguf_file_is_fetched_with_its_parts(name, fetched, hub, store):
    hub.add("o/n", FILES)
    found = fetch(name, store, GGUF_FORMAT)
    assert list(found.files) == fetched
    assert sorted(hub.fetched) == sorted(item.rpartition("/")[2] for item in fetched)


@pytest.mark.parametrize(
    ("name", "files", "reason"),
    [
        ("o/n:Q5", FILES, r"no \.gguf files named 'Q5'; name one of them after a colon: big/qwen-F16"),
        (
            "o/n",
            {"a.gguf": GGUF, "b.gguf": GGUF},
            r"2 \.gguf files; name one of them after a colon: a\.gguf, b\.gguf",
        ),
        ("o/n", {"model.safetensors": b"x"}, r"no \.gguf file \(it has PyTorch or safetensors"),
        ("o/n", {"a.gguf": b"<html>"}, r"a\.gguf is not a GGUF file"),
    ],
)
def test_a_repository_without_one_gguf_file_is_refused(name, files, reason, hub, store):
    hub.add("o/n", files)
    with pytest.raises(ModelError, match=reason):
        fetch(name, store, GGUF_FORMAT)


def test_a_named_recognizer_has_languages_and_commit(hub, store):
    english = {"added_tokens": [{"id": 50256, "content": "<|endoftext|>"}, *TOKENS]}
    hub.add(SMALL, WHISPER)
    hub.add("o/english", WHISPER | {"tokenizer.json": json.dumps(english).encode()})
    engine = create("whisper", model="small", store=store)
    assert engine.model == SMALL
    engine.find_model()
    assert engine.model == f"{SMALL}@{COMMIT[:8]}"
    assert engine.languages == ("ja", "en", "zh", "de", "yue")
    assert create("whisper", model="o/english", store=store).languages == ("en",)


def test_a_fetched_official_model_is_preferred(hub, store):
    hub.add("Systran/faster-whisper-base", WHISPER)
    assert create("whisper", store=store).model == "whisper-base"
    added = add_model("whisper-base", source="hub", store=store)
    assert added.license == f"see Systran/faster-whisper-base, commit {COMMIT[:8]}"
    engine = create("whisper", store=store)
    assert engine.model == "Systran/faster-whisper-base"
    assert engine._prepare_model_folder() == added.folder
    assert status("whisper", store=store).unassembled_bytes == 0
    (added.folder / "model.bin").unlink()  # gone from the cache: the packages again, and no download
    assert create("whisper", store=store).model == "whisper-base"


def test_a_model_is_fetched_ahead_by_its_name(hub, store):
    hub.add(SMALL, WHISPER)
    hub.add("o/n", FILES)
    assert add_model("small", store=store).items[0] == "model.bin"
    assert add_model("o/n", engine="llama", store=store).items == ("qwen-Q4_K_M.gguf",)
    with pytest.raises(ConfigurationError, match="needs the engine that will use it: --for whisper or llama"):
        add_model("o/n", store=store)
    with pytest.raises(ConfigurationError, match="no model 'smal' to add"):
        add_model("smal", store=store)


@pytest.mark.parametrize(
    ("lines", "problem", "is_unfetched"),
    [
        ('engine = "whisper"\nmodel = "small"', "", True),
        (
            'engine = "whisper"\nmodel = "small"\nallow_download = false',
            "allow_download = false forbids",
            False,
        ),
        ('engine = "whisper"\nmodel = "/nowhere"', "there is no model '/nowhere'", False),
        ('engine = "whisper"\nmodel = "FOLDER"', "is not a CTranslate2 Whisper model: it lacks", False),
        ('engine = "kokoro"\nprecision = "fp8"', "no precision 'fp8'; choose one of: fp32, fp16", False),
        ('engine = "gemma"\ndevice = "cuda:9"', "there is no device 'cuda:9'", False),
    ],
)
def test_status_makes_an_engine_before_it_is_ready(lines, problem, is_unfetched, tmp_path, monkeypatch):
    path = tmp_path / "engines.toml"
    path.write_text(f"[engines.mine]\n{lines.replace('FOLDER', tmp_path.as_posix())}\n")
    monkeypatch.setenv("SPEECHLAB_ENGINES", str(path))
    state = status("mine", store=ModelStore(tmp_path))
    if state.missing_modules or state.missing_models:
        pytest.skip(state.remedy)
    assert problem in state.problem
    assert (state.ready, state.is_unfetched) == (not problem, is_unfetched)


def test_a_wrong_device_says_which_there_are():
    with pytest.raises(ConfigurationError, match="choose 'auto', 'cpu', 'cuda' or 'cuda:1'"):
        create("whisper", device="gpu").find_model()


VOICE = np.linspace(-1, 1, 510 * 256, dtype="<f4").tobytes()
KOKORO = {
    "onnx/model_fp16.onnx": b"o" * 2_000,
    "onnx/model_quantized.onnx": b"q" * 2_000,
    "tokenizer.json": json.dumps({"model": {"vocab": {"$": 0, "a": 43}}}).encode(),
    **{f"voices/{name}.bin": VOICE for name in ("af_heart", "bm_george", "jf_alpha", "zf_xiaoni")},
}


def test_a_named_kokoro_has_the_voices_that_can_be_read(hub, store):
    hub.add("onnx-community/Kokoro-82M-v1.0-ONNX", KOKORO)
    engine = create("kokoro", precision="fp16", store=store)
    assert [(voice.name, voice.languages, voice.gender) for voice in engine.voices] == [
        ("af_heart", ("en",), "Female"),
        ("bm_george", ("en",), "Male"),
        ("jf_alpha", ("ja",), "Female"),
    ]
    assert engine.model == f"onnx-community/Kokoro-82M-v1.0-ONNX@{COMMIT[:8]}"
    assert "model_fp16.onnx" in hub.fetched
    assert "model_quantized.onnx" not in hub.fetched
    with pytest.raises(ModelError, match=r"ONNX Runtime cannot load .*model_fp16\.onnx"):
        engine.load()


@pytest.mark.parametrize(
    ("options", "files", "reason"),
    [
        (
            {"precision": "fp32"},
            KOKORO,
            r"lacks a model of precision fp32 \(model\.onnx\); it has onnx/model_fp16",
        ),
        ({"model": "o/n:x.onnx"}, KOKORO, r"lacks a model .*another precision: fp32, fp16, int8"),
        ({"model": "o/n"}, {"model.onnx": b"o"}, r"lacks voices \(voices/\*\.bin\)"),
        ({"precision": "int4"}, KOKORO, "no precision 'int4'; choose one of: fp32, fp16, int8"),
    ],
)
def test_a_repository_that_is_no_kokoro_is_refused(options, files, reason, hub, store):
    for name in ("o/n", "onnx-community/Kokoro-82M-v1.0-ONNX"):
        hub.add(name, files)
    with pytest.raises(ModelError, match=reason):
        create("kokoro", store=store, **options).find_model()
    assert hub.fetched == []


def test_inputs_of_kokoro_have_the_names_of_the_model():
    asked = []

    class Session:
        def run(self, _, inputs):
            asked.append({name: (value.dtype.name, value.shape) for name, value in inputs.items()})
            return [np.ones((1, 4), dtype=np.float32)]

    style = np.zeros(256, dtype=np.float32)
    KokoroModel(Session(), {}).synthesize_tokens([1, 2], style)
    inputs = {"input_ids": "int64", "style": "float16", "speed": "int32"}
    assert KokoroModel(Session(), {}, inputs).synthesize_tokens([1, 2], style).shape == (4,)
    assert asked == [
        {"tokens": ("int64", (1, 4)), "style": ("float32", (1, 256)), "speed": ("float32", (1,))},
        {"input_ids": ("int64", (1, 4)), "style": ("float16", (1, 256)), "speed": ("int32", (1,))},
    ]
