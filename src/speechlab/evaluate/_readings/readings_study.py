"""The study of readings: words that a voice misreads are found by round trips, respelled, and confirmed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

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
from speechlab.evaluate._speech.speech_rows import (
    HEAR,
    SPEAK,
    recognize_with_first_available,
    synthesize_rows_in_turns,
)
from speechlab.evaluate._study_arguments import check_whole_number, parse_language_code, resolve_columns
from speechlab.evaluate._writing.contents import Conclusion, Contents, ShownRows
from speechlab.evaluate._writing.record import RunOptions, StageProgress, build_record
from speechlab.text import Lexicon, LexiconEntry

if TYPE_CHECKING:
    from speechlab.client import Client
    from speechlab.contract import Voice
    from speechlab.store import Store

# Shares of all takes of all sentences: with a misread word recognized wrong, and with a spelling recognized right.
_MISREAD, _CONFIRMED = 0.8, 0.5
_COLUMNS = ["word", "language", "verdict", "spelling", "recognized", "respelled", "text", "audio", "spoken"]
_VERDICTS = _REPAIRED, _HEARD, _UNJUDGED = "repaired", "to be heard", "not judged"


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
    respell: Lexicon | None = None,
    takes: int = 2,
    words: int = 100,
    recognizer: Client | None = None,
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    progress: StageProgress = True,
    title: str = "Words that are misread",
) -> Report:
    """Find the words of texts that a voice misreads, and spellings by which it reads them right.

    Each text is spoken and recognized. A word that is recognized as another sound is spoken again in other sentences
    and takes, also in another spelling: kana of its dictionary reading in Japanese (for compounds that no dictionary
    has, of its characters), letters in English. A spelling is confirmed if it is recognized right in two sentences.
    If the spelling is recognized as the word itself was, the error is the recognizer's (*not judged*). What is not
    confirmed, and a word of several readings, is *to be heard*: ``report.rows()`` plays it.

    Args:
        lab: The client.
        frame: One row for each text, Japanese or English.
        voice: The voice, its id or its name.
        text: Column of the texts.
        language: Column of their languages, or a code for all of them.
        known: Right readings by word, such as ``{"鷲見": "スミ", "Siobhan": "shivawn"}``.
        respell: A lexicon that exists: its spellings are sent, and its words are not judged.
        takes: Number of times that each sentence of a suspected word is spoken.
        words: Maximum of suspected words that are spoken again: first those that no dictionary has.
        recognizer: The client that recognizes; None for ``lab``.
        store: Where results are kept and reused; None for the user's own store.
        concurrency: Maximum of calls at once.
        progress: As for :func:`round_trip`.
        title: Title of the report.

    Returns:
        A report: ``lexicon`` has the confirmed spellings, and those of ``respell``; ``table`` one row for each word,
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
    takes, words = check_whole_number("takes", takes, 1), check_whole_number("words", words)
    existing = Lexicon(respell or ())
    run = RunOptions(title, store, concurrency, None, None, progress)
    chosen = request_catalogue(lab, store).one(voice) if isinstance(voice, str) else voice
    rows, notes = _select_texts(frame[[text, language]], chosen)
    listen = partial(_speak_and_recognize, lab, recognizer or lab, chosen, run)
    first = listen("texts", rows.assign(sent=rows["text"]), 1, existing, notes)
    found, count = _find_suspects(first, given, {entry.word for entry in existing})
    suspects = sorted(found, key=lambda word: (not word.is_rare, -len(found[word]), word.text))
    if left := len(suspects[words:]):
        notes.append(f"{format_count(left, 'suspected word was', 'suspected words were')} not spoken again.")
    trials = _plan_trials(suspects[:words], found, existing, chosen)
    second = listen("suspected words", trials, takes, None, notes) if len(trials) else trials
    judged = [_judge_word(word, second[second["number"] == at]) for at, word in enumerate(suspects[:words])]
    table = pd.DataFrame([row for row in judged if row], columns=_COLUMNS)
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
            tables={"lexicon": Lexicon([*existing, *entries]).frame().rename(columns={"spoken": "spelling"})},
            columns={"text": "text", "language": "language"},
            shown=ShownRows(options={"columns": [name for name in _COLUMNS if name != "language"]}),
            record=build_record("readings", store, voice=chosen.short_name, takes=takes, words=words),
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
    stage: str,
    rows: pd.DataFrame,
    takes: int,
    respell: Lexicon | None,
    notes: list[str],
) -> pd.DataFrame:
    """Return the rows in each take with what was recognized; notes on those that failed are added."""
    tables = []
    rows = rows.assign(voice=voice.id)
    for take in range(takes):
        options: dict[str, Any] = {"text": "sent", "repeat": take, "respell": respell}
        arguments = run.to_batch_arguments(f"speak {stage}", f"take {take + 1}")
        spoken, _ = synthesize_rows_in_turns({"": (lab, rows)}, needed=True, **options, **arguments)
        table, refusals = recognize_with_first_available(
            {"": recognizer}, spoken[""], "language", **run.to_batch_arguments(f"recognize {stage}")
        )
        tables.append(table.rename(columns={f"{HEAR}hypothesis": "hypothesis"}))
        notes += refusals
    joined = pd.concat(tables, ignore_index=True)
    failed = joined[joined["hypothesis"].isna()]
    if len(failed):
        why = failed[f"{SPEAK}error"].fillna(failed[f"{HEAR}error"]).iloc[0]
        notes.append(f"{format_count(len(failed), 'call')} of {stage} failed, the first: {why}")
    return joined.dropna(subset=["hypothesis"])


def _find_suspects(
    rows: pd.DataFrame, known: Mapping[str, str], taken: Collection[str]
) -> tuple[dict[Word, list[str]], int]:
    """Return words that are mostly recognized as other sounds, with their texts; and how many words there are."""
    places: list[tuple[Word, str, str]] = []
    merged: dict[tuple[str, str], Word] = {}
    for text, code, answer in rows[["text", "language", "hypothesis"]].itertuples(index=False):
        for word in dict.fromkeys(list_words(text, code, known)):
            if word.text not in taken:
                places.append((word, text, answer))
                merged[word[:2]] = merged.get(word[:2], word).merge_readings(word)
    texts, rights = defaultdict[Word, list[str]](list), Counter[Word]()
    for part, text, answer in places:
        word = merged[part[:2]]
        texts[word].append(text)
        rights[word] += word.is_read_right(find_recognized(text, word, answer))
    return {word: of for word, of in texts.items() if rights[word] <= len(of) / 2}, len(texts)


def _plan_trials(
    words: Sequence[Word], found: Mapping[Word, list[str]], existing: Lexicon, voice: Voice
) -> pd.DataFrame:
    """Return sentences for each suspected word as it is, and in other spellings."""
    trials = []
    for number, word in enumerate(words):
        carriers = [carrier.format(word.text) for carrier in CARRIERS[word.language]]
        for text in [*found[word][:2], *carriers][:3]:
            for spelling in ("", *word.spellings):
                entry = [(word.language, word.text, spelling)] if spelling else []
                speech = Synthesize(text, voice=voice, respell=Lexicon([*existing, *entry]))
                trials.append((number, text, word.language, spelling, speech.sent_text))
    return pd.DataFrame(trials, columns=["number", "text", "language", "spelling", "sent"])


def _judge_word(word: Word, trials: pd.DataFrame) -> dict[str, Any] | None:
    """Return the row of a word that is misread, or that cannot be judged; None if it is read right."""
    answers = [
        find_recognized(text, word, answer)
        for text, answer in trials[["text", "hypothesis"]].itertuples(index=False)
    ]
    trials = trials.assign(recognized=answers, right=list(map(word.is_read_right, answers)))
    plain, respelled = trials[trials["spelling"] == ""], trials[trials["spelling"] != ""]
    if not len(plain) or plain["right"].mean() > 1 - _MISREAD:
        return None
    shares = respelled.groupby("spelling", sort=False)["right"].mean()
    best = str(shares.idxmax()) if len(shares) else ""
    tried = respelled[respelled["spelling"] == best]
    sentences = tried.loc[tried["right"], "text"].nunique()
    alike = {*zip(plain["text"], plain["recognized"], strict=True)} & {
        *zip(respelled["text"], respelled["recognized"], strict=True)
    }
    if any(map(word.has_kun_reading, plain["recognized"])):
        verdict = _HEARD
    elif sentences > 1 and shares.max() >= _CONFIRMED:
        verdict = _REPAIRED
    else:
        verdict = _UNJUDGED if len({text for text, _ in alike}) > plain["text"].nunique() / 2 else _HEARD
    cells = (word.text, word.language, verdict, best or " / ".join(word.readings))
    before = plain[~plain["right"]].iloc[0]
    after = tried[tried["text"] == before["text"]]
    sounds = (before["text"], before["audio"], after["audio"].iloc[0] if len(after) else None)
    heard = (before["recognized"], after["recognized"].iloc[0] if len(after) else "")
    return dict(zip(_COLUMNS, (*cells, *heard, *sounds), strict=True))
