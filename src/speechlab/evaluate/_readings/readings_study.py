"""The study of readings: words that a voice misreads are found by round trips, respelled, and confirmed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab import batch
from speechlab._arguments import build_argument_error
from speechlab._brief import shorten_tracebacks
from speechlab._pandas import pd
from speechlab.client import Synthesize
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._cast import request_catalogue, speaks
from speechlab.evaluate._readings.words import CARRIERS, Word, find_recognized, list_words
from speechlab.evaluate._repeat import record_request
from speechlab.evaluate._report import Report
from speechlab.evaluate._study_arguments import check_whole_number, parse_language_code, resolve_columns
from speechlab.evaluate._writing.contents import Conclusion, Contents, ShownRows
from speechlab.evaluate._writing.record import RunOptions, StageProgress, build_record
from speechlab.text import Lexicon, LexiconEntry

if TYPE_CHECKING:
    from speechlab.client import Client
    from speechlab.contract import Voice
    from speechlab.store import Store

# Spellings (0 is the word itself) in sentences (0 is a text of the table), by round. A word goes to the next one as
# long as its verdict is open.
_ROUNDS = (
    ((0, 1),),
    ((1, 0), (1, 1), (0, 2)),
    ((1, 2),),
    tuple((spelling, sentence) for spelling in (2, 3) for sentence in (0, 1, 2)),
)
_COLUMNS = ["word", "language", "verdict", "spelling", "recognized", "respelled", "text", "audio", "spoken"]
_VERDICTS = _REPAIRED, _HEARD, _UNJUDGED = "repaired", "to be heard", "not judged"


class _Trial(NamedTuple):
    """A sentence with a word in a spelling (empty for the word itself), what was recognized there, and the sound."""

    text: str
    spelling: str
    recognized: str
    audio: Any


@shorten_tracebacks
@record_request
def readings(
    lab: Client,
    frame: pd.DataFrame,
    voice: Voice | str,
    *,
    text: str = "text",
    language: str = "language",
    known: Mapping[str, str] | None = None,
    words: int = 100,
    recognizer: Client | None = None,
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    progress: StageProgress = True,
    title: str = "Words that are misread",
) -> Report:
    """Find the words of texts that a voice misreads, and spellings by which it reads them right.

    Each text is spoken and recognized; what is in the store from a batch costs nothing. A word that is recognized as
    another sound is spoken in other sentences, as it is and in another spelling: kana of its dictionary reading in
    Japanese (for compounds that no dictionary has, of its characters), letters in English. A spelling that is
    recognized right in two sentences is confirmed. What is recognized alike in both spellings is the recognizer's
    error (*not judged*); the rest, and a word of several readings, is *to be heard*: ``report.rows()`` plays it.

    Args:
        lab: The client.
        frame: One row for each text, Japanese or English.
        voice: The voice, its id or its name.
        text: Column of the texts.
        language: Column of their languages, or a code for all of them.
        known: Right readings by word, such as ``{"鷲見": "スミ", "Siobhan": "shivawn"}``.
        words: Maximum of suspected words that are spoken again: first those that no dictionary has.
        recognizer: The client that recognizes; None for ``lab``.
        store: Where results are kept and reused; None for the user's own store.
        concurrency: Maximum of calls at once.
        progress: As for :func:`round_trip`.
        title: Title of the report.

    Returns:
        A report: ``lexicon`` has the confirmed spellings; ``table`` one row for each word,
        with both sounds (``audio``, and ``spoken`` for the spelling).

    Raises:
        InvalidRequestError: A column is missing, an argument is not allowed, or the voice speaks none of the texts.
        AuthenticationError: The service refuses the API key.
    """
    frame, (text, language) = resolve_columns(frame, text=text, language=language)
    given: Any = known or {}
    if not isinstance(given, Mapping) or not all(
        isinstance(item, str) and item.strip() for pair in given.items() for item in pair
    ):
        raise build_argument_error("known", known, "a reading for each word, as in {'鷲見': 'スミ'}")
    words = check_whole_number("words", words)
    run = RunOptions(title, store, concurrency, None, None, progress)
    chosen = request_catalogue(lab, store).one(voice) if isinstance(voice, str) else voice
    rows, notes = _select_texts(frame[[text, language]], chosen)
    listen = partial(_speak_and_recognize, lab, recognizer or lab, chosen, run, notes)
    first = listen("texts", rows.assign(sent=rows["text"]))
    found, count = _find_suspects(first, given)
    suspects = sorted(found, key=lambda word: (not word.is_rare, -len(found[word]), word.text))
    if left := len(suspects[words:]):
        notes.append(f"{format_count(left, 'suspected word was', 'suspected words were')} not spoken again.")
    judged = _judge_suspects({word: found[word] for word in suspects[:words]}, chosen, listen)
    table = pd.DataFrame(judged, columns=_COLUMNS)
    counts = Counter(table["verdict"])
    confirmed = table.loc[table["verdict"] == _REPAIRED, ["language", "word", "spelling"]]
    entries = [
        LexiconEntry(code, word, spelling, chosen.short_name, note="confirmed by round trips")
        for code, word, spelling in confirmed.itertuples(index=False)
    ]
    return Report.of(
        Contents(
            title,
            table,
            pd.DataFrame({"verdict": _VERDICTS, "words": [counts[verdict] for verdict in _VERDICTS]}),
            _build_answer(counts, count, len(rows)),
            "readings",
            notes=tuple(notes),
            tables={"lexicon": Lexicon(entries).frame()},
            columns={"text": "text", "language": "language"},
            shown=ShownRows(options={"columns": [name for name in _COLUMNS if name != "language"]}),
            record=build_record("readings", store, voice=chosen.short_name, words=words),
        )
    )


def _select_texts(rows: pd.DataFrame, voice: Voice) -> tuple[pd.DataFrame, list[str]]:
    """Return the distinct texts that a voice speaks, with codes of their languages; and a note on the others."""
    rows = pd.DataFrame({"text": rows.iloc[:, 0], "language": rows.iloc[:, 1].map(parse_language_code)})
    is_usable = [
        isinstance(text, str) and bool(text.strip()) and code in CARRIERS and speaks(voice, code)
        for text, code in rows.itertuples(index=False)
    ]
    if not any(is_usable):
        message = f"{voice.short_name} speaks {voice.language or 'no language'}, and none of the texts is in ja or en"
        raise InvalidRequestError(f"{message} for it; give another voice or other texts", parameter="voice")
    others = len(rows) - sum(is_usable)
    note = "no text in Japanese or English that the voice speaks: left out."
    notes = [f"{format_count(others, 'row has', 'rows have')} {note}"] if others else []
    return rows[is_usable].drop_duplicates().reset_index(drop=True), notes


def _build_answer(counts: Mapping[str, int], words: int, texts: int) -> Conclusion:
    repaired, heard, unjudged = (counts[verdict] for verdict in _VERDICTS)
    on = f"On {format_count(words, 'word')} of {format_count(texts, 'text')}"
    certainty = f"{on}; the recognizer misses {unjudged:,} of them itself." if unjudged else f"{on}."
    if not repaired + heard:
        answer = "No word is shown to be misread." if words else "No word could be judged."
        return Conclusion(answer, certainty)
    misread = format_count(repaired + heard, "word is misread", "words are misread")
    parts = [f"{repaired:,} repaired"] if repaired else []
    parts += [f"{heard:,} {'needs' if heard == 1 else 'need'} an ear"] if heard else []
    return Conclusion(f"{misread}: {'; '.join(parts)}.", certainty)


def _speak_and_recognize(
    lab: Client,
    recognizer: Client,
    voice: Voice,
    run: RunOptions,
    notes: list[str],
    stage: str,
    rows: pd.DataFrame,
) -> pd.DataFrame:
    """Return the rows with what was recognized; a note on those that failed is added."""
    speak, recognize = (run.to_batch_arguments(f"{what} {stage}") for what in ("speak", "recognize"))
    with batch.suppress_failure_warnings():
        made = batch.synthesize(rows, lab, text="sent", voice=voice, prefix="said ", **speak)
        table = batch.transcribe(
            made, recognizer, audio="said audio", language="language", prefix="heard ", **recognize
        )
    table = table.rename(columns={"heard hypothesis": "hypothesis", "said audio": "audio"})
    failed = table[table["hypothesis"].isna()]
    if len(failed):
        why = failed["said error"].fillna(failed["heard error"]).iloc[0]
        notes.append(f"{format_count(len(failed), 'call')} of {stage} failed, the first: {why}")
    return table.dropna(subset=["hypothesis"])


def _find_suspects(rows: pd.DataFrame, known: Mapping[str, str]) -> tuple[dict[Word, list[_Trial]], int]:
    """Return words that are mostly recognized as other sounds, and where; and how many words there are."""
    merged: dict[tuple[str, str], Word] = {}
    places = defaultdict[tuple[str, str], list[_Trial]](list)
    columns = rows[["text", "language", "hypothesis", "audio"]]
    for text, code, answer, audio in columns.itertuples(index=False):
        for word in list_words(text, code, known):
            merged[word[:2]] = merged.get(word[:2], word).merge_readings(word)
            places[word[:2]].append(_Trial(text, "", find_recognized(text, word, answer), audio))
    suspects = {}
    for part, trials in places.items():
        wrong = [trial for trial in trials if not merged[part].is_read_right(trial.recognized)]
        if 2 * len(wrong) >= len(trials):
            suspects[merged[part]] = wrong
    return suspects, len(merged)


def _judge_suspects(
    suspects: Mapping[Word, list[_Trial]], voice: Voice, listen: Callable[..., pd.DataFrame]
) -> list[dict[str, Any]]:
    """Return the rows of words that are misread, or that cannot be judged, after as few trials as it takes."""
    trials = {word: [min(wrong, key=lambda trial: len(trial.text))] for word, wrong in suspects.items()}
    for number, pairs in enumerate(_ROUNDS, 1):
        asked: list[tuple[Word, str, str, str, str]] = []
        for word, of in trials.items():
            row = _judge_word(word, of)
            sentences = [of[0].text, *(carrier.format(word.text) for carrier in CARRIERS[word.language])]
            spellings = ["", *word.spellings]
            for at, sentence in pairs if row and row["verdict"] == _HEARD else ():
                if at < len(spellings):
                    entries = [(word.language, word.text, spellings[at])] if at else []
                    speech = Synthesize(sentences[sentence], voice=voice, respell=Lexicon(entries))
                    asked.append((word, speech.text, word.language, spellings[at], speech.sent_text))
        if asked:
            frame = pd.DataFrame(asked, columns=["word", "text", "language", "spelling", "sent"])
            answers = listen(f"suspected words, round {number}", frame)
            columns = answers[["word", "text", "spelling", "hypothesis", "audio"]]
            for word, text, spelling, answer, audio in columns.itertuples(index=False):
                trials[word].append(_Trial(text, spelling, find_recognized(text, word, answer), audio))
    return [row for word, of in trials.items() if (row := _judge_word(word, of))]


def _judge_word(word: Word, trials: Sequence[_Trial]) -> dict[str, Any] | None:
    """Return the row of a word that is misread, or that cannot be judged; None if it is read right."""
    plain = [trial for trial in trials if not trial.spelling]
    if any(word.is_read_right(trial.recognized) for trial in plain):
        return None
    respelled = [trial for trial in trials if trial.spelling]
    rights = Counter(trial.spelling for trial in respelled if word.is_read_right(trial.recognized))
    best = max(word.spellings, key=rights.__getitem__, default="")
    answers = {trial.text: trial.recognized for trial in plain}
    alike = [trial for trial in respelled if answers.get(trial.text) == trial.recognized]
    verdict = _UNJUDGED if 2 * len(alike) > len(respelled) else _HEARD
    if any(word.has_kun_reading(trial.recognized) for trial in plain):
        verdict = _HEARD
    elif rights[best] > 1:
        verdict = _REPAIRED
    before = plain[0]
    after = next((trial for trial in respelled if (trial.text, trial.spelling) == (before.text, best)), None)
    return {
        "word": word.text,
        "language": word.language,
        "verdict": verdict,
        "spelling": best or " / ".join(word.readings),
        "recognized": before.recognized,
        "respelled": after.recognized if after else "",
        "text": before.text,
        "audio": before.audio,
        "spoken": after.audio if after else None,
    }
