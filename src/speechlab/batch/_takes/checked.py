"""A batch of speech whose lines are checked: recognized, measured, and spoken again where something is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing, require_columns
from speechlab._pandas import pd
from speechlab._traces import warn_user
from speechlab.batch._options import CallingOptions, CheckingOptions, check_and_sort_options
from speechlab.batch._outcome import UNRECOGNIZED, find_user_stacklevel, suppress_failure_warnings
from speechlab.batch._plan.columns import build_column, collect_result_columns
from speechlab.batch._plan.parameters import Column, SynthesisParameters, Value, split_columns_and_values
from speechlab.batch._plan.source import Partitions, Table, open_source
from speechlab.batch._plan.steps import SynthesisStep
from speechlab.batch._process import plan_table, process_table
from speechlab.batch._store_options import CHUNK_ROWS, KeepingOptions, use_store
from speechlab.batch._table.assemble import RUN_ATTRIBUTE, join_frames, to_requested_form
from speechlab.batch._takes.judge import Judge
from speechlab.batch._takes.lines import AGAIN, CUT, FALLBACK, LineTake, ScriptLine
from speechlab.batch._takes.record import record_takes
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError
from speechlab.text import language_code, list_language_codes, parse_primary_language

if TYPE_CHECKING:
    from speechlab.client import Client

# Columns that a check adds, and their types.
_COLUMNS = {"transcript": "string", "take": "Int64", "takes": "Int64", "check": "category", "why": "string"}
_TEXT = "speechlab: text of the take"
_SPENT = ("attempts", "usage_characters", "usage_audio_s", "usage_tokens")
_NOT_TAKEN = "not taken again"
_MAX_REASON = 200  # of a recognizer that failed, in a warning
# The temperature of another take, by its number from 1 on: a voice may read by its temperature alone, so that each
# take has one of its own, and none the 0.5 that is usual.
_TEMPERATURES = (0.1, 1.0, 0.7, 0.4)


def synthesize_with_check(lab: Client, frame: Table, given: Mapping[str, Any]) -> pd.DataFrame:
    """Synthesize each row, check it, and make other takes of what is wrong; see ``speechlab.batch.synthesize``."""
    lists = SynthesisParameters, KeepingOptions, CallingOptions, CheckingOptions
    parameters, keeping, calling, checking = check_and_sort_options("synthesize", given, *lists)
    source = open_source(frame, "text")
    if isinstance(source.frames, Partitions):
        message = "check= compares all lines of a voice, and no table of Dask is whole; give frame.compute()"
        raise InvalidRequestError(message, parameter="check")
    if source.series and parameters["text"] == "text":
        parameters = {**parameters, "text": source.columns[0]}
    pieces = list(source.iter_pieces(CHUNK_ROWS))
    whole = pieces[0] if len(pieces) == 1 else pd.concat(pieces) if pieces else pd.DataFrame()
    new = [keeping["prefix"] + name for name in _COLUMNS]
    if taken := [name for name in new if name in whole.columns]:
        message = f"the table already has {', '.join(map(repr, taken))}; give this step a prefix"
        raise InvalidRequestError(message, parameter="prefix")
    with use_store(keeping["store"]) as store:
        speaking = {**parameters, **keeping, **calling, "store": store, "columns": "all"}
        # what the lines cost is for the speech, and a row without a transcript is reported
        judge = Judge(checking["check"], {**calling, "store": store, "budget": None, "on_error": "row"})
        if checking["fallback_voice"] is not None:  # one that is not there is refused before anything is paid
            planning = {**parameters, **keeping, "store": store, "voice": checking["fallback_voice"]}
            with suppress_failure_warnings():  # the first take warns
                plan_table(lab, SynthesisStep, whole.iloc[:0], planning)
        table = CheckedTakes(lab, whole, speaking, checking, judge).make_table()
    return to_requested_form(table, source, keeping["prefix"], keeping["columns"])


class CheckedTakes:
    """The takes of a table: made in rounds, each of the lines that still need one."""

    def __init__(
        self,
        lab: Client,
        whole: pd.DataFrame,
        speaking: Mapping[str, Any],
        checking: CheckingOptions,
        judge: Judge,
    ) -> None:
        self._lab, self._whole, self._speaking, self._judge = lab, whole, speaking, judge
        self._most, self._fallback = checking["takes"], checking["fallback_voice"]
        self._prefix, self._budget, self._store = (speaking[name] for name in ("prefix", "budget", "store"))
        self._lines = _read_lines(whole, speaking["text"], checking["language"])
        self._pieces: list[pd.DataFrame] = []
        self._owners: list[int] = []
        self._runs: list[str] = []  # none in a store that is only read
        self._varies: dict[str, bool] = {}  # whether a voice has other readings
        self._stopped = ""

    def make_table(self) -> pd.DataFrame:
        """Make all takes, and return the table with the best of each line."""
        self._take(self._lines, "", 0)
        while rounds := self._plan_round():
            for (way, number, _), lines in rounds.items():
                self._take(lines, way, number)
        if left := sum(line.ended.startswith(_NOT_TAKEN) for line in self._lines):
            text = f"{format_count(left, 'line')} {_NOT_TAKEN}: {self._stopped}"
            warn_user(text, stacklevel=find_user_stacklevel())
        if reasons := [
            line.best.unjudged.removeprefix(UNRECOGNIZED)
            for line in self._lines
            if line.takes and line.best.unjudged.startswith(UNRECOGNIZED)
        ]:
            of = f"{len(reasons):,} of {format_count(len(self._lines), 'line')}"
            text = f"the recognizer failed for {of}: {reasons[0][:_MAX_REASON]}"
            warn_user(text, stacklevel=find_user_stacklevel())
        return self._join_best_takes()

    def _plan_round(self) -> dict[tuple[str, int, str], list[ScriptLine]]:
        """Return lines that need a take, by its way and number and their voice, whose first line tries a way."""
        rounds: dict[tuple[str, int, str], list[ScriptLine]] = {}
        tried = set()
        for line in self._lines:
            if not line.needs_take or len(line.ways) >= self._most:
                continue
            way = "" if self._stopped else self._choose_way(line)
            voice = line.takes[0].voice
            if self._stopped:
                line.ended = f"{_NOT_TAKEN}: {self._stopped}"
            elif not way:
                line.ended = "its voice reads it in one way"
            elif way != AGAIN or voice in self._varies or voice not in tried:
                tried.add(voice)
                rounds.setdefault((way, len(line.ways), voice), []).append(line)
        return rounds

    def _choose_way(self, line: ScriptLine) -> str:
        """Return the way to the next take of a line; empty for no other take."""
        can_fall_back = self._fallback is not None and FALLBACK not in line.ways
        alike = line.is_alike_in_every_take
        if can_fall_back and (alike or len(line.ways) == self._most - 1):
            return FALLBACK
        if not alike and self._varies.get(line.takes[0].voice, True):
            return AGAIN
        if not alike and line.next_cut is not None:
            return CUT
        return FALLBACK if can_fall_back else ""

    def _take(self, lines: Sequence[ScriptLine], way: str, number: int) -> None:
        """Have lines spoken in one way, and judge what comes."""
        again = {"repeat": self._speaking["repeat"] + number}
        temperature = Value(_TEMPERATURES[number % len(_TEMPERATURES)])
        changes: dict[str, dict[str, Any]] = {
            AGAIN: {**again, "temperature": temperature},
            CUT: {"text": Column(_TEXT)},
            FALLBACK: {"voice": self._fallback},
        }
        try:
            table = self._speak(lines, changes.get(way, {}))
        except InvalidRequestError:
            if way != AGAIN:
                raise
            table = self._speak(lines, again)  # its voice has no temperature
        place, spoken = len(self._owners), []
        self._pieces.append(table)
        self._owners += [line.position for line in lines]
        status, audio, keys = (table[self._prefix + name].tolist() for name in ("status", "audio", "key"))
        stored = self._store.get_many([key for key in keys if isinstance(key, str)])
        for at, line in enumerate(lines):
            if status[at] == "cancelled" and way:
                line.ended = f"{_NOT_TAKEN}: {self._stopped}"
                continue
            line.ways.append(way)
            if status[at] in ("ok", "cached"):
                request = stored[keys[at]].request if keys[at] in stored else {}
                voice, sent = str(request.get("voice_id") or request.get("voice") or ""), request.get("text")
                spoken.append(
                    (line, LineTake(place + at, len(line.ways) - 1, audio[at], voice, str(sent or "")))
                )
        if not way:
            self._fill_languages(spoken)
        self._judge.judge_takes(spoken)
        for line, _ in spoken:
            first, last = line.takes[0], line.takes[-1]
            if way == AGAIN:
                self._varies[first.voice] = self._varies.get(first.voice, False) or first.audio != last.audio

    def _speak(self, lines: Sequence[ScriptLine], changes: Mapping[str, Any]) -> pd.DataFrame:
        rows, options = self._whole, {**self._speaking, **changes, "budget": self._budget}
        if self._pieces:  # rows that failed are in the table with their first take
            rows = rows.iloc[[line.position for line in lines]]
            options["on_error"] = "row"
        if "text" in changes:
            cuts: list[Any] = [line.next_cut for line in lines]
            rows = rows.assign(**{_TEXT: cuts})
        with suppress_failure_warnings() if self._pieces else nullcontext():
            table = process_table(self._lab, SynthesisStep, rows, options)
        self._count_spending(table.attrs.get(RUN_ATTRIBUTE))
        return table

    def _fill_languages(self, spoken: Sequence[tuple[ScriptLine, LineTake]]) -> None:
        """Give lines without a language that of their voice, if it has one only."""
        unknown = [(line, take.voice) for line, take in spoken if line.language is None]
        voices = {voice.id: voice.language for voice in self._lab.voices()} if unknown else {}
        for line, voice in unknown:
            codes = list_language_codes(voices.get(voice, ""))
            line.language = next(iter(codes)) if len(codes) == 1 else None

    def _count_spending(self, run: object) -> None:
        """Note whether a run stopped, and what is left of the budget."""
        if not isinstance(run, str):
            return
        self._runs.append(run)
        manifest = self._store.run(run).manifest
        limits = {name: getattr(self._budget, name, None) for name in manifest["usage"]}
        left = {
            name: max(limits[name] - spent, 0) for name, spent in manifest["usage"].items() if limits[name]
        }
        self._budget = self._budget and replace(self._budget, **left)
        used_up = "" if all(left.values()) else "the budget is used up"
        self._stopped = self._stopped or str(manifest.get("reason") or "") or used_up

    def _join_best_takes(self) -> pd.DataFrame:
        """Return the rows with the best take of each, and what all of its takes cost."""
        prefix, table = self._prefix, self._pieces[0].copy()
        joined = join_frames(self._pieces, SynthesisStep, prefix)
        places = [line.best.place if line.takes else line.position for line in self._lines]
        spent = joined[[prefix + name for name in _SPENT]].groupby(self._owners).sum()
        for name in collect_result_columns(SynthesisStep):
            column = spent if name in _SPENT else joined.iloc[places]
            table[prefix + name] = column[prefix + name].array
        cells = [
            (line.best.transcript, line.best.number, len(line.ways), *line.judge())
            if line.takes
            else (None,) * 5
            for line in self._lines
        ]
        for at, (name, kind) in enumerate(_COLUMNS.items()):
            values = [None if row[at] == "" and name == "why" else row[at] for row in cells]
            table[prefix + name] = build_column(values, kind, table.index)
        table.attrs.pop(RUN_ATTRIBUTE, None)
        if self._runs:
            table.attrs[RUN_ATTRIBUTE] = record_takes(self._store, self._runs, table, prefix)
        return table


def _check_language(code: object, where: str) -> None:
    """Refuse what no recognizer takes for a language, before anything is paid."""
    try:
        known = language_code(code) if isinstance(code, str) else ""
    except InvalidRequestError:
        known = ""
    if not known or parse_primary_language(str(code)) != re.split("[-_]", str(code).strip().lower())[0]:
        advice = f"give {known!r}" if known else "give one of ISO 639-1, such as 'en' or 'ja'"
        message = f"{where} {code!r:.60}, which is no language code; {advice}"
        raise InvalidRequestError(message, parameter="language")


def _read_lines(whole: pd.DataFrame, text: Any, language: Any) -> list[ScriptLine]:
    """Return the rows as lines, each with its language, if the table or the call says it."""
    labels, name = whole.columns.tolist(), getattr(text, "name", text)
    language = Column("language") if language is None and "language" in labels else language
    given = split_columns_and_values({"language": language}, labels, ())
    column = given.columns.get("language")
    cells = whole[column].tolist() if given.columns else [given.same["language"]] * len(whole)
    codes = [None if is_missing(cell) or not str(cell).strip() else cell for cell in cells]
    for row, code in enumerate(codes if given.columns else codes[:1], 1):
        if code is not None:
            _check_language(code, f"row {row:,}: column {column!r} holds" if given.columns else "language is")
    texts = require_columns(whole, name)[name].tolist()
    return [
        ScriptLine(at, said if isinstance(said, str) else "", code)
        for at, (said, code) in enumerate(zip(texts, codes, strict=True))
    ]
