"""What lexicons, languages and normalizers refuse, in words: ``refusals.md``."""

from pathlib import Path

from speechlab import text
from speechlab.text import Lexicon
from support.texts import check_refusals


def test_refusals_of_texts(tmp_path):
    def read(content):
        data = content if isinstance(content, bytes) else f"language,word,spoken\n{content}".encode()
        (tmp_path / "lexicon.csv").write_bytes(data)
        return Lexicon.read(tmp_path / "lexicon.csv")

    names = {name: getattr(text, name) for name in ("Lexicon", "language_code", "normalizer")}
    names |= {"read": read, "here": tmp_path}
    check_refusals(Path(__file__).with_name("refusals.md"), "texts", folder=tmp_path, **names)
    assert [path.name for path in tmp_path.iterdir()] == ["lexicon.csv"]
