"""Texts for batches, and options for translating them without a word."""

from __future__ import annotations

import pandas as pd

EN_JA = {"source_lang": "en", "target_lang": "ja"}


def texts(count, start=0):
    return pd.DataFrame({"text": [f"text number {n}" for n in range(start, start + count)]})


def quiet(store, **options):
    return {**EN_JA, "store": store, "progress": False, **options}
