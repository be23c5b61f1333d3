"""Voices of cheaper services that are no worse than those of dearer ones, on the sentences that both spoke."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from speechlab.evaluate._advice.choice import MARGIN
from speechlab.evaluate._advice.no_worse import build_contest, build_price_findings, compare_with_dearer
from speechlab.evaluate._advice.speech_report import build_speech_report
from speechlab.evaluate._speech.costs import CHARACTERS, compute_unit_prices
from speechlab.evaluate._speech.summary import build_full_voice_names
from speechlab.evaluate._voice_ranks.voice_order import VoiceOrder, rank_voices

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.evaluate._writing.contents import Contents


def compare_voices_with_dearer(
    summary: pd.DataFrame, order: VoiceOrder, settings: Mapping[str, Any]
) -> pd.DataFrame:
    """Return of each voice of a cheaper service whether it is no worse than one of a dearer service."""
    price_of = compute_unit_prices(summary, CHARACTERS)
    systems = summary["system"].astype(str).tolist() if "system" in summary.columns else []
    services = zip(build_full_voice_names(summary).astype(str), systems, strict=False)
    prices = {name: price_of[service] for name, service in services if service in price_of}
    contests = {
        (code, ""): build_contest(known, order.scores[code]) for code, known in order.evidence.items()
    }
    return compare_with_dearer(contests, prices, settings.get("margin", MARGIN))


def build_round_trip_report(
    title: str, table: pd.DataFrame, *, text: str, language: str, **facts: Any
) -> Contents:
    """Report a round trip; with prices of several services, also which voices are no worse than dearer ones."""
    report = build_speech_report(title, table, text=text, language=language, **facts)
    settings = (facts.get("record") or {}).get("settings", {})
    if len(settings.get("prices", {})) < 2 or "system" not in table.columns:
        return report
    order = rank_voices(table.assign(engine=""), text, language)
    tests = compare_voices_with_dearer(report.summary, order, settings)
    findings = (*report.findings, *build_price_findings(tests, "sentence"))
    return replace(report, findings=findings, tables={**report.tables, "no_worse": tests})
