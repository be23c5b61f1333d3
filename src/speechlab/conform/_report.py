"""A report as JSON and as JUnit XML."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from speechlab.conform._model import CheckOutcome, ConformReport, Verdict, read_statements
from speechlab.conform._run import OUT_OF_REACH

# Control characters that XML does not allow, even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_json(report: ConformReport) -> dict[str, Any]:
    return {
        "base_url": report.base_url,
        "ws_base_url": report.ws_base_url,
        "started": report.started,
        "seconds": round(report.seconds, 3),
        "metered_calls": report.metered,
        "passed": report.has_passed(),
        "counts": {str(verdict): report.count_checks(verdict) for verdict in Verdict},
        "statements": {
            str(number): str(verdict) for number, verdict in report.summarize_statements().items()
        },
        "out_of_reach": {str(number): reason for number, reason in OUT_OF_REACH.items()},
        "checks": [_build_outcome_fields(outcome) for outcome in report.outcomes],
    }


def _build_outcome_fields(outcome: CheckOutcome) -> dict[str, Any]:
    check = outcome.check
    return {
        "id": check.id,
        "statements": list(check.statements),
        "sections": sorted({read_statements()[number].section for number in check.statements}),
        "title": check.title,
        "binding": check.binding,
        "verdict": str(outcome.verdict),
        "reason": outcome.reason,
        "seconds": outcome.seconds,
        "metered_calls": outcome.metered,
        "findings": [asdict(each) for each in outcome.findings],
    }


def to_junit(report: ConformReport, *, strict: bool = False) -> str:
    """Return a report as JUnit XML; advisory outcomes are failures only if ``strict``."""
    failing = {Verdict.FAILS, Verdict.ADVISORY} if strict else {Verdict.FAILS}
    failures = sum(outcome.verdict in failing for outcome in report.outcomes)
    suite = ET.Element(
        "testsuite",
        name="speechlab conform",
        tests=str(len(report.outcomes)),
        failures=str(failures),
        skipped=str(report.count_checks(Verdict.UNTRIED)),
        errors="0",
        time=f"{report.seconds:.3f}",
        timestamp=report.started,
    )
    for outcome in report.outcomes:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=f"conform.{outcome.check.area}",
            name=f"{outcome.check.id}: {outcome.check.title}",
            time=f"{outcome.seconds:.3f}",
        )
        text = _replace_non_xml_chars(
            "\n\n".join(f"expected: {f.expected}\nsent: {f.sent}\ncame: {f.came}" for f in outcome.findings)
        )
        if outcome.verdict in failing:
            ET.SubElement(
                case, "failure", message=_replace_non_xml_chars(outcome.findings[0].expected)
            ).text = text
        elif outcome.verdict is Verdict.ADVISORY:
            ET.SubElement(case, "system-out").text = f"advisory\n{text}"
        elif outcome.verdict is Verdict.UNTRIED:
            ET.SubElement(case, "skipped", message=_replace_non_xml_chars(outcome.reason))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _replace_non_xml_chars(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def write_report(report: ConformReport, path: Path, *, strict: bool = False) -> None:
    """Write a report; a name that ends in ``.xml`` gives JUnit XML, any other JSON."""
    if path.suffix.lower() == ".xml":
        text = to_junit(report, strict=strict)
    else:
        text = json.dumps(to_json(report), ensure_ascii=False, indent=2) + "\n"
    path.write_text(text, encoding="utf-8")
