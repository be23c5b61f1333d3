"""The bundled data sets: the published files, and what prompts and recordings promise."""

import hashlib
import re
from pathlib import Path

import pytest
import soundfile

from speechlab.datasets import available, datasheet, prompts, zh_speech
from speechlab.errors import ConfigurationError

DATA = Path(__file__).parents[2] / "datasets"
FILES = {
    "prompts": ("DATASHEET.md", "LICENSE", "en.csv", "ja.csv", "zh.csv"),
    "zh-speech": (
        "DATASHEET.md",
        "manifest.csv",
        *(f"zh-0{n}.ogg" for n in (23, 25, 28, 36, 52, 54, 55, 57)),
    ),
}

LANGUAGES = ("ja", "en", "zh")


def hash_files(*names):
    """The hash of a list of hashes, as ``sha256sum`` writes it."""
    files = sorted((Path(name).name, (DATA / name).read_bytes()) for name in names)
    lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def test_available_lists_each_data_set_with_its_hash():
    frame = available()
    assert list(frame.columns) == ["name", "rows", "languages", "license", "version", "sha256"]
    assert frame["name"].tolist() == list(FILES)
    assert frame["sha256"].tolist() == [
        hash_files(*(f"{name}/{file}" for file in files)) for name, files in FILES.items()
    ]
    assert frame["rows"].tolist() == [len(prompts()), len(zh_speech())]
    assert frame["languages"].tolist() == ["ja,en,zh", "zh"]
    for name, version in zip(frame["name"], frame["version"], strict=True):
        text = datasheet(name)
        assert text.startswith("# Datasheet")
        assert all(words in text for words in (version, "## License", "## Limits"))


def test_files_that_are_gone_or_changed_are_refused(tmp_path, monkeypatch):
    installed, checkout = tmp_path / "_data", tmp_path / "datasets"
    places = "speechlab.datasets._load.resolve_data_root.__defaults__"
    monkeypatch.setattr(places, ((installed, checkout),))
    again = "pip install --force-reinstall"
    with pytest.raises(ConfigurationError, match=rf"looked at {installed} and {checkout}.*{again}"):
        prompts()
    (checkout / "prompts").mkdir(parents=True)
    (checkout / "prompts" / "ja.csv").write_text("id\nja-001\n", encoding="utf-8")
    changed = hashlib.sha256(b"id\nja-001\n").hexdigest()
    right = hashlib.sha256((DATA / "prompts" / "ja.csv").read_bytes()).hexdigest()
    with pytest.raises(
        ConfigurationError, match=f"has SHA-256 {changed}, but {right} was published.*{again}"
    ):
        prompts("ja")
    (installed / "prompts").mkdir(parents=True)  # an installed package is looked at first
    with pytest.raises(
        ConfigurationError, match=rf"{installed}.*en\.csv is missing from the data set 'prompts'"
    ):
        prompts("en")


def test_the_counts_of_the_datasheet_are_those_of_the_table():
    text = datasheet("prompts")
    counts = prompts().groupby(["category", "language"], observed=True).size()
    for category in counts.index.levels[0]:
        assert f"| {category} | {' | '.join(str(counts[category, code]) for code in LANGUAGES)} |" in text
    quick = " | ".join(str(len(prompts(code, quick=True))) for code in LANGUAGES)
    assert f"`quick` | {quick} |" in text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_japanese_readings_agree_with_openjtalk():
    openjtalk = pytest.importorskip("pyopenjtalk")
    frame = prompts("ja")
    differing = set()
    for row in frame.itertuples():
        spoken = re.sub("[^ァ-ヴー]", "", openjtalk.g2p(row.text, kana=True)).replace("ヲ", "オ")
        if spoken != row.reading:
            differing.add(row.id)
    noted = set(frame.loc[frame["note"].str.contains("OpenJTalk", na=False), "id"])
    assert differing == noted


def test_chinese_pinyin_has_one_syllable_for_each_character():
    for row in prompts("zh").itertuples():
        syllables = row.pinyin.split()
        for syllable in syllables:
            assert re.fullmatch("[a-zü]+[1-5]|[A-Z]+|Wi-Fi", syllable), (row.id, syllable)
        if not re.search("[0-9A-Za-z]", row.text):
            characters = len(re.findall("[一-鿿]", row.text)) - row.text.count("点儿")
            assert len(syllables) == characters, row.id


def test_chinese_is_simplified():
    opencc = pytest.importorskip("opencc")
    convert = opencc.OpenCC("t2s").convert
    for text in prompts("zh")["text"]:
        assert convert(text) == text


def test_filters_add_up_to_the_whole():
    whole = prompts()
    assert len(whole) == len(prompts(quick=True)) + len(prompts(quick=False))
    assert whole["id"].tolist() == [i for language in LANGUAGES for i in prompts(language)["id"]]
    frame = prompts("en")
    frame.loc[:, "text"] = "changed"  # a result belongs to the caller
    assert "changed" not in set(prompts("en")["text"])


def test_recordings_are_what_their_manifest_and_datasheet_say():
    frame, sheet, texts = zh_speech(), datasheet("zh-speech"), prompts("zh").set_index("id")["text"]
    assert " ".join(frame.columns) == "audio id language text voice license sha256 duration_s"
    paths = [Path(path) for path in frame["audio"]]
    for path, row in zip(paths, frame.itertuples(), strict=True):
        assert path.is_absolute()
        assert texts[row.id] == row.text
        assert f"| {row.id} | {row.voice} |" in sheet  # with its error rate
        assert hashlib.sha256(path.read_bytes()).hexdigest() == row.sha256
        samples, rate = soundfile.read(path)
        assert (rate, samples.ndim) == (24_000, 1)
        assert len(samples) / rate == pytest.approx(row.duration_s, abs=0.002)
