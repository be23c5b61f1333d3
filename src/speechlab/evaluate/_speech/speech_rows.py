"""Rows of a study of speech: recognized, scored, and joined in a report with rows that could not be processed.

Rows of several languages, such as ``ja+en``, are scored by the mixed error rate: characters in languages without
spaces between words, words in all others. Source: N. T. Vu et al., A first speech recognition system for
Mandarin-English code-switch conversational speech (ICASSP 2012).
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab._pandas import pd
from speechlab._platform import stack_tables
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.evaluate._study_arguments import find_language_codes, parse_language_code
from speechlab.evaluate._study_columns import REASON
from speechlab.evaluate._systems import UNUSABLE_ERRORS, process_in_turns, to_status_columns
from speechlab.metrics import score
from speechlab.text import characters, loops, normalizer, writes_without_spaces

if TYPE_CHECKING:
    from speechlab.client import Client
    from speechlab.store import Store


_CODES = "speechlab: language codes"
_PLACES = "speechlab: places"
# Prefixes of the columns of batches, which no column of a user has.
SPEAK, HEAR = "speechlab: spoken ", "speechlab: heard "
_NAMES = {f"{HEAR}{name}": name for name in ("hypothesis", "hypothesis_language", "confidence")}


def synthesize_rows_in_turns(
    tables: Mapping[str, tuple[Client, pd.DataFrame]], *, needed: bool, **how: Any
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Have each service speak the texts of its table with their voices; and why those could not that were lost."""
    options = {**how, "prefix": SPEAK}
    spoken, unreachable = process_in_turns(
        {
            name: batch.TableRequest("synthesize", lab, pairs, options)
            for name, (lab, pairs) in tables.items()
        },
        needed=needed,
    )
    names = ("audio", "duration_s", "sample_rate")
    return {
        system: out.assign(**{name: out[SPEAK + name] for name in names}) for system, out in spoken.items()
    }, unreachable


def recognize_rows_in_turns(
    systems: Mapping[str, tuple[Client, Mapping[str, Any]]],
    rows: pd.DataFrame,
    codes_of: str,
    *,
    needed: bool = True,
    **how: Any,
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Have systems recognize rows; where ``codes_of``, a column, has several languages they identify the language.

    Returns:
        The tables of the systems, and why others could not be asked.
    """
    coded = rows.assign(**{_CODES: rows[codes_of].map(parse_language_code)})
    requests = {}
    for name, (lab, options) in systems.items():
        # an option may be a single code, if all rows have the same language
        asked = {"language": batch.Column(_CODES), **how, **options, "audio": "audio", "prefix": HEAR}
        requests[name] = batch.TableRequest("transcribe", lab, coded, asked)
    tables, unreachable = process_in_turns(requests, needed=needed)
    return {name: table.drop(columns=_CODES) for name, table in tables.items()}, unreachable


def build_failed_rows(rows: pd.DataFrame, why: str | None) -> pd.DataFrame:
    """Return rows that no recognizer could process, in the form of failed rows of :func:`recognized`."""
    texts = dict.fromkeys(_NAMES, None)
    table = rows.assign(**texts, **{f"{HEAR}key": None, f"{HEAR}status": "error", f"{HEAR}error": why})
    table[f"{HEAR}answered_at"] = None
    table.attrs.clear()  # those of the batch of syntheses
    return table


def build_existing_rows(rows: pd.DataFrame, column: str, language: str) -> pd.DataFrame:
    """Return rows whose hypotheses exist, in the form of :func:`recognized`."""
    texts = rows[column].astype("string")
    languages = rows[language].where(texts.notna(), None)
    outputs = {"hypothesis": texts, "hypothesis_language": languages, **to_status_columns(texts)}
    table = build_failed_rows(rows, None).assign(
        **{f"{HEAR}{name}": cells for name, cells in outputs.items()}
    )
    return table.astype({f"{HEAR}confidence": "float64"})


def recognize_with_first_available(
    recognizers: Mapping[str, Client],
    rows: pd.DataFrame,
    language: str,
    *,
    first_choice: str = "",
    store: Store | str | None,
    **how: Any,
) -> tuple[pd.DataFrame, list[str]]:
    """Return the hypotheses of one recognizer: the first that can be asked until the end."""
    attempts: list[tuple[int, pd.DataFrame]] = []
    notes: list[str] = []
    for name, client in recognizers.items():
        table, why = _request_hypotheses(client, rows, language, store, **how)
        answered = int(table[f"{HEAR}status"].isin(["ok", "cached"]).sum())
        if why is None:
            notes += [f"{name} heard all voices in place of {first_choice}."] if name != first_choice else []
            return table, notes
        who = f"The recognizer of {name}" if name else "The recognizer"
        notes.append(f"{who} could not be asked{' any more' if answered else ''}: {why.rstrip('.')}.")
        attempts.append((answered, table))
    if rows["audio"].notna().any():
        notes.append("What was spoken is in the store, and the same call resumes from there.")
    return max(attempts, key=lambda attempt: attempt[0])[1], notes


def _request_hypotheses(
    lab: Client, rows: pd.DataFrame, language: str, store: Store | str | None, **how: Any
) -> tuple[pd.DataFrame, str | None]:
    """Return the hypotheses of a recognizer, and the reason if it could not be asked at all or until the end."""
    try:
        tables, _ = recognize_rows_in_turns({"": (lab, {})}, rows, language, store=store, **how)
    except UNUSABLE_ERRORS as error:
        return build_failed_rows(rows, f"not recognized: {error}"), str(error)
    table = tables[""]
    try:
        run = batch.load(table, store)
    except (StoreError, InvalidRequestError):  # the run was not recorded
        return table, None
    return table, str(run.manifest.get("reason")) if run.status == "stopped" else None


def score_rows(
    transcripts: pd.DataFrame,
    skipped: pd.DataFrame,
    columns: list[str],
    text: str,
    language: str,
    store: Store | str | None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Score the recognized rows, joined with the rows that were not spoken or not recognized; and their segments."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the rows of the report have the errors
        answered = transcripts[f"{HEAR}key"].notna()  # hypotheses that existed are in no store
        statuses = {f"{HEAR}status": transcripts[f"{HEAR}status"].where(answered, "skipped")}
        segments = batch.to_segments(transcripts.assign(**statuses), store, prefix=HEAR, audio="audio")
    tidy = _to_study_columns(transcripts, columns).assign(**{_PLACES: range(len(transcripts))})
    if faults := segments.attrs.get(batch.FAULTS_ATTRIBUTE):
        errors = tidy["error"].tolist()
        tidy["error"] = [faults.get(position, error) for position, error in enumerate(errors)]
    names = [*columns, *(name for name in ("voice", "voice_name", "gender") if name not in columns)]
    untried = skipped[names].assign(status=skipped.get("status", "skipped"), error=skipped.get(REASON))
    rows = stack_tables([tidy, untried]).sort_index(kind="stable").reset_index(drop=True)
    places = pd.Series(rows.index, index=rows.pop(_PLACES))
    places = places[places.index.notna()]  # without rows that were not recognized
    segments = segments.assign(position=places.reindex(segments["position"]).to_numpy(dtype="int64"))
    return rescore_rows(rows, text, language), segments


def rescore_rows(rows: pd.DataFrame, text: str, language: str) -> pd.DataFrame:
    """Score transcripts by the rules of their languages, mixed ones by words and characters; flag those that loop.

    A reference of signs alone, such as ``"..."``, is no reference.
    """
    references = rows[text]
    is_signs = references.map(is_only_punctuation).astype(bool)
    if is_signs.any():
        return rescore_rows(rows.assign(**{text: references.mask(is_signs)}), text, language).assign(
            **{text: references}
        )
    of_several = rows[language].map(is_multilingual).to_numpy(dtype=bool)
    tables = [
        score(
            rows[~of_several].assign(**{_CODES: rows.loc[~of_several, language].map(parse_language_code)}),
            reference=text,
            hypothesis="hypothesis",
            language=_CODES,
        ).drop(columns=_CODES)
    ]
    for codes, table in rows[of_several].groupby(to_language_codes(rows.loc[of_several, language])):
        mixed = score(
            table,
            reference=text,
            hypothesis="hypothesis",
            language="en",
            unit="word",
            normalize=build_multilingual_normalizer(codes),
        )
        # Characters of such a text would include the spaces between its tokens.
        tables.append(mixed.drop(columns=["cer", "char_errors", "char_length"], errors="ignore"))
    scored = tables[0]
    if len(tables) > 1:
        scored = pd.concat([table.astype({"unit": str, "signature": str}) for table in tables]).sort_index()
        for name in ("unit", "signature"):
            scored[name] = scored[name].where(scored["errors"].notna(), None).astype("category")
    repeats = [
        loops(hypothesis, reference if isinstance(reference, str) else "")
        if isinstance(hypothesis, str)
        else pd.NA
        for hypothesis, reference in zip(scored["hypothesis"], scored[text], strict=True)
    ]
    scored["loop"] = pd.array(repeats, dtype="boolean")
    return scored


def is_only_punctuation(text: object) -> bool:
    """Return whether a text has signs, but no letter and no digit."""
    return isinstance(text, str) and bool(text.strip()) and not any(map(str.isalnum, text))


def _to_study_columns(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Rename the columns of the batches to those of the study."""
    fine = ["ok", "cached"]
    unspoken = ~table[f"{SPEAK}status"].isin(fine)  # an error, or a batch that stopped before the row
    failed = unspoken | ~table[f"{HEAR}status"].isin(fine)
    from_store = table[f"{SPEAK}status"].isin(["cached"]) & (table[f"{HEAR}status"] == "cached")
    status = from_store.map({True: "cached", False: "ok"}).mask(failed, "error")
    table = table.assign(status=status, error=table[f"{HEAR}error"].mask(unspoken, table[f"{SPEAK}error"]))
    table = table.rename(columns=_NAMES)
    study_columns = ("voice", "voice_name", "gender", "audio", "duration_s", "sample_rate", *_NAMES.values())
    # of speech that was made for the study, when it was spoken
    table["answered_at"] = table[f"{SPEAK if f'{SPEAK}answered_at' in table.columns else HEAR}answered_at"]
    study_columns = (*study_columns, "status", "error", "answered_at")
    return table[[*columns, *(name for name in study_columns if name not in columns)]]


# Words of scripts with spaces between words.
_SPACED = re.compile(r"([^\W\d_⺀-鿿豈-﫿　-ヿ㐀-䶿가-힯]+(?:[ '’-]+[^\W\d_⺀-鿿豈-﫿　-ヿ㐀-䶿가-힯]+)*)")


def to_language_codes(values: pd.Series[Any]) -> pd.Series[Any]:
    """Return the codes of each row for grouping, for any type of the column."""
    return pd.Series([find_language_codes(value) for value in values], index=values.index, dtype="object")


def is_multilingual(value: object) -> bool:
    """Return whether a row has several languages."""
    return len(find_language_codes(value)) > 1


@cache
def build_multilingual_normalizer(languages: tuple[str, ...]) -> Callable[[str], str]:
    """Return a function that splits a text into tokens with spaces between them: words, and single characters.

    Each stretch is normalized by the rules of its own language, so that Japanese rules do not join English words.
    """
    dense = next((code for code in languages if writes_without_spaces(code)), None)
    spaced = next((code for code in languages if not writes_without_spaces(code)), None)
    words = normalizer(spaced if spaced == "en" else "basic")
    letters = normalizer(dense if dense in {"ja", "zh"} else "basic")

    def normalize(text: str) -> str:
        if dense is None:
            return words(text)
        stretches = _SPACED.split(unicodedata.normalize("NFKC", text))
        tokens = []
        for number, stretch in enumerate(stretches):
            tokens += words(stretch).split() if number % 2 else characters(letters(stretch).replace(" ", ""))
        return " ".join(tokens)

    normalize.__name__ = normalize.__qualname__ = f"mixed_{'_'.join(languages)}"
    return normalize
