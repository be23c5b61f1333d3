"""The table of the site's first page, which can be heard: two rows in each language, spoken and recognized."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from speechlab.widgets import TableView

SOUNDS = Path(__file__).parent / "sounds"


def heard_page() -> str:
    """Return the table as a page; the sounds were made by the embedded service, the Chinese ones are bundled."""
    rows = pd.read_csv(SOUNDS / "sounds.csv", dtype="string")
    rows["audio"] = [str(SOUNDS / name) for name in rows["audio"]]
    columns = ["text", "hypothesis", "voice"]
    table = TableView(rows, reference="text", hypotheses="hypothesis", language="language", columns=columns)
    return table.render_page("Hear a table")
