"""Fonts for Japanese and Chinese: those of the system, that of the extra, and advice where there is neither."""

import sys
from dataclasses import replace
from io import BytesIO

import pytest
from matplotlib import font_manager
from matplotlib.font_manager import fontManager

from speechlab import plots, segments

FONT = str(pytest.importorskip("noto_cjk_sans_otc", reason="pip install 'speechlab[fonts]'").FONT_PATH)
SAID = segments.frame([(0, 1, "今日は、ＯＫ！")])


@pytest.fixture(autouse=True)
def system(monkeypatch):
    """The font files of the system: none, and matplotlib listed none in its first run."""
    system = []
    listed = [font for font in fontManager.ttflist if "CJK" not in font.name]
    monkeypatch.setattr(fontManager, "ttflist", listed)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: system)
    return system


@pytest.fixture
def without_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "noto_cjk_sans_otc", None)


def families(**options):
    """The families of a figure that is drawn; a letter without a glyph is a warning, and so an error."""
    figure = plots.timeline({"said": SAID}, **options)
    figure.savefig(BytesIO(), format="svg")
    return figure.axes[-1].texts[0].get_fontfamily()


def test_the_font_of_the_extra_is_used_without_another():
    assert families()[:2] == ["DejaVu Sans", "Noto Sans CJK JP"]
    assert families(language="zh")[1] == "Noto Sans CJK SC"
    assert FONT in [font.fname for font in fontManager.ttflist]


@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")  # matplotlib names each letter
def test_a_font_that_was_installed_later_is_found(system, without_extra, tmp_path):
    plots.timeline({"said": segments.frame([(0, 1, "Straße – 😀 №1")])})  # which needs none
    words = r"no font for '、は今日！ＫＯ' was found.* boxes are drawn; .* pip install 'speechlab\[fonts\]'"
    with pytest.warns(UserWarning, match=words):
        plots.timeline({"said": SAID})
    (tmp_path / "broken.otf").write_bytes(b"no font")
    (tmp_path / "noto.ttc").symlink_to(FONT)
    system += [str(tmp_path / "broken.otf"), str(tmp_path / "noto.ttc")]
    assert families()[1] == "Noto Sans CJK JP"


def test_a_font_that_was_removed_is_not_used():
    gone = replace(fontManager.ttflist[0], name="Noto Sans CJK JP", fname="/removed/NotoSansCJK-Regular.ttc")
    fontManager.ttflist.append(gone)
    assert families()[1] == "Noto Sans CJK JP"
    assert gone not in fontManager.ttflist
