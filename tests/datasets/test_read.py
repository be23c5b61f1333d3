"""Data of one's own: manifests, folders as corpora are published, Hugging Face's data sets, samples."""

import gzip
import json
import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from speechlab import datasets
from speechlab.audio import AudioClip
from speechlab.errors import InvalidRequestError, MissingDependencyError
from speechlab.tables import read_pieces
from support.texts import check_refusals

COLUMNS = ["id", "audio", "text", "speaker", "language", "split"]


def sound(path, form=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    clip = AudioClip(np.full(1_600, 0.1, np.float32), 16_000)
    if form is None:
        clip.save(path)
    else:
        path.write_bytes(clip.encode(form))
    return path


def librispeech(root):
    for split, speaker, chapter, lines in (
        ("dev-clean", "84", "121123", ["GO DO YOU HEAR", "BUT IN LESS THAN FIVE MINUTES"]),
        ("test-other", "1688", "142285", ["THERE'S IRON"]),
    ):
        folder = root / "LibriSpeech" / split / speaker / chapter
        names = [f"{speaker}-{chapter}-{number:04d}" for number in range(len(lines))]
        for name in names:
            sound(folder / f"{name}.flac")
        text = "".join(f"{name} {line}\n" for name, line in zip(names, lines, strict=True))
        (folder / f"{speaker}-{chapter}.trans.txt").write_text(text)
    (root / "LibriSpeech" / "SPEAKERS.TXT").write_text(
        "; READER|GENDER|SUBSET|MINUTES|NAME\n84|F|dev-clean|8.02|x\n"
    )
    return root / "LibriSpeech"


def common_voice(root):
    top = root / "cv-corpus-23.0-2025-09-05" / "ja"
    heads = "client_id path sentence_id sentence sentence_domain up_votes down_votes "
    heads += "age gender accents variant locale segment"
    rows = {
        "train": [("a1", "common_voice_ja_1.mp3", '"引用"で始まる文。')],
        "dev": [("b2", "common_voice_ja_2.mp3", "二つ目。")],
        "test": [("c3", "common_voice_ja_3.mp3", 'He said "so'), ("c3", "common_voice_ja_4.mp3", "四つ目。")],
        "validated": [("a1", "common_voice_ja_1.mp3", "x")],
        "other": [("d4", "common_voice_ja_9.mp3", "y")],
    }
    for split, lines in rows.items():
        cells = [[who, path, "0f", said, "", "2", "0", "", "", "", "", "ja", ""] for who, path, said in lines]
        text = "\n".join("\t".join(row) for row in [heads.split(), *cells])
        (top / "clips").mkdir(parents=True, exist_ok=True)
        (top / f"{split}.tsv").write_text(text + "\n", "utf-8")
        for row in cells:
            sound(top / "clips" / row[1], "mp3")
    (top / "reported.tsv").write_text("sentence_id\tsentence\tlocale\treason\n", "utf-8")
    (top / "clip_durations.tsv").write_text("clip\tduration[ms]\ncommon_voice_ja_1.mp3\t100\n", "utf-8")
    return top


def cut_common_voice(root):
    """A file of which half was written."""
    top = common_voice(root)
    (top / "test.tsv").write_text((top / "test.tsv").read_text("utf-8").partition("\t0f")[0], "utf-8")
    return top


LAYOUTS = {one.__name__: one for one in (librispeech, common_voice)}
EXPECTED = {
    "librispeech": [
        ("84-121123-0000", "GO DO YOU HEAR", "84", "en", "dev-clean"),
        ("84-121123-0001", "BUT IN LESS THAN FIVE MINUTES", "84", "en", "dev-clean"),
        ("1688-142285-0000", "THERE'S IRON", "1688", "en", "test-other"),
    ],
    "common_voice": [
        ("common_voice_ja_2.mp3", "二つ目。", "b2", "ja", "dev"),
        ("common_voice_ja_3.mp3", 'He said "so', "c3", "ja", "test"),
        ("common_voice_ja_4.mp3", "四つ目。", "c3", "ja", "test"),
        ("common_voice_ja_1.mp3", '"引用"で始まる文。', "a1", "ja", "train"),
    ],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_folder_as_it_was_published(layout, tmp_path):
    top = LAYOUTS[layout](tmp_path)
    frame = datasets.read(top, layout=layout)
    pd.testing.assert_frame_equal(datasets.read(top), frame)
    assert list(frame) == COLUMNS
    found = frame.drop(columns="audio").astype("object").where(frame.drop(columns="audio").notna(), None)
    assert [tuple(row) for row in found.to_numpy()] == EXPECTED[layout]
    assert all(
        Path(path).is_absolute() and AudioClip.from_file(path).duration_s > 0 for path in frame["audio"]
    )
    pd.testing.assert_frame_equal(datasets.read(tmp_path), frame)
    split = EXPECTED[layout][0][-1]
    assert datasets.read(top, split=split)["split"].unique().tolist() == [split]
    with pytest.raises(InvalidRequestError, match="has no split 'nowhere'"):
        datasets.read(top, split=[split, "nowhere"])


def test_parts_of_corpora_are_read_and_what_is_gone_is_told(tmp_path):
    splits = datasets.read(common_voice(tmp_path), split="other")  # which overlaps with others
    assert splits["speaker"].tolist() == ["d4"]
    top = librispeech(tmp_path)
    assert datasets.read(top / "test-other")["split"].tolist() == ["test-other"]
    next(top.rglob("*.flac")).unlink()
    with pytest.warns(UserWarning, match="1 of 3 recordings are not there, the first: "):
        assert len(datasets.read(top)) == 3


def test_manifests(tmp_path):
    first = sound(tmp_path / "sounds" / "a.wav")
    said = ["None", 'tab\tand "quotes"']
    columns = {"audio_filepath": ["sounds/a.wav", str(first)], "sentence": said, "duration": [1.5, 2.0]}
    frame = pd.DataFrame({**columns, "client_id": ["007", None], "locale": ["en", "ja"]})
    frame.to_parquet(tmp_path / "manifest.parquet")
    for form in ("csv", "tsv", "parquet", "jsonl.gz"):
        path = tmp_path / f"manifest.{form}"
        if form != "parquet":
            rows = frame.to_json(orient="records", lines=True, force_ascii=False)
            text = rows if "jsonl" in form else frame.to_csv(index=False, sep="\t" if "tsv" in form else ",")
            data = ("\ufeff" + text).encode()
            path.write_bytes(gzip.compress(data) if form.endswith("gz") else data)
        found = datasets.read(path)
        assert list(found) == ["audio", "text", "speaker", "language", "duration_s"]
        assert found["audio"].tolist() == [str(first)] * 2
        assert found["text"].tolist() == said
        assert found["speaker"].tolist() == ["007", pd.NA]
        assert found["duration_s"].tolist() == [1.5, 2.0]


def test_columns_by_other_names(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("text,normalized,part\nA,a,test\nB,b,train\n")
    found = datasets.read(path, columns={"text": "normalized", "split": "part"}, language="en", split="train")
    assert found.to_dict("records") == [{"text": "b", "language": "en", "split": "train", "text_": "B"}]


def test_files_of_spreadsheets_are_read(tmp_path):
    for name, content in (
        ("m.csv", "audio,text\na.wav,精度\n".encode("utf-16")),
        ("m.csv", "\ufeffAudio , text\r\n\r\n a.wav ,精度\r\n".encode()),
        ("m.csv", "sep=;\r\naudio;text\r\na.wav;精度\r\n".encode()),
        ("m.json", '{"audio": ["a.wav"], "text": ["精度"]}'.encode()),
        ("m.csv", "\ufeffaudio\ttext\na.wav\t精度\n".encode("utf-16-be")),
        ("m.jsonl", '\ufeff{"audio": "a.wav", "text": "精度"}\r\n\r\n'.encode()),
    ):
        (tmp_path / name).write_bytes(content)
        path = sound(tmp_path / "a.wav")
        assert datasets.read(tmp_path / name).to_dict("records") == [{"audio": str(path), "text": "精度"}]


def test_refusals_of_data(tmp_path):
    def read(name, content, **options):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        return datasets.read(tmp_path / name, **options)

    (tmp_path / "empty").mkdir()
    names = {"datasets": datasets, "gzip": gzip, "read": read, "three": rows(a=3), "here": tmp_path}
    names |= {"librispeech": librispeech, "cut": cut_common_voice}
    check_refusals(Path(__file__).with_name("refusals.md"), "manifests", folder=tmp_path, **names)
    with pytest.raises(InvalidRequestError, match="cannot be read as parquet"):
        read("m.parquet", b"text")


def test_a_malformed_line_costs_itself(tmp_path):
    for name, content, fault in (
        ("m.jsonl", '{"text": "a"}\n{"text"\n{"text": "b"}\n', "line 2: "),
        ("m.json", '[{"text": "a"}, 3, {"text": "b"}]', "entry 2 is no object"),
        ("m.csv", 'text,speaker\na,x\n"no,y\nb,y\n', "line 3: this is not valid CSV"),
        ("m.tsv", "text\tspeaker\na\tx\nno\ty\tz\nb\ty\n", "line 3: it has 3 cells"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.warns(UserWarning, match=rf"{name}: left out: {fault}"):
            assert datasets.read(tmp_path / name)["text"].tolist() == ["a", "b"]


# Manifests of other tools


def json_lines(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def talk(path, seconds=10):
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = np.sin(np.arange(seconds * 8_000) ** 1.5 / 9_000).astype(np.float32) / 2
    return AudioClip(samples, 8_000).save(path)


OTHERS = {
    "nemo.json": json_lines({"audio_filepath": "a.wav", "text": "hello", "duration": 0.1}),
    "speechbrain.json": json.dumps({"u1": {"wav": "a.wav", "length": 0.1, "words": "hello", "spk_id": "7"}}),
    "placeholder.json": json.dumps({"u1": {"wav": "{data_root}/a.wav", "words": "hello"}}),
    "coqui.csv": "audio_file|text|speaker_name\na.wav|hello|x\n",
    "data.list": json_lines({"key": "u1", "wav": "a.wav", "txt": "hello"}),
    "fairseq.tsv": "id\taudio\tn_frames\ttgt_text\tspeaker\nu1\ta.wav\t20\thello\ts\n",
    "whisper.jsonl": json_lines({"audio": "a.wav", "sentence": "hello", "words": [{"word": "hello"}]}),
    "recordings.jsonl": json_lines(
        {"id": "r", "sources": [{"type": "file", "source": "a.wav"}], "duration": 0.1, "text": "hello"}
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_manifests_of_other_tools(name, tmp_path):
    path = sound(tmp_path / "a.wav")
    (tmp_path / name).write_text(OTHERS[name], "utf-8")
    read = datasets.read(tmp_path / name)
    assert read[["audio", "text"]].values.tolist() == [[str(path), "hello"]]
    assert read.get("id", pd.Series(["u1"]))[0] in {"u1", "r"}


def test_lists_of_fairseq_have_their_texts_beside_them(tmp_path):
    path = sound(tmp_path / "wav" / "a.wav")
    (tmp_path / "train.tsv").write_text(f"{tmp_path / 'wav'}\na.wav\t1600\n")
    (tmp_path / "train.wrd").write_text("今日は\n", "utf-8")
    read = datasets.read(tmp_path / "train.tsv")
    assert read.values.tolist() == [[str(path), "今日は"]]


def test_a_text_and_its_translation_are_told_apart(tmp_path):
    sound(tmp_path / "a.wav")
    (tmp_path / "st.tsv").write_text(
        "audio\tsrc_text\ttgt_text\tsrc_lang\ttgt_lang\na.wav\tyes\toui\ten\tfr\n"
    )
    read = datasets.read(tmp_path / "st.tsv").drop(columns="audio")
    wanted = {"text": "yes", "reference": "oui", "source_lang": "en", "target_lang": "fr"}
    assert read.to_dict("records") == [wanted]


def test_rows_with_offsets_are_segments_of_their_recordings(tmp_path):
    for name in ("talk.flac", "talk.mp3"):
        whole = AudioClip.from_file(talk(tmp_path / name))
        places = [(0.0, 4.0), (4.0, 1.5), (8, None), (0, 10), (None, 10)]
        rows = [
            {"audio_filepath": name, "offset": at, "duration": length, "text": "a"} for at, length in places
        ]
        del rows[2]["duration"]
        (tmp_path / "m.json").write_text(json_lines(*rows))
        read = datasets.read(tmp_path / "m.json")
        cells = read["audio"].tolist()
        assert cells == [whole.crop(0, 4), whole.crop(4, 5.5), whole.crop(8), *[str(tmp_path / name)] * 2]
        read.to_csv(tmp_path / "again.csv", index=False)
        assert datasets.read(tmp_path / "again.csv")["audio"].tolist() == cells


def test_starts_and_ends_are_segments_too(tmp_path):
    whole = AudioClip.from_file(talk(tmp_path / "talk.wav"))
    path = tmp_path / "m.csv"
    path.write_text("file,Start,end,text\ntalk.wav,1.5,2.25,a\n")
    read = datasets.read(path)
    assert read[["audio", "offset_s", "duration_s"]].values.tolist() == [[whole.crop(1.5, 2.25), 1.5, 0.75]]


def test_cuts_of_lhotse(tmp_path):
    whole = AudioClip.from_file(talk(tmp_path / "talk.wav"))
    said = [
        {"text": "one", "speaker": "ann", "language": "en"},
        {"text": "two", "speaker": "bob", "language": "en"},
    ]
    recording = {"id": "r", "sources": [{"type": "file", "channels": [0], "source": "talk.wav"}]}
    cut = {"id": "c", "start": 1.0, "duration": 2.5, "supervisions": said, "recording": recording}
    (tmp_path / "cuts.jsonl.gz").write_bytes(gzip.compress(json_lines(cut).encode()))
    read = datasets.read(tmp_path / "cuts.jsonl.gz")
    assert read["audio"].tolist() == [whole.crop(1, 3.5)]
    assert read[["id", "text", "language"]].values.tolist() == [["c", "one two", "en"]]
    assert "speaker" not in read


def test_segments_that_end_late_are_cut(tmp_path):
    whole = AudioClip.from_file(talk(tmp_path / "talk.wav"))
    path = tmp_path / "m.jsonl"
    rows = [{"audio": "talk.wav", "text": "a", "offset": at, "duration": 3} for at in (1, 8)]
    path.write_text(json_lines(*rows))
    words = (
        "1 of 2 segments end after their recordings, and are cut there: row 2 goes from 8 s to 11 s of 10 s"
    )
    with pytest.warns(UserWarning, match=words):
        read = datasets.read(path)
    assert read["audio"][1] == whole.crop(8)


def test_a_folder_with_one_manifest_is_that_manifest(tmp_path):
    path = sound(tmp_path / "audio" / "a.wav")
    (tmp_path / "manifest.csv").write_text("audio,text\naudio/a.wav,hello\n")
    (tmp_path / "settings.json").write_text("{}")
    assert datasets.read(tmp_path)["audio"].tolist() == [str(path)]
    (tmp_path / "notes.tsv").write_text("x\ty\n")
    assert datasets.read(tmp_path, columns={"speaker": "text"})["speaker"].tolist() == ["hello"]
    (tmp_path / "metadata.jsonl").write_text("{}")
    with pytest.raises(InvalidRequestError, match=r"as manifest\.csv or metadata\.jsonl or notes\.tsv there"):
        datasets.read(tmp_path)


def test_what_a_manifest_seems_to_lack_is_told(tmp_path):
    for content, words in (
        ("audio,said\na.wav,hi\n", ["no column of texts by a known name; .* give columns={'text': 'said'}"]),
        (
            "audio,text\na.wav,\n,hello\n",
            ["1 of 2 rows have no recording, the first: row 2", "rows have no text, the first: a.wav"],
        ),
        ("text,topic\nhello,food\n", []),
    ):
        sound(tmp_path / "a.wav")
        (tmp_path / "m.csv").write_text(content)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            datasets.read(tmp_path / "m.csv")
        assert len(caught) == len(words)
        assert all(re.search(one, str(warning.message)) for one, warning in zip(words, caught, strict=True))


# Samples


def rows(**sizes):
    return pd.DataFrame({"language": [name for name, size in sizes.items() for _ in range(size)]})


def test_a_sample_is_the_same_for_the_same_seed_and_in_order():
    frame = rows(ja=50, en=30, zh=20).sample(frac=1, random_state=1)
    one = datasets.sample(frame, 10, by="language", seed=3)
    assert one.equals(datasets.sample(frame, 10, by="language", seed=3))
    assert not one.index.equals(datasets.sample(frame, 10, by="language", seed=4).index)
    assert one["language"].value_counts().to_dict() == {"ja": 5, "en": 3, "zh": 2}
    places = [frame.index.get_loc(label) for label in one.index]
    assert places == sorted(places)


def test_strata_give_their_shares_or_equally_many():
    equal = datasets.sample(rows(a=100, b=2, c=50), 20, by="language", equal=True)
    assert equal["language"].value_counts().to_dict() == {"a": 9, "c": 9, "b": 2}
    for n in (0, 2, 7, 151, 152):
        assert len(datasets.sample(rows(a=100, b=2, c=50), n, by="language", equal=True)) == n
    missing = datasets.sample(pd.DataFrame({"x": ["a", None] * 10}), 10, by="x")
    assert missing["x"].isna().sum() == 5


# Hugging Face


def test_hugging_face_s_data_sets(tmp_path):
    pytest.importorskip("datasets.features", reason="needs the package datasets")
    from datasets import Audio, Dataset, DatasetDict, Features, IterableDataset

    path = sound(tmp_path / "a.wav")
    data = path.read_bytes()
    sounds = [{"path": str(path), "bytes": None}, {"path": "b.wav", "bytes": data}]
    table = Dataset.from_dict({"audio": sounds, "sentence": ["a", "b"]})
    table = table.cast_column("audio", Audio())
    frame = datasets.from_hugging_face(table, language="en")
    assert frame["text"].tolist() == ["a", "b"]
    assert [
        AudioClip.from_file(frame["audio"][0]).frames,
        AudioClip.from_bytes(frame["audio"][1]).frames,
    ] == [1_600] * 2
    table.info.version = "1.2.0"
    assert datasets.from_hugging_face(table).attrs == {"revision": "1.2.0"}
    both = datasets.from_hugging_face(DatasetDict(test=table, train=table))
    assert both["split"].tolist() == ["test", "test", "train", "train"]
    pieces = datasets.from_hugging_face({"test": table.to_iterable_dataset()}, chunk_rows=1)
    assert [piece["text"].tolist() for piece in pieces] == [["a"], ["b"]] == [list(p["text"]) for p in pieces]
    silence = {"audio": {"array": [0.0] * 80, "sampling_rate": 8_000}}
    made = IterableDataset.from_generator(lambda: iter([silence]), features=Features({"audio": Audio()}))
    assert AudioClip.from_bytes(datasets.from_hugging_face(made)["audio"][0]).frames == 80
    if find_spec("torchcodec") is None:
        with pytest.raises(InvalidRequestError, match="its recordings are decoded before they are read here"):
            datasets.from_hugging_face(made.map(lambda row: row))


def test_without_that_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingDependencyError, match="pip install datasets"):
        datasets.from_hugging_face(object())


def test_tsv_has_no_quotes(tmp_path):
    for content, texts in (
        (
            'a.wav\t"Hello there\nb.wav\tb\nc.wav\tc\nd.wav\tsaid "x"\n',
            ['"Hello there', "b", "c", 'said "x"'],
        ),
        ('a.wav\t"Hello\nb.wav\tb\nc.wav\nd.wav\tx"\n', ['"Hello', "b", None, 'x"']),
        ('a.wav\t"say\nyes"\nb.wav\tno\n', ["say\nyes", "no"]),
    ):
        for name in "abcd":
            (tmp_path / f"{name}.wav").touch()
        path = tmp_path / "list.tsv"
        path.write_text(f"audio\ttext\n{content}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a row without a text
            found = datasets.read(path)["text"]
        assert [None if pd.isna(text) else text for text in found] == texts
        pieces = list(read_pieces(path, 2, {"text"})) if None not in texts else []
        assert [text for piece in pieces for text in piece["text"]] == (texts if pieces else [])
