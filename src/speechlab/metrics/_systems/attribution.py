"""Attribution of errors to a voice, its engine, or causes that all voices share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from speechlab._arguments import is_missing, require_columns
from speechlab.display import table
from speechlab.errors import InvalidRequestError
from speechlab.metrics._columns import build_table
from speechlab.metrics._rates.tables import (
    Scorable,
    join_table_signatures,
    list_scored_rows,
    parse_signature,
    to_scored_table,
)
from speechlab.metrics._systems.causes import Cause, Take, assign_causes_to_takes
from speechlab.metrics._systems.chance import (
    ErrorPlace,
    compute_chance_probabilities,
    compute_variance_components,
    list_findings,
)

if TYPE_CHECKING:
    import pandas as pd

_ERRORS = {
    **dict.fromkeys(("voice", "engine", "language", "utterance"), "string"),
    **dict.fromkeys(("take", "start"), "Int64"),
    **dict.fromkeys(("reference", "hypothesis"), "string"),
    "errors": "Int64",
    **dict.fromkeys(("kind", "cause"), "category"),
    **dict.fromkeys(("share", "p_holm"), "Float64"),
    "at_end": "boolean",
}
_COUNTS = (
    *("shared_errors", "engine_errors", "own_errors"),
    *("homophone_errors", "number_errors", "spelling_errors"),
)
_VOICES = {
    **dict.fromkeys(("voice", "engine", "language", "unit"), "string"),
    **dict.fromkeys(("utterances", "takes", "reference_length", "errors", *_COUNTS, "homophones"), "Int64"),
    **dict.fromkeys(("error_rate", "shared_rate", "engine_rate", "own_rate"), "Float64"),
    **dict.fromkeys(("utterances_with_own", "endings_lost"), "Int64"),
    "worst_utterance": "string",
    **dict.fromkeys(("worst_share", "take_sd"), "Float64"),
}
_UTTERANCES = {
    **dict.fromkeys(("utterance", "language"), "string"),
    **dict.fromkeys(("voices", "takes", "reference_length", "errors", *_COUNTS), "Int64"),
    "error_rate": "Float64",
}
_VARIANCE = {
    **dict.fromkeys(("language", "unit"), "string"),
    **dict.fromkeys(("voices", "utterances"), "Int64"),
    **dict.fromkeys(("sd_voice", "sd_utterance", "sd_both", "sd_take"), "Float64"),
    **dict.fromkeys(("share_voice", "share_utterance", "share_both", "share_take"), "Float64"),
}


@dataclass(frozen=True, eq=False, repr=False)
class Attribution:
    """Errors of several voices on the same utterances, by cause and kind.

    Attributes:
        errors: One row for each run of errors: ``voice``, ``engine``, ``language``, ``utterance``, ``take`` (from 0),
            ``start`` (index of its first token in the reference), ``reference`` and ``hypothesis`` (its tokens),
            ``errors`` (their number), ``kind`` (``sound``, or ``homophone``, ``number`` or ``spelling`` for errors
            that is inaudible), ``cause`` (``shared``, ``engine``, ``own``), ``share`` (share of the other voices
            with an error there, where each engine counts once), ``p_holm`` (of shared errors and those of engines:
            probability that as many voices err at the first token by independent slips, each voice with its own
            rate; corrected by Holm's method over all tokens), ``at_end`` (whether the last token is left out).
        voices: One row for each voice and language, those with the lowest own rate first: ``utterances``, ``takes``
            (rows), ``reference_length`` (tokens of all takes); ``errors``, the sum of ``shared_errors``,
            ``engine_errors``, ``own_errors`` (all three of the kind ``sound``), ``homophone_errors``,
            ``number_errors`` and ``spelling_errors``; ``homophones`` (places with another word that sounds alike,
            also with readings as the unit, which ignore them); ``error_rate``, ``shared_rate``, ``engine_rate``,
            ``own_rate`` (fractions); ``utterances_with_own``, ``endings_lost`` (utterances whose last token only this
            voice leaves out), ``worst_utterance`` and ``worst_share`` (the utterance with the most own errors, and
            its share of them), ``take_sd`` (standard deviation between takes of the error rate of all repeated
            utterances together; missing without repeated takes).
        utterances: One row for each utterance, the one with the most shared errors first, with the same counts.
        variance: One row for each language with at least two voices and two utterances, about the error rate of one
            take of one utterance: the standard deviations between voices, between utterances, of their interaction
            and between takes (``sd_voice``, ``sd_utterance``, ``sd_both``, ``sd_take``), and their shares of the
            variance (``share_...``, fractions). Without repeated takes, ``sd_take`` is missing, and ``sd_both``
            includes it.
        signature: Signature of the scores.

    Example:
        >>> rows = pd.DataFrame(
        ...     {"voice": ["a", "b"], "text": ["hi there"] * 2, "hypothesis": ["hi there", "hi"]}
        ... )
        >>> attribute(rows, language="en").voices[["voice", "own_errors"]]
          voice  own_errors
        0     a           0
        1     b           1
    """

    errors: pd.DataFrame
    voices: pd.DataFrame
    utterances: pd.DataFrame
    variance: pd.DataFrame
    signature: str

    @property
    def findings(self) -> list[str]:
        """Notable patterns in sentences; the documentation has the rules."""
        return [*list_findings(self.errors, self.voices, self.utterances)]

    def __repr__(self) -> str:
        counts = {cause: int(self.voices[f"{cause}_errors"].sum()) for cause in ("shared", "engine", "own")}
        counts_text = ", ".join(f"{count} {cause}" for cause, count in counts.items())
        return f"<Attribution of {int(self.voices['errors'].sum())} errors: {counts_text}>"

    def _repr_html_(self) -> str:
        columns = self.voices[["voice", "language", "utterances", "errors", *_COUNTS]]
        rows = columns.astype(object).where(columns.notna(), "–").to_numpy().tolist()
        return str(table([name.replace("_errors", "") for name in columns.columns], rows))


def attribute(
    scored: Scorable, *, voice: str = "voice", utterance: str = "text", engine: str | None = None, **how: Any
) -> Attribution:
    """Separate the errors of voices from errors that a recognizer or normalizer makes for every voice.

    Each error is compared with the other voices at its place in the utterance. It is *shared* if most of them have an
    error there; otherwise the *engine*'s if most other voices of its engine have one; otherwise the voice's *own*.
    Errors of spelling only are counted separately: homophones, numbers and spellings.

    Own errors are an upper limit for the voice, because they include the recognizer's random errors.

    Args:
        scored: Result of :func:`score`, or a table without scores. Several rows of one voice and utterance are takes.
        voice: Column of the voices; or of the recognizers, to compare recognizers.
        utterance: Column that identifies the utterances.
        engine: Column of the voices' engines; None if all voices have the same engine.
        **how: Arguments of :func:`score` for a table without scores, such as ``unit="reading"``.

    Raises:
        InvalidRequestError: A column is missing, no row has scores, a voice has two engines, an utterance two
            references, or rows of one language were scored in different ways.

    Example:
        >>> import pandas as pd
        >>> said = ["it is late", "good morning all"]
        >>> recognized = {
        ...     "a": ["it is", "good all"],
        ...     "b": ["it is late", "good all"],
        ...     "c": ["it is late", "good all"],
        ... }
        >>> rows = [
        ...     {"voice": v, "text": s, "hypothesis": h}
        ...     for v in recognized
        ...     for s, h in zip(said, recognized[v])
        ... ]
        >>> attribute(pd.DataFrame(rows), language="en").voices[
        ...     ["voice", "shared_errors", "own_errors"]
        ... ].values.tolist()
        [['b', 1, 0], ['c', 1, 0], ['a', 1, 1]]
    """
    scored = to_scored_table(scored, None, how)
    scored = require_columns(
        scored, voice, utterance, *([] if engine is None else [engine]), argument="scored"
    )
    scored_rows = scored[scored["errors"].notna() & scored[voice].notna() & scored[utterance].notna()]
    if not len(scored_rows):
        message = (
            "no row has scores, so nothing can be attributed; look at 'score_error' and at the hypotheses"
        )
        raise InvalidRequestError(message, parameter="scored")
    signature = join_table_signatures(scored_rows)
    engines = _map_voices_to_engines(scored_rows, voice, engine)
    takes_of = _collect_takes(scored_rows, voice, utterance)
    faulty = {key: assign_causes_to_takes(takes, engines) for key, takes in takes_of.items()}
    lengths = {key: next(iter(takes.values()))[0].length for key, takes in takes_of.items()}
    rows: list[dict[str, Any]] = []
    for (language, label), voices in takes_of.items():
        for name, takes in voices.items():
            where = {"voice": name, "engine": engines[name] or None, "language": language, "utterance": label}
            for number, take in enumerate(takes):
                rows += [where | {"take": number} | run._asdict() for run in take.runs]
    places = [_get_shared_error_place(row) for row in rows]
    by_chance = compute_chance_probabilities([place for place in places if place], faulty, lengths, engines)
    for row, place in zip(rows, places, strict=True):
        row["p_holm"] = by_chance[place] if place else None
    return Attribution(
        errors=build_table(rows, _ERRORS),
        voices=_build_voice_table(takes_of, engines),
        utterances=_build_utterance_table(takes_of),
        variance=_build_variance_table(takes_of),
        signature=signature,
    )


_Key = tuple[str, str]  # language and utterance


def _map_voices_to_engines(done: pd.DataFrame, voice: str, engine: str | None) -> dict[str, str]:
    if engine is None:
        return dict.fromkeys(done[voice].astype(str), "")
    out: dict[str, str] = {}
    for name, its in zip(done[voice].astype(str), done[engine], strict=True):
        if is_missing(its):
            message = f"the voice {name!r} has a row without an engine; give each voice one"
            raise InvalidRequestError(message, parameter="engine")
        if out.setdefault(name, str(its)) != str(its):
            message = (
                f"the voice {name!r} has the engines {out[name]!r} and {str(its)!r}; give each voice one"
            )
            raise InvalidRequestError(message, parameter="engine")
    return out


def _collect_takes(done: pd.DataFrame, voice: str, utterance: str) -> dict[_Key, dict[str, list[Take]]]:
    takes_of: dict[_Key, dict[str, list[Take]]] = defaultdict(lambda: defaultdict(list))
    references: dict[_Key, str] = {}
    for name, label, row in zip(done[voice], done[utterance], list_scored_rows(done), strict=True):
        key = parse_signature(row.signature)["lang"], str(label)
        if references.setdefault(key, row.reference) != row.reference:
            message = (
                f"the utterance {label!r:.60} has two references, {references[key]!r:.60} and {row.reference!r:.60}; "
                "name a column that identifies utterances, as in utterance='id'"
            )
            raise InvalidRequestError(message, parameter="utterance")
        takes_of[key][str(name)].append(Take(row))
    return takes_of


_Takes = dict[_Key, dict[str, list[Take]]]  # the takes of each utterance by each voice


def _get_shared_error_place(row: dict[str, Any]) -> ErrorPlace | None:
    """Return the place of an error that most voices have, or most of an engine."""
    if row["cause"] == "own":
        return None
    engine = row["engine"] or "" if row["cause"] == "engine" else None
    return ErrorPlace((row["language"], row["utterance"]), row["start"], row["kind"] == "sound", engine)


def _count_errors(takes: Sequence[Take]) -> dict[str, Any]:
    """Return the reference tokens and the errors of some takes."""
    counts = dict.fromkeys(_COUNTS, 0)
    for run in (run for take in takes for run in take.runs):
        counts[f"{run.cause if run.kind == 'sound' else run.kind}_errors"] += run.errors
    length, errors = sum(take.length for take in takes), sum(counts.values())
    sums = {"takes": len(takes), "reference_length": length, "errors": errors, **counts}
    return sums | {"error_rate": errors / max(length, 1)}


def _build_voice_table(takes_of: _Takes, engines: dict[str, str]) -> pd.DataFrame:
    utterances_of: dict[tuple[str, str], dict[str, list[Take]]] = defaultdict(dict)
    for (language, utterance), voices in takes_of.items():
        for voice, takes in voices.items():
            utterances_of[voice, language][utterance] = takes
    rows = [
        {"voice": voice, "engine": engines[voice] or None, "language": language}
        | _summarize_voice(utterances)
        for (voice, language), utterances in utterances_of.items()
    ]
    table = build_table(rows, _VOICES)
    return table.sort_values(["language", "own_rate"], kind="stable", ignore_index=True)


def _summarize_voice(utterances: dict[str, list[Take]]) -> dict[str, Any]:
    takes = [take for several in utterances.values() for take in several]
    counts = _count_errors(takes)
    own_errors = {
        label: _count_errors(several)["own_errors"] / len(several) for label, several in utterances.items()
    }
    worst = max(own_errors, key=lambda label: own_errors[label])
    total = sum(own_errors.values())
    repeated = [several for several in utterances.values() if len(several) > 1]
    spread = sum(float(np.var([len(take.errors) for take in several], ddof=1)) for several in repeated)
    single_length = sum(several[0].length for several in repeated)
    rates = {
        f"{name}_rate": counts[f"{name}_errors"] / max(counts["reference_length"], 1)
        for name in get_args(Cause)
    }
    return {
        "unit": takes[0].row.unit,
        "utterances": len(utterances),
        **counts,
        "homophones": sum(take.homophones for take in takes),
        **rates,
        "utterances_with_own": sum(1 for value in own_errors.values() if value),
        "endings_lost": sum(map(_has_mostly_lost_ends, utterances.values())),
        "worst_utterance": worst if total else None,
        "worst_share": own_errors[worst] / total if total else None,
        "take_sd": spread**0.5 / max(single_length, 1) if repeated else None,
    }


def _has_mostly_lost_ends(takes: list[Take]) -> bool:
    takes_cut = sum(any(run.at_end and run.cause == "own" for run in take.runs) for take in takes)
    return 2 * takes_cut >= len(takes)


def _build_utterance_table(takes_of: _Takes) -> pd.DataFrame:
    rows = [
        {"utterance": utterance, "language": language, "voices": len(voices)}
        | _count_errors([take for several in voices.values() for take in several])
        for (language, utterance), voices in takes_of.items()
    ]
    table = build_table(rows, _UTTERANCES)
    return table.sort_values(["shared_errors", "errors"], ascending=False, kind="stable", ignore_index=True)


def _build_variance_table(takes_of: _Takes) -> pd.DataFrame:
    rows = []
    for language in dict.fromkeys(key[0] for key in takes_of):
        mine = [voices for key, voices in takes_of.items() if key[0] == language]
        names = sorted({voice for voices in mine for voice in voices})
        full = [voices for voices in mine if len(voices) == len(names)]
        rates = [
            [[len(take.errors) / max(take.length, 1) for take in voices[name]] for voices in full]
            for name in names
        ]
        parts_of = compute_variance_components(rates)
        if parts_of is None:
            continue
        finite = {name: value for name, value in parts_of.items() if value == value}
        total = sum(finite.values())
        rows.append(
            {"language": language, "unit": next(iter(full[0].values()))[0].row.unit}
            | {"voices": len(names), "utterances": len(full)}
            | {f"sd_{name}": value**0.5 for name, value in finite.items()}
            | {f"share_{name}": value / total for name, value in finite.items() if total}
        )
    return build_table(rows, _VARIANCE)
