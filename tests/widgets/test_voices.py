"""The explorer of voices as Python sees it, over a service whose voices are tones or fail."""

import threading
import time

import ipywidgets
import pandas as pd
import pytest

import speechlab as sl
from speechlab import metrics
from speechlab.widgets import VoiceExplorer


@pytest.fixture
def explorer(voices_lab):
    return VoiceExplorer(voices_lab)


def button(explorer, name):
    buttons = [one for one in explorer._controls if isinstance(one, ipywidgets.Button)]
    return next(one for one in buttons if one.description.startswith(name))


def told(explorer):
    return explorer._controls[-1].value


def sound_of(explorer, row):
    return explorer._rows.sounds.read_clip(row)


def test_the_catalogue_is_a_table_that_has_cost_nothing_yet(explorer, voices_lab):
    before = voices_lab.usage.synthesized_chars
    frame = explorer.frame
    assert frame["voice"].tolist()[:2] == ["tones: quiet", "tones: loud"]
    assert frame["audio"].isna().all()
    shown = [column["name"] for column in explorer.columns if column["shown"]]
    assert shown[:2] == ["voice", "description"]
    assert "languages" in shown
    assert "formats" not in shown  # all voices have the same
    assert "free" in told(explorer)
    assert voices_lab.usage.synthesized_chars == before


def test_voices_speak_and_one_that_fails_stops_no_other(explorer, voices_lab):
    whole = explorer.speak("Hello.", voices=["whole: loud"]).iloc[0]  # it does not stream
    assert (pd.isna(whole["error"]), whole["first_audible_s"]) == (True, whole["total_s"])
    before = voices_lab.usage.synthesized_chars
    rows = explorer.speak("Hello there.", voices=["quiet", "broken", "breaks-later", "both"])
    assert rows["voice"].str.removeprefix("tones: ").tolist() == ["quiet", "broken", "breaks-later", "both"]
    assert rows["audio"].notna().tolist() == [True, False, False, True]
    assert rows["characters"].fillna(0).tolist() == [12, 0, 0, 12]
    assert voices_lab.usage.synthesized_chars - before >= 24
    assert rows["error"].isna().tolist() == [True, False, False, True]
    assert "failed" in rows["error"].iloc[2] or "cut short" in rows["error"].iloc[2]
    heard = rows.loc[rows["audio"].notna()]
    assert (heard["first_audible_s"] > 0).all()
    assert "2 spoken. 2 failed: their rows say why." in told(explorer)
    pd.testing.assert_frame_equal(explorer.frame.iloc[rows.index], rows)


def test_clips_are_played_at_one_level_and_kept_as_they_came(explorer):
    rows = explorer.speak("Hello.", voices=["quiet", "tones: loud"])
    assert rows["loudness_lufs"].diff().abs().iloc[1] > 25
    played = metrics.speech_measures([sound_of(explorer, row) for row in rows.index])["loudness_lufs"]
    assert played.to_numpy() == pytest.approx([-23.0, -23.0], abs=0.1)
    explorer.equal_level = False
    assert sound_of(explorer, rows.index[0]) == rows["audio"].iloc[0]
    assert rows["audio"].iloc[0].peak == pytest.approx(0.02, abs=0.001)


def test_what_was_said_is_kept_and_not_asked_for_again(explorer, voices_lab):
    explorer.speak("One.", voices=["quiet"])
    before = voices_lab.usage.synthesized_chars
    explorer.text = "Two."
    assert explorer.frame["audio"].isna().all()  # another sentence, which nobody has said
    explorer.text = "One."
    assert explorer.frame["text"].iloc[0] == "One."
    explorer.speak(voices=["quiet"])
    assert voices_lab.usage.synthesized_chars == before
    explorer.text = ""  # a sample of the language
    rows = explorer.speak(voices=["quiet", "tones: loud"])
    assert [text[:5] for text in rows["text"]] == ["すみません", "Excus"]


def test_a_voice_is_stopped(explorer):
    stop = button(explorer, "Stop")

    def press(_):
        stop.unobserve(press, "disabled")
        threading.Thread(target=stop.click).start()

    stop.observe(press, "disabled")  # once it can be pressed
    rows = explorer.speak("Hello.", voices=["endless", "quiet"])
    assert rows["audio"].isna().all()
    assert explorer._rows.sounds.find_missing_reason(0).words == "stopped"
    assert explorer.speak(voices=["quiet"])["audio"].notna().all()  # and goes on when it is asked


def test_what_is_asked_for_after_a_stop_is_spoken(explorer):
    explorer.text = "Hello."
    explorer._start_speaking([5])  # the voice that never ends
    explorer.stop()
    assert explorer.speak(voices=["quiet"])["audio"].notna().all()
    assert explorer._rows.sounds.find_missing_reason(5).words == "stopped"


def test_a_service_that_is_gone_is_asked_once(voices_lab):
    events = []
    with sl.Client("http://127.0.0.1:9", api_key="k", max_retries=0, on_event=events.append) as gone:
        explorer = VoiceExplorer(gone, voices_lab.voices())
        # the thread that speaks is slow to tell its end
        button(explorer, "Stop").observe(lambda change: change.new and time.sleep(0.3), "disabled")
        rows = explorer.speak("Hello.", voices=list(explorer.catalogue)[:4])
    assert len({event.call_id for event in events}) == 1
    assert rows["error"].str.contains("check base_url").all()
    assert "4 failed" in explorer._controls[-1].value
    assert explorer._controls[2].disabled
    assert explorer._rows.sounds.find_missing_reason(0).makeable  # play asks again
