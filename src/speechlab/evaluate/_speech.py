"""The report of studies of speech: one row for each utterance, each of which can be heard."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._platform import package_version
from speechlab.errors import StoreError
from speechlab.evaluate._html import clip_rows, summary_table
from speechlab.evaluate._report import Report
from speechlab.metrics import summarize

if TYPE_CHECKING:
    import os
    from collections.abc import Hashable, Mapping, Sequence

    import pandas as pd

    from speechlab.display import Html

_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, eq=False, repr=False)
class SpeechReport(Report):
    """Report of how well speech was understood.

    Attributes:
        title: Title of the page.
        table: One row for each utterance: the input's columns; ``voice``, ``voice_name``, ``gender``; ``audio``
            (path), ``duration_s``, ``sample_rate`` (Hz); ``hypothesis``, ``hypothesis_language``, ``confidence``;
            the columns of :func:`speechlab.metrics.score`; ``tts_rtf`` and ``asr_rtf`` (the service's seconds per
            second of audio); ``status`` (ok, cached, error, or skipped
            where no voice speaks the language), ``error``.
        summary: One row for each voice and language: corpus error rates with a 95 % interval by utterance, the
            seconds of audio and median real-time factors.
        text: Column of ``table`` with what was to be said.
        language: Column of ``table`` with its language.
    """

    title: str
    table: pd.DataFrame
    summary: pd.DataFrame
    text: str = "text"
    language: str = "language"

    @classmethod
    def of(
        cls, title: str, scored: pd.DataFrame, *, text: str = "text", language: str = "language"
    ) -> SpeechReport:
        """Summarise scored rows by voice and language."""
        by = ["voice", "voice_name", "gender", language]
        spoken = scored[scored["voice"].notna()]
        rates = summarize(spoken, by=by)
        speed = spoken.groupby(by, observed=True, dropna=False).agg(
            duration_s=("duration_s", "sum"), tts_rtf=("tts_rtf", "median"), asr_rtf=("asr_rtf", "median")
        )
        merged = rates.merge(speed.reset_index(), on=by, how="left").rename(columns={language: "language"})
        ordered = merged.sort_values(["language", "error_rate"], ignore_index=True)
        return cls(title, scored, ordered, text, language)

    @classmethod
    def joined(cls, title: str, reports: Sequence[SpeechReport]) -> SpeechReport:
        """Put several reports into one."""
        import pandas as pd

        tables = [
            report.table.rename(columns={report.text: "text", report.language: "language"})
            for report in reports
        ]
        return cls.of(title, pd.concat(tables, ignore_index=True))

    def sections(self, *, clips: int | None = None) -> Sequence[Html]:
        """Return the summary and the rows, each of which can be heard."""
        rows = self.table.rename(columns={self.text: "text", self.language: "language"})
        return [summary_table(self.summary), clip_rows(rows, max_rows=clips)]

    def facts(self) -> Mapping[str, str]:
        """Return versions, normalisers and counts."""
        normalizers = ", ".join(sorted(self.table["normalizer"].dropna().astype(str).unique()))
        return {
            "speechlab": package_version(),
            "rows": f"{len(self.table)}, of which {len(self.failed())} failed or were skipped",
            "normalised by": normalizers or "nothing",
            "intervals": "95 %, bootstrap by utterance",
        }

    def failed(self) -> pd.DataFrame:
        """Return the rows that failed, or that nothing could be done for."""
        return self.table[self.table["status"].isin(["error", "skipped"])]

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write tables, page and recordings into a folder; the tables then name the recordings beside them.

        Raises:
            StoreError: A file cannot be written.
        """
        import pandas as pd

        path = Path(folder)
        try:
            (path / "audio").mkdir(parents=True, exist_ok=True)
            rows = self.table.to_dict("records")
            audio = [self._copy(number, row, path) for number, row in enumerate(rows)]
        except OSError as error:
            reason = error.strerror or error
            message = f"cannot write recordings into {path}: {reason}; free space or name another folder"
            raise StoreError(message) from error
        html = self.to_html()
        moved = replace(self, table=self.table.assign(audio=pd.Series(audio, index=self.table.index)))
        return moved._write(path, html)  # noqa: SLF001 - its own class

    @staticmethod
    def _copy(number: int, row: Mapping[Hashable, Any], folder: Path) -> str | None:
        source = row["audio"]
        if not isinstance(source, str | PathLike) or not Path(source).is_file():
            return None
        # the number keeps files apart whose other names are the same
        label = _UNSAFE.sub("-", f"{number:03d}-{row.get('id', Path(source).stem[:24])}-{row['voice_name']}")
        target = folder / "audio" / (label.strip("-") + Path(source).suffix)
        shutil.copyfile(source, target)
        return target.relative_to(folder).as_posix()
