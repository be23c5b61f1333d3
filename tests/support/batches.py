"""Texts for batches, options for translating them without a word, and a watcher."""

import pandas as pd

EN_JA = {"source_lang": "en", "target_lang": "ja"}


def texts(count, start=0):
    return pd.DataFrame({"text": [f"text number {n}" for n in range(start, start + count)]})


def quiet(store, **options):
    return {**EN_JA, "store": store, "progress": False, **options}


class Notes:
    """A watcher that keeps what it is told."""

    def __init__(self):
        self.began, self.told, self.counts, self.ended = [], [], [], 0

    def begin(self, operation):
        self.began.append(operation)

    def update(self, outcomes, counts):
        self.told += outcomes
        self.counts.append(counts)

    def end(self):
        self.ended += 1
