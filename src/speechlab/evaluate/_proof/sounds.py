"""The sounds in the folder of a report, measured again."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from speechlab.evaluate._choice.measured import measured, voice_keys
from speechlab.evaluate._writing.columns import plural

if TYPE_CHECKING:
    from speechlab.evaluate._proof.compared import NumberCheck
    from speechlab.evaluate._writing.contents import Contents

_DNSMOS = "dnsmos_"


def compare_sounds(compared: NumberCheck, report: Contents) -> str:
    """Measure the recordings of a study of voices again, and compare; return what was compared, in a sentence."""
    text, language = report.columns["text"], report.columns["language"]
    stands = report.table.reset_index(drop=True)
    here = [name for name in voice_keys(stands, language) if name != language]
    rows = stands[[*here, "audio", "duration_s", text, language]]
    rated = int(report.record.get("settings", {}).get("dnsmos") or 0)
    without = rated > 0 and find_spec("speechmos") is None
    again = measured(rows, text, language, 0 if without else rated, progress=False, measures={}, store=None)
    new = [
        name
        for name in again.columns
        if name not in rows.columns and not (without and name.startswith(_DNSMOS))
    ]
    compared.frame("sounds", stands, again[new])
    said = f"The sounds of {plural(int(rows['audio'].notna().sum()), 'clip')} were measured again."
    return f"{said} Their DNSMOS was taken as it is: speechmos is not installed." if without else said
