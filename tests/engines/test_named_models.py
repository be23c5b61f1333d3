"""Models that users name: what a name means, what is fetched of it, and what is refused before a download."""

import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from speechlab.engines import WHISPER_SIZES, ModelStore, add_model, create, send_progress_to, status
from speechlab.errors import ConfigurationError, ModelError
from support.model_hub import COMMIT, use_model_hub
from support.texts import check_refusals

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


def fetch(name, store, engine="whisper", **options):
    made = create(engine, model=name, store=store, **options)
    made.find_model()
    return made


def test_a_name_means_a_repository(hub, store):
    for name, repository in (("small", SMALL), ("Org-1/a.b_c@refs/pr/1", "Org-1/a.b_c")):
        assert create("whisper", model=name, store=store).model == repository
    hub.add("Org-1/a.b_c", FILES, commit="e" * 40, revisions=("v1",))
    added = add_model("Org-1/a.b_c@v1:big/qwen-F16-00001-of-00002.gguf", engine="llama", store=store)
    assert added.license == "see Org-1/a.b_c, commit eeeeeeee"
    assert added.items == tuple(name for name in FILES if "F16-0" in name)


def test_the_usual_sizes_are_those_of_faster_whisper():
    theirs = pytest.importorskip("faster_whisper").utils._MODELS
    assert theirs == WHISPER_SIZES


def test_only_the_needed_files_are_fetched_once(hub, store):
    hub.add(SMALL, WHISPER)
    steps = []
    with send_progress_to(lambda model, done, total: steps.append((model, done, total))):
        added = add_model("small", store=store)
    needed = {"config.json", "model.bin", "tokenizer.json", "vocabulary.json"}
    assert set(added.items) == set(hub.fetched) == needed
    assert (added.folder / "model.bin").read_bytes() == WHISPER["model.bin"]
    size = sum(len(WHISPER[name]) for name in needed)
    assert (steps[0], steps[-1]) == ((SMALL, 0, size), (SMALL, size, size))
    record = json.loads(next((store.root / "hub").glob("*.json")).read_text())
    assert record["commit"] == COMMIT
    assert len(record["files"]["model.bin"]["sha256"]) == 64
    asked = len(hub.requests)
    hub.repositories.clear()
    assert fetch("small", store, allow_download=False).model == f"{SMALL}@{COMMIT[:8]}"
    assert len(hub.requests) == asked


def test_a_remembered_name_stays_with_its_commit(hub, store):
    hub.add(SMALL, WHISPER)
    main = add_model("small", store=store).folder / "model.bin"
    hub.add(SMALL, WHISPER, commit="f" * 40, revisions=("main", COMMIT))
    os.truncate(main, 5)  # damaged on the disk: fetched again, of the commit that is remembered
    assert fetch("small", store).model == f"{SMALL}@{COMMIT[:8]}"
    assert (add_model("small", store=store).folder / "model.bin").read_bytes() == WHISPER["model.bin"]


def test_what_prevents_a_download_is_named_before_it(hub, store, monkeypatch):
    hub.add(SMALL, WHISPER, gated=True)
    with pytest.raises(ModelError, match=rf"accept them at {hub.url}/{SMALL}, then log in"):
        fetch("small", store)
    hub.add(SMALL, WHISPER)
    hub.sizes["model.bin"] = 10**15
    with pytest.raises(
        ModelError, match=r"needs 1,000,000,\d+ MB in .* are free; nothing was downloaded; .*HF_HOME"
    ):
        fetch("small", store)
    hub.sizes.clear()
    with pytest.raises(ModelError, match="allow_download = false"):
        fetch("small", store, allow_download=False)
    assert not hub.fetched
    hub.failing["model.bin"] = 403
    with pytest.raises(ModelError, match="answered HTTP 403"):
        fetch("small", store)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://user:secret@127.0.0.1:9")
    with pytest.raises(ModelError, match=r"http://127\.0\.0\.1:9 cannot be reached") as failure:
        fetch("small", store)
    assert "secret" not in str(failure.value)


def test_a_damaged_download_is_fetched_once_more(hub, store):
    hub.add(SMALL, WHISPER)
    hub.damaged.add("model.bin")
    with pytest.raises(ModelError, match=r"'model\.bin' .* damaged twice"):
        fetch("small", store)
    assert hub.fetched.count("model.bin") == 2
    hub.damaged.clear()
    assert (add_model("small", store=store).folder / "model.bin").read_bytes() == WHISPER["model.bin"]


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
        ("o/n:F16", ["big/qwen-F16-00001-of-00002.gguf", "big/qwen-F16-00002-of-00002.gguf"]),
    ],
)
def test_one_gguf_file_is_fetched_with_its_parts(name, fetched, hub, store):
    hub.add("o/n", FILES)
    assert list(add_model(name, engine="llama", store=store).items) == fetched
    assert sorted(hub.fetched) == sorted(item.rpartition("/")[2] for item in fetched)


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


@pytest.mark.parametrize(
    ("lines", "problem", "is_unfetched"),
    [
        (["whisper", "model = 'small'"], "", True),
        (["whisper", "model = 'small'", "allow_download = false"], "allow_download = false forbids", False),
        (["whisper", "model = 'FOLDER'"], "is not a CTranslate2 Whisper model: it lacks", False),
        (["gemma", "device = 'cuda:9'"], "there is no device 'cuda:9'", False),
    ],
)
def test_status_makes_an_engine_before_it_is_ready(lines, problem, is_unfetched, tmp_path, monkeypatch):
    path, (engine, *options) = tmp_path / "engines.toml", lines
    text = "\n".join(["[engines.mine]", f"engine = '{engine}'", *options, ""])
    path.write_text(text.replace("FOLDER", tmp_path.as_posix()))
    monkeypatch.setenv("SPEECHLAB_ENGINES", str(path))
    state = status("mine", store=ModelStore(tmp_path))
    if state.missing_modules or state.missing_models:
        pytest.skip(state.remedy)
    assert problem in state.problem
    assert (state.ready, state.is_unfetched) == (not problem, is_unfetched)


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


def test_refusals_of_repositories(hub, store, tmp_path):
    """Before their files are downloaded."""

    def find(engine, files, name="o/n", **options):
        hub.add(name.partition(":")[0], files)
        create(engine, model=name, store=store, **options).find_model()

    def without(*names):
        return {name: data for name, data in WHISPER.items() if name not in names}

    names = {"find": find, "without": without, "whisper": WHISPER, "gguf": FILES, "kokoro": KOKORO}
    check_refusals(Path(__file__).with_name("refusals.md"), "repositories", folder=tmp_path, **names)
    assert not {"model.bin", "model.onnx"} & set(hub.fetched)
    with pytest.raises(ConfigurationError, match="compute_type='float17' is not known on the device 'cpu'"):
        find("whisper", WHISPER, compute_type="float17")
    hub.add(SMALL, WHISPER)
    with pytest.raises(ModelError, match=r"does not know the languages \['xx'\]; it knows de, en, ja, yue"):
        fetch("small", store, languages=["ja", "xx"])
    for name, reason in (("o/n@nope", "no revision 'nope'"), ("o/nothing", "does not exist, or is private")):
        with pytest.raises(ModelError, match=reason):
            fetch(name, store)


# Files of models that end early, as after an interrupted copy: refused before they are loaded


def pack_text(layout, text):
    return struct.pack(f"<{layout}", len(text)) + text


def pack_ctranslate2():
    variable = pack_text("H", b"encoder\0") + struct.pack("<B2IBI", 2, 3, 4, 0, 48) + bytes(48)
    alias = pack_text("H", b"a\0") + pack_text("H", b"encoder\0")
    head = struct.pack("<I", 6) + pack_text("H", b"WhisperSpec\0") + struct.pack("<II", 3, 1)
    return head + variable + struct.pack("<I", 1) + alias


def pack_gguf():
    words = struct.pack("<IIQ", 9, 8, 2) + pack_text("Q", b"a") + pack_text("Q", b"bc")
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 2) + pack_text("Q", b"tokens") + words
    head += pack_text("Q", b"general.alignment") + struct.pack("<II", 4, 64)
    head += pack_text("Q", b"weights") + struct.pack("<I2QIQ", 2, 256, 2, 12, 0)
    return head + bytes(-len(head) % 64) + bytes(2 * 144)


@pytest.mark.parametrize(
    ("engine", "name", "data"),
    [("whisper", "model.bin", pack_ctranslate2()), ("llama", "a.gguf", pack_gguf())],
)
def test_a_file_that_ends_early_is_refused_before_it_is_loaded(engine, name, data, tmp_path):
    for other, content in (WHISPER if engine == "whisper" else {}).items():
        (tmp_path / other).write_bytes(content)
    for length in (len(data), *range(0, len(data), 17), len(data) - 1):
        (tmp_path / name).write_bytes(data[:length])
        made = create(engine, model=str(tmp_path))
        if length == len(data):
            made.find_model()
            continue
        with pytest.raises(
            ModelError, match=f"the model '{tmp_path}' cannot be used: .* is not a whole model"
        ):
            made.find_model()
