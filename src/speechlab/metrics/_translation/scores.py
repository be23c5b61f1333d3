"""Scores of translations with intervals: BLEU, chrF, chrF++ and TER by sacrebleu, and scorers of the user."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from speechlab._arguments import has_column, require_columns, to_column_names
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.units import warn_if_unspaced
from speechlab.metrics._columns import add_columns
from speechlab.metrics._inputs import check_choice, check_named_functions
from speechlab.metrics._statistics.bootstrap import Bootstrap, Interval
from speechlab.metrics._translation.glossary import build_glossary_table
from speechlab.metrics._translation.texts import check_not_empty, collect_system_translations
from speechlab.metrics._translation.translation_metrics import (
    build_metrics,
    choose_tokenizer,
    compute_measures,
)
from speechlab.text import language_code

if TYPE_CHECKING:
    from speechlab.metrics._inputs import Groups
    from speechlab.metrics._translation.glossary import Glossary
    from speechlab.metrics._translation.translation_metrics import Measurement, Scorer


_INTERVALS: dict[str, Any] = {"level": 0.95, "draws": 1_000, "seed": 0, "groups": None}


@dataclass(frozen=True, slots=True)
class TranslationScore:
    """Closeness of translations to their references.

    Attributes:
        scores: Corpus score of each metric: chrF, chrF++ and BLEU from 0 to 100, the higher the better; TER in
            percent, the lower the better; and the mean of the scores of each other scorer.
        signatures: sacrebleu's signature of each metric, with which the same score can be computed again.
        utterances: Number of translations.
        empty_references: Number of translations whose references have nothing but white space. sacrebleu gives such a
            translation no score; in the corpus, it counts like all others.
        glossary: The table of :func:`glossary_terms`; None without a glossary.

    Example:
        >>> result = score_translations(
        ...     ["明日は雨です。"], ["明日は雨です。"], language="ja", tokenize="char"
        ... )
        >>> result.chrf, result.utterances
        (100.0, 1)
    """

    scores: Mapping[str, float]
    signatures: Mapping[str, str]
    utterances: int
    empty_references: int = 0
    glossary: pd.DataFrame | None = field(default=None, compare=False, repr=False)
    _measured: Mapping[str, Measurement] = field(default_factory=dict, compare=False, repr=False)
    _rows: pd.DataFrame | pd.Index[Any] | None = field(default=None, compare=False, repr=False)

    @property
    def chrf(self) -> float:
        """Corpus chrF, 0 to 100 (Popović 2015); NaN if it was not requested."""
        return self.scores.get("chrf", math.nan)

    @property
    def bleu(self) -> float:
        """Corpus BLEU, 0 to 100, with a tokenizer for the language; NaN if it was not requested."""
        return self.scores.get("bleu", math.nan)

    def confidence_interval(
        self,
        metric: str = "chrf",
        *,
        level: float = 0.95,
        draws: int = 1_000,
        seed: int = 0,
        groups: Groups = None,
    ) -> Interval:
        """Bootstrap interval of a corpus score (Koehn, 2004).

        Args:
            metric: Name of a metric in ``scores``.
            level: Confidence level, between 0 and 1.
            draws: Number of bootstrap draws.
            seed: The same seed gives the same interval.
            groups: Name of a block for each translation, such as its document, or a column of the given table. Blocks
                are drawn as wholes.

        Returns:
            ``(low, high)``; both NaN if there are fewer than two translations or blocks.
        """
        return self._compute_interval(metric, Bootstrap(level, draws, seed, groups).bind_rows(self._rows))

    def _compute_interval(self, metric: str, bootstrap: Bootstrap) -> Interval:
        check_choice(metric, self.scores, "metric", "there is no metric")
        _, _, statistics, compute = self._measured[metric]
        return bootstrap.compute_figure_interval(statistics, compute)

    def frame(
        self, *, level: float = 0.95, draws: int = 1_000, seed: int = 0, groups: Groups = None
    ) -> pd.DataFrame:
        """Return one row for each metric: its name, ``score``, ``low``, ``high``, ``utterances``, ``signature``.

        Args:
            level: Confidence level, between 0 and 1.
            draws: Number of bootstrap draws.
            seed: The same seed gives the same intervals.
            groups: Blocks that are drawn as wholes, as for :meth:`confidence_interval`.
        """
        how: dict[str, Any] = {"level": level, "draws": draws, "seed": seed, "groups": groups}
        rows = [
            (name, measure.score, *self.confidence_interval(name, **how), self.utterances, measure.signature)
            for name, measure in self._measured.items()
        ]
        return pd.DataFrame(rows, columns=["metric", "score", "low", "high", "utterances", "signature"])


@overload
def score_translations(
    references: Sequence[str | Sequence[str]] | pd.DataFrame,
    hypotheses: Sequence[str] | None = None,
    *,
    by: None = None,
    **options: Any,
) -> TranslationScore: ...
@overload
def score_translations(
    references: pd.DataFrame, *, by: str | Sequence[str], **options: Any
) -> pd.DataFrame: ...
def score_translations(
    references: Sequence[str | Sequence[str]] | pd.DataFrame,
    hypotheses: Sequence[str] | None = None,
    *,
    language: str | None = None,
    tokenize: str = "auto",
    metrics: Sequence[str] = ("chrf", "bleu"),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    scorers: Mapping[str, Scorer] | None = None,
    glossary: Glossary | None = None,
    sources: Sequence[str] | None = None,
    source_language: str | None = None,
    reference: str = "reference",
    hypothesis: str = "translation",
    source: str = "text",
    by: str | Sequence[str] | None = None,
    **intervals: Any,
) -> TranslationScore | pd.DataFrame:
    """Score translations with chrF and BLEU, and, if asked, chrF++, TER and scorers of your own.

    Args:
        references: Reference translations: for each translation a text, or a list of alternative references. Their
            number may vary; the signature records this. Or a table, whose rows with a missing text are skipped.
        hypotheses: Translations, one for each reference; None for a table. Two Series must have the same index.
        language: Code of the target language. sacrebleu's default treats a Japanese sentence as one word and gives
            0.00 without a warning; here, a missing language gives a warning if the texts seem to have no spaces.
            With ``by=`` it may be a column of codes; None is the column ``target_lang``.
        tokenize: sacrebleu's tokenizer for BLEU. ``"auto"`` is ``ja-mecab`` for Japanese if MeCab and its dictionary
            are installed (``pip install 'sacrebleu[ja]'``) and ``char`` otherwise, ``zh`` for Chinese, ``char`` for
            other languages without spaces, and ``13a`` for all others. Or the name of a tokenizer that needs no
            download. The signature records the tokenizer.
        metrics: Any of ``"chrf"``, ``"chrf++"``, ``"bleu"`` and ``"ter"``.
        options: For each metric, arguments of its class in sacrebleu, which signatures record. An example is
            ``{"bleu": {"lowercase": True, "smooth_method": "floor"}, "chrf": {"beta": 3}}``.
        scorers: Other metrics by their names: functions from the lists of sources, translations and (first)
            references to a score for each translation. Without sources, they get empty texts.
        glossary: Terms that must be kept, as for :func:`glossary_terms`. Of several references, the first is used.
        sources: Source texts, for scorers and for a glossary with source terms.
        source_language: Code of the source language.
        reference: Column of the references of a table.
        hypothesis: Column of the translations of a table.
        source: Column of the sources of a table; used if it exists.
        by: Columns by which a table is grouped, or ``()``; languages are never mixed.
        **intervals: With ``by=``: ``level`` (0.95), ``draws`` (1,000), ``seed`` (0) and ``groups``, as for
            :meth:`TranslationScore.confidence_interval`.

    Returns:
        The scores, with intervals on request. With ``by=``, a table with one row for each group and language: the
        columns of ``by``, ``language``, ``utterances`` (rows), ``utterances_scored`` (rows with both texts),
        ``empty_references``, and for each metric, such as ``chrf``, ``chrf``, ``chrf_low``, ``chrf_high`` and
        ``chrf_signature``.

    Raises:
        InvalidRequestError: There are no translations, their number differs from that of the references, a column,
            language, tokenizer, metric or option does not exist, or a scorer does not give one number for each
            translation.
        MissingDependencyError: The requested tokenizer needs MeCab, which is not installed.

    Example:
        >>> score = score_translations(
        ...     ["会議は明日です。"], ["会議は明日だ。"], language="ja", tokenize="char"
        ... )
        >>> round(score.bleu), score.utterances
        (56, 1)
        >>> table = pd.DataFrame({"reference": ["明日は雨です。"], "translation": ["明日は雨です。"]})
        >>> score_translations(table, by=(), language="ja", tokenize="char")[["language", "chrf"]]
          language   chrf
        0       ja  100.0
    """
    for name in intervals:
        check_choice(name, _INTERVALS, "intervals", "there is no argument")
    if by is not None:
        single = {"glossary": glossary, "sources": sources, "source_language": source_language}
        if refused := [name for name, value in single.items() if value is not None]:
            message = (
                f"{refused[0]} is for one score, not for by=; score the rows of each group by themselves"
            )
            raise InvalidRequestError(message, parameter=refused[0])
        how = {"tokenize": tokenize, "metrics": metrics, "options": options, "scorers": scorers}
        how |= {"reference": reference, "hypothesis": hypothesis, "source": source}
        return _score_groups(references, by, "target_lang" if language is None else language, how, intervals)
    if intervals:
        name = next(iter(intervals))
        message = f"{name} is for by=; without it, the score's confidence_interval takes {name}"
        raise InvalidRequestError(message, parameter=name)
    if source_language is not None:
        language_code(source_language)
    texts = collect_system_translations(references, hypotheses, sources, reference, hypothesis, source)
    check_not_empty(texts)
    if language is None and str(tokenize) == "auto":
        remedy = "name the language, as in language='ja', or a tokenizer; otherwise BLEU is near 0"
        warn_if_unspaced(texts.first_references, remedy)
    metric_of = build_metrics(
        metrics, choose_tokenizer(tokenize, language), options, single=len(texts.references) == 1
    )
    measures = compute_measures(metric_of, scorers, texts, "hypotheses")
    return TranslationScore(
        {name: measure.score for name, measure in measures.items()},
        {name: measure.signature for name, measure in measures.items()},
        len(texts.references),
        sum(1 for alternatives in texts.references if not "".join(alternatives).strip()),
        None if glossary is None else build_glossary_table(texts, glossary, language, source_language),
        measures,
        texts.rows,
    )


def _score_groups(
    frame: Any, by: str | Sequence[str], language: str, how: dict[str, Any], intervals: dict[str, Any]
) -> pd.DataFrame:
    """Corpus scores of groups of translations, with intervals; see :func:`score_translations`."""
    keys = to_column_names(by, "by")
    hint = "Name the right one, as in reference='text'"
    reference, hypothesis = how["reference"], how["hypothesis"]
    frame = require_columns(frame, reference, hypothesis, *keys, argument="references", hint=hint)
    frame, bootstrap = Bootstrap(**(_INTERVALS | intervals)).add_blocks(frame)
    names = [
        *build_metrics(how["metrics"], choose_tokenizer(how["tokenize"], None), how["options"], single=False)
    ]
    names += check_named_functions(how["scorers"], "scorers", names)
    if has_column(frame, language, "language"):
        codes = frame[language].map(language_code, na_action="ignore")
    else:
        codes = pd.Series(language_code(language), index=frame.index)
    keyed = frame.assign(language=codes.astype(object))
    groups_by = [*[key for key in keys if key != "language"], "language"]
    rows = []
    for values, rows_of in keyed.groupby(groups_by, observed=True, sort=True):
        complete_rows = rows_of[rows_of[reference].notna() & rows_of[hypothesis].notna()]
        figures: dict[str, Any] = {"utterances": len(rows_of), "utterances_scored": len(complete_rows)}
        if len(complete_rows):
            score = score_translations(complete_rows, language=str(values[-1]), **how)
            figures |= {"empty_references": score.empty_references}
            for metric in names:
                low, high = score._compute_interval(metric, bootstrap.restrict_to(complete_rows))  # noqa: SLF001 - its own module
                figures |= {metric: score.scores[metric], f"{metric}_low": low, f"{metric}_high": high}
                figures[f"{metric}_signature"] = score.signatures[metric]
        rows.append(dict(zip(groups_by, values, strict=True)) | figures)
    types = dict.fromkeys(("utterances", "utterances_scored", "empty_references"), "Int64")
    for metric in names:
        types |= dict.fromkeys((metric, f"{metric}_low", f"{metric}_high"), "Float64")
        types[f"{metric}_signature"] = "string"
    return add_columns(pd.DataFrame(rows, columns=groups_by), rows, types)
