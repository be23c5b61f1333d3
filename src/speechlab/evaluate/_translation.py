"""The study of translations against references, and its report."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab._platform import package_version
from speechlab.display import Html, element, table
from speechlab.evaluate._arguments import need_columns
from speechlab.evaluate._failed import tell_failed
from speechlab.evaluate._report import Report
from speechlab.evaluate._writing.record import record_of
from speechlab.metrics import translation_score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from matplotlib.figure import Figure

    from speechlab.batch import Progress
    from speechlab.client import Client
    from speechlab.store import Store


@dataclass(frozen=True, eq=False, repr=False)
class TranslationReport(Report):
    """Report of how close translations come to their references.

    Attributes:
        title: Title of the page.
        table: One row for each text: the input's columns, ``translation``, ``chrf`` (0 to 100), token counts,
            ``model``, ``status``, ``error``.
        summary: One row for each direction: ``utterances``, corpus ``chrf`` and ``signature``.
        columns: Columns of ``table`` with the texts, the references, and the languages of both.
        record: As for :class:`Report`.
    """

    title: str
    table: pd.DataFrame
    summary: pd.DataFrame
    columns: tuple[str, str, str, str] = ("text", "reference", "source_lang", "target_lang")
    record: Mapping[str, Any] = field(default_factory=dict)

    def sections(self, *, clips: int | None = None) -> Sequence[Html]:
        """Return the scores and the texts."""
        source, reference, source_lang, target_lang = self.columns
        scores = [
            [
                f"{row[source_lang]} → {row[target_lang]}",
                str(row["utterances"]),
                element("strong", f"{row['chrf']:.1f}"),
            ]
            for row in self.summary.to_dict("records")
        ]
        shown = self.table if clips is None else self.table.head(clips)
        lines = [
            [
                element("span", row[source], lang=row[source_lang]),
                element("span", row["translation"], lang=row[target_lang])
                if isinstance(row["translation"], str)
                else element("em", str(row["error"])),
                element("span", row[reference], lang=row[target_lang]),
                row["chrf"] if isinstance(row["chrf"], float) and row["chrf"] == row["chrf"] else None,
            ]
            for row in shown.to_dict("records")
        ]
        caption = "Closeness to the references: chrF, 0 to 100"
        found = [table(("direction", "texts", "chrF"), scores, caption=caption)]
        if clips != 0:
            caption = "Translations"
            if len(shown) < len(self.table):
                caption += f": the first {len(shown)} of {len(self.table)} rows"
            found.append(table(("source", "translation", "reference", "chrF"), lines, caption=caption))
        return found

    def plain_rows(self) -> pd.DataFrame:
        """Return the rows with the names that the study gives its columns where the table has others."""
        names = dict(zip(self.columns, ("text", "reference", "source_lang", "target_lang"), strict=True))
        given = [new for old, new in names.items() if old != new and new in self.table.columns]
        return self.table.drop(columns=given).rename(columns=names)

    def rows(self, **options: Any) -> Any:
        """Search and sort the rows: a :class:`speechlab.widgets.AudioTable` of the table, without sound."""
        _, reference, _, target_lang = self.columns
        usual = {"reference": reference, "hypotheses": "translation", "language": target_lang}
        return super().rows(**{**usual, **options})

    def headline(self) -> pd.DataFrame:
        """Return the scores of the directions."""
        import pandas as pd

        source, target = self.columns[2:]
        direction = self.summary[source].astype(str) + " → " + self.summary[target].astype(str)
        chrf = [f"{score:.1f}" for score in self.summary["chrf"]]
        return pd.DataFrame({"Direction": direction, "Texts": self.summary["utterances"], "chrF": chrf})

    def plot(self, **options: Any) -> Figure:
        """Draw the scores of the directions: :func:`speechlab.plots.translation_scores` of the summary."""
        # By name: figures stand a floor above this room, and load when one is drawn.
        figure: Figure = import_module("speechlab.plots").translation_scores(
            self.summary, **{"by": list(self.columns[2:]), **options}
        )
        return figure

    def facts(self) -> Mapping[str, str]:
        """Return versions and the metric's signature."""
        signature = self.summary["signature"].iloc[0] if len(self.summary) else "none"
        return {"speechlab": package_version(), "chrF": str(signature)}


def translation(
    lab: Client,
    frame: pd.DataFrame,
    *,
    text: str = "text",
    reference: str = "reference",
    source_lang: str = "source_lang",
    target_lang: str = "target_lang",
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    progress: Progress = True,
    title: str = "Translation",
    **options: Any,
) -> TranslationReport:
    """Translate texts and compare them with references by chrF.

    Args:
        lab: The client.
        frame: One row for each text, with the columns named below.
        text: Column of the texts.
        reference: Column of the reference translations.
        source_lang: Column of the languages of the texts.
        target_lang: Column of the languages wanted.
        store: Where results are kept and reused; None for the user's own store.
        concurrency: Calls under way at once.
        progress: True for a bar, False for none, or a function of (calls done, calls in all).
        title: Title of the report.
        **options: Parameters of ``Client.translate``: keywords, context, model.

    Raises:
        InvalidRequestError: A column is missing.
        AuthenticationError: The service refuses the API key.
    """
    need_columns(frame, text, reference, source_lang, target_lang)
    with batch.failures_told_elsewhere():
        done = batch.translate(
            frame,
            lab,
            text=text,
            source_lang=batch.Column(source_lang),
            target_lang=batch.Column(target_lang),
            store=store,
            concurrency=concurrency,
            progress=progress,
            **options,
        )
    wrong = done[done["status"] == "error"]
    tell_failed(wrong["error"], len(done), "The report's table has them, with status 'error'")
    answered = done["translation"].notna()
    scores = [
        translation_score(
            [row[reference]], [row["translation"]], language=row[target_lang], metrics=["chrf"]
        ).chrf
        if known
        else float("nan")
        for row, known in zip(done.to_dict("records"), answered, strict=True)
    ]
    done = done.assign(chrf=scores)
    return TranslationReport(
        title,
        done,
        _summarize(done[answered], reference, source_lang, target_lang),
        (text, reference, source_lang, target_lang),
        record_of("translation", store, done),
    )


def _summarize(done: pd.DataFrame, reference: str, source_lang: str, target_lang: str) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for (source, target), part in done.groupby([source_lang, target_lang], observed=True):
        result = translation_score(
            part[reference].tolist(), part["translation"].tolist(), language=str(target), metrics=["chrf"]
        )
        speed = part["processing_s"].median()
        rows.append((source, target, len(part), result.chrf, speed, result.signatures["chrf"]))
    columns = [source_lang, target_lang, "utterances", "chrf", "processing_s", "signature"]
    return pd.DataFrame(rows, columns=columns)
