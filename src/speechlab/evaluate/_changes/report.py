"""Changes between two reports of one study, as a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from speechlab._arguments import refused
from speechlab._platform import package_version
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._changes.speed import speed_changes
from speechlab.evaluate._changes.tested import NAMES, changes
from speechlab.evaluate._changes.translated import translation_changes
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._writing.columns import listed, plural
from speechlab.evaluate._writing.contents import Conclusion, Contents, Drawing, Finding, ShownRows
from speechlab.evaluate._writing.differences import changes_words, differences_view
from speechlab.evaluate._writing.folder import SOUNDS
from speechlab.evaluate._writing.methods import methods_of, values_of
from speechlab.evaluate._writing.record import service_of
from speechlab.metrics import BETTER, DIFFERENCES, UNPAIRED, WORSE, judge, value_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HEADS = ("group", "measure", "pairs", "difference", "95 % interval", "p (Holm)", "verdict")


def changes_between(now: Contents, earlier: Contents, names: Sequence[str] = NAMES) -> Contents:
    """Compare a report with an earlier one of the same study.

    Returns:
        ``table``: the rows that both have, those first that changed most: that of the later report, with
        ``hypothesis_earlier``, ``errors_earlier``, ``error_difference`` and ``status_earlier``; of translations
        ``translation_earlier`` and ``score_difference``. ``summary``: the differences of each voice and language, or
        direction, and of rows that failed: the columns of ``differences``, ``group``, ``only_now`` and
        ``only_earlier`` (rows without a partner). ``differences`` has those of speed, too, which are corrected by
        themselves.

    Raises:
        InvalidRequestError: As of ``Report.compare``.
    """
    if "listening" in {now.study, earlier.study}:
        # S. Zieliński, F. Rumsey, S. Bech, On some biases encountered in modern audio quality listening tests,
        # Journal of the Audio Engineering Society 56 (2008)
        message = (
            "two listening tests cannot be compared, since ratings depend on what else is heard in a test; put "
            "the recordings of both into one ListeningTest, as systems of their own, and look at its differences"
        )
        raise InvalidRequestError(message, parameter="earlier")
    called = first, second = _checked(names)
    translated = now.study == earlier.study == "translation"
    table, rows = translation_changes(now, earlier) if translated else changes(now, earlier)
    timed = speed_changes(now, earlier)
    both = [
        judge([{**row, "a": first, "b": f"{row['group']}: {second}"} for row in part])
        for part in (rows, timed)
    ]
    summary = both[0][[*DIFFERENCES, "group", "only_now", "only_earlier"]]
    differences = pd.concat([part for part in both if len(part)], ignore_index=True)[[*DIFFERENCES, "group"]]
    title = f"{'Changes' if called == NAMES else f'{second} against {first}'}: {now.title}"
    tested = summary[summary["verdict"] != UNPAIRED]
    view = differences_view(summary, "What changed", "Of the rows that both reports have.", called)
    views = [view, *([differences_view(both[1], "Speed", names=called)] if timed else [])]
    frame, shown = _shown(table, called, translated=translated)
    record = {"now": dict(now.record), "earlier": dict(earlier.record), "names": called, "title": now.title}
    sides = {"now": now, "earlier": earlier}
    kept = {"now": now.plain_rows(), "earlier": earlier.plain_rows().drop(columns=[*SOUNDS], errors="ignore")}
    kept |= {f"speed_{name}": one.speed for name, one in sides.items() if len(one.speed)}
    done = _done(summary, timed=bool(timed), translated=translated)
    return Contents(
        title,
        table,
        summary,
        _answer(summary, both[1], called),
        "changes",
        findings=tuple(_findings(summary, both[1], called)),
        differences=differences,
        tables={"tested": tested, **({} if frame is table else {"rows": frame}), **kept},
        views=tuple(views),
        drawings=(Drawing("Differences, with 95 % intervals", "differences", ("tested",)),)
        if len(tested)
        else (),
        shown=shown,
        said=methods_of(title, *done, signatures=values_of(table, "signature")),
        facts=_facts(record, called),
        record=record,
    )


def _answer(summary: pd.DataFrame, speed: pd.DataFrame, names: tuple[str, str]) -> Conclusion:
    first, second = names
    plain = names == NAMES
    parts = [
        f"{listed(_brief(summary[summary['verdict'] == verdict]))} "
        + (f"became {verdict}" if plain else f"is {verdict} in {second}")
        for verdict in (WORSE, BETTER)
        if (summary["verdict"] == verdict).any()
    ]
    nothing = "Nothing is shown to have changed" if plain else f"{first} and {second} are not shown to differ"
    lead, sure = "; ".join(parts) or nothing, ""
    if (summary["verdict"] == UNPAIRED).all():
        lead = f"{first} and {second} have no row in common, so nothing can be said of changes"
    else:
        pairs = plural(int(summary["n"].sum()), "row")
        sure = f"Tested on {pairs} that both have, beyond chance where it is said."
    if len(speed):
        sure += f" Speed: {'slower' if (speed['verdict'] == 'slower').any() else 'no slowing shown'}."
    return Conclusion(f"{lead[:1].upper()}{lead[1:]}.", sure.strip())


def _brief(rows: pd.DataFrame) -> list[str]:
    return [
        f"{row['group']} ({value_text(row['value_a'], row['unit'])} to {value_text(row['value_b'], row['unit'])})"
        for row in rows.to_dict("records")
    ]


def _findings(summary: pd.DataFrame, speed: pd.DataFrame, names: tuple[str, str]) -> list[Finding]:
    first, second = names
    way = "" if names == NAMES else f", from {first} to {second}"
    alone = ("in this report alone", "in the earlier one alone")
    alone = alone if names == NAMES else (f"of {second} alone", f"of {first} alone")
    said = [Finding(words, systems=tuple(groups)) for words, groups in changes_words(summary, way)]
    for name, what in zip(("only_now", "only_earlier"), alone, strict=True):
        if count := int(summary[name].sum()):
            words = f"{plural(count, 'row')} {'is' if count == 1 else 'are'} {what} and not compared."
            said.append(Finding(words, numbers={name: count}))
    return said + [Finding(words, systems=tuple(groups)) for words, groups in changes_words(speed)]


def _shown(
    table: pd.DataFrame, names: tuple[str, str], *, translated: bool
) -> tuple[pd.DataFrame, ShownRows]:
    """How the rows are shown: what was recognised earlier and now, against the reference."""
    heard = "translation" if translated else "hypothesis"
    both = [f"{heard}_earlier", heard]
    if names != NAMES:
        called = [f"{heard}: {name}" for name in names]
        table, both = table.rename(columns=dict(zip(both, called, strict=True))), called
    sides = [name for name in SIDES if name in table.columns]
    columns = ["text", *both, "error_difference", "language", *sides, "voice_name"]
    options: dict[str, Any] = {"hypotheses": both, "reference": "text", "language": "language"}
    if translated:
        columns, options = (
            ["text", *both, "score_difference"],
            {"hypotheses": both, "language": "target_lang"},
        )
        if "reference" in table.columns:
            columns, options = ["reference", *columns], {**options, "reference": "reference"}
    return table, ShownRows("table" if names == NAMES else "rows", options={**options, "columns": columns})


def _done(summary: pd.DataFrame, *, timed: bool, translated: bool) -> list[str]:
    own = summary[summary["unit"] != "row"]
    tested, low = bool(own["p"].notna().any()), bool(own["low"].notna().any())
    done = ["chrf"] if translated else ["pooled"]
    done += [("randomization" if translated else "sign-flip")] if tested else []
    done += [("paired intervals" if translated else "intervals")] if low else []
    return [*done, *(["ratios"] if timed else []), *(["holm"] if summary["p"].notna().any() else [])]


def _facts(record: Mapping[str, Any], names: tuple[str, str]) -> dict[str, str]:
    """When both reports were made, and of which services."""
    found = {"speechlab": package_version()}
    for key, name in zip(NAMES, names, strict=True):
        if own := record[key]:
            told = [str(own.get("made", "")), f"speechlab {own.get('speechlab', '?')}", service_of(own)]
            found[name] = ", ".join(part for part in told if part)
    return found


def _checked(names: Sequence[str]) -> tuple[str, str]:
    """The names of two reports.

    Raises:
        InvalidRequestError: They are not two texts that differ from each other and from the heads of the table.
    """
    given: list[Any] = [] if isinstance(names, str) or not isinstance(names, list | tuple) else list(names)
    if len(given) != 2 or not all(isinstance(one, str) and one.strip() for one in given):
        raise refused("names", names, "two texts, that of the report in brackets first: ('ours', 'theirs')")
    if given[0].strip() == given[1].strip() or set(given) & set(_HEADS):
        message = (
            f"names={names!r} cannot be told apart from each other, or from the columns {', '.join(_HEADS)}"
        )
        raise InvalidRequestError(message, parameter="names")
    return given[0], given[1]
