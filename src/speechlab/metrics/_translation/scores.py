"""Scores of translations: BLEU and chrF by sacrebleu, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from speechlab._arguments import column_names, has_column, is_frame, require_columns
from speechlab.errors import InvalidRequestError, MissingDependencyError
from speechlab.metrics._alignment.units import auto_unit, warn_if_unspaced
from speechlab.metrics._arguments import as_texts, check_choice
from speechlab.metrics._statistics.bootstrap import Bootstrap, Interval
from speechlab.metrics._translation.glossary import glossary_table, rows_and_sources
from speechlab.text import language_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from speechlab.metrics._translation.glossary import Glossary

Metric = Literal["chrf", "bleu"]
# Those of sacrebleu that fetch nothing: its others load a model from elsewhere when they are first used.
_TOKENIZERS = ("13a", "char", "intl", "ja-mecab", "ko-mecab", "none", "zh")
_NEEDS = {"ja-mecab": ("MeCab", "ja"), "ko-mecab": ("mecab_ko", "ko")}


@dataclass(frozen=True, slots=True)
class TranslationScore:
    """Closeness of translations to their references.

    Attributes:
        chrf: chrF, 0 to 100 (Popović 2015), over the corpus.
        bleu: BLEU, 0 to 100, over the corpus, with a tokeniser that fits the language.
        signature: sacrebleu's signature of chrF: what it takes to compute the same number again.
        bleu_signature: The same of BLEU.
        segments: Number of translations.
        empty_references: How many of them have no reference with anything but white space in it; sacrebleu gives such
            a segment no score, and they count in the corpus like all others.
        glossary: One row for each term, if a glossary was given; as :func:`glossary_terms` returns it.
    """

    chrf: float
    bleu: float
    signature: str
    bleu_signature: str
    segments: int
    glossary: pd.DataFrame | None = field(default=None, compare=False, repr=False)
    empty_references: int = 0
    _statistics: tuple[NDArray[np.int64], NDArray[np.int64]] | None = field(
        default=None, compare=False, repr=False
    )

    def confidence_interval(
        self,
        metric: Metric = "chrf",
        level: float = 0.95,
        n: int = 1_000,
        seed: int = 0,
        groups: Iterable[Any] | None = None,
    ) -> Interval:
        """Percentile bootstrap interval of a corpus score (Koehn, 2004).

        Args:
            metric: ``"chrf"`` or ``"bleu"``.
            level: Confidence level, between 0 and 1.
            n: How many draws.
            seed: The same seed gives the same interval.
            groups: Name of a block for each segment, such as its document; blocks are drawn as wholes.

        Returns:
            ``(low, high)``, 0 to 100; both NaN if there are fewer than two segments or blocks.
        """
        return self._interval(metric, Bootstrap(level, n, seed, groups))

    def _interval(self, metric: Metric, draws: Bootstrap) -> Interval:
        check_choice(metric, get_args(Metric), "metric", "there is no metric")
        if self._statistics is None:
            return Interval(math.nan, math.nan)
        rows = self._statistics[get_args(Metric).index(metric)]
        compute = _metrics("none", single=self.segments == 1)[metric]._compute_score_from_stats  # noqa: SLF001
        sums = draws.sums(draws.blocks(rows)).tolist()
        return draws.interval(np.array([compute(row).score for row in sums]))

    def frame(self, level: float = 0.95, n: int = 1_000, seed: int = 0) -> pd.DataFrame:
        """One row for each metric: its name, ``score``, ``low``, ``high`` (0 to 100), ``segments``, ``signature``."""
        import pandas as pd

        rows = []
        for metric, score, signature in (
            ("chrf", self.chrf, self.signature),
            ("bleu", self.bleu, self.bleu_signature),
        ):
            interval = self.confidence_interval(cast("Metric", metric), level, n, seed)
            rows.append((metric, score, *interval, self.segments, signature))
        return pd.DataFrame(rows, columns=["metric", "score", "low", "high", "segments", "signature"])


def translation_score(
    references: Sequence[str | Sequence[str]] | pd.DataFrame,
    hypotheses: Sequence[str] | None = None,
    *,
    language: str | None = None,
    tokenize: str = "auto",
    glossary: Glossary | None = None,
    sources: Sequence[str] | None = None,
    source_language: str | None = None,
    reference: str = "reference",
    hypothesis: str = "translation",
    source: str = "text",
) -> TranslationScore:
    """Score translations with chrF and BLEU.

    Args:
        references: Reference translations, each a text or a list of texts that would all be right (their number may
            vary, and the signature says so); or a table, whose rows without a text on either side are passed over.
        hypotheses: Translations, as many; not for a table.
        language: Code of the language translated into. sacrebleu's default takes a Japanese sentence for one word,
            and gives 0.00 without a warning; here a missing language is warned of where texts look like that.
        tokenize: sacrebleu's tokeniser for BLEU. ``"auto"``: for ``ja``, ``ja-mecab`` if MeCab and its dictionary
            are installed (``pip install 'sacrebleu[ja]'``) and else ``char``; ``zh`` for Chinese, ``char`` for other
            languages without spaces, and ``13a`` for the rest. Or one of sacrebleu's that need no download. The
            signature says which.
        glossary: Terms that must be kept, as for :func:`glossary_terms`; of several references the first is asked.
        sources: The texts that were translated, for a glossary with source terms.
        source_language: Code of their language.
        reference: Column of the references of a table.
        hypothesis: Column of the translations of a table.
        source: Column of the sources of a table; used if it is there.

    Returns:
        The scores, with intervals on request.

    Raises:
        InvalidRequestError: There are none, or the two differ in number, or a language or tokeniser does not exist.
        MissingDependencyError: The tokeniser that was asked for needs MeCab.

    Example:
        >>> score = translation_score(
        ...     ["会議は明日です。"], ["会議は明日だ。"], language="ja", tokenize="char"
        ... )
        >>> round(score.bleu), score.segments
        (56, 1)
    """
    if is_frame(references):
        rows, sources = rows_and_sources(references, hypotheses, sources, reference, hypothesis, source)
        references, hypotheses = rows[reference].tolist(), rows[hypothesis].tolist()
    if source_language is not None:
        language_code(source_language)
    said = _references(references)
    heard = as_texts(() if hypotheses is None else hypotheses, "hypotheses")
    if len(said) != len(heard) or not said:
        message = f"{len(said)} references do not fit {len(heard)} translations; give one for each"
        raise InvalidRequestError(message, parameter="references")
    if sources is not None:
        sources = as_texts(sources, "sources", "give the source of each segment, '' where there is none")
        if len(sources) != len(said):
            message = f"{len(said)} references do not fit {len(sources)} sources; give one for each"
            raise InvalidRequestError(message, parameter="sources")
    first = [texts[0] for texts in said]
    if language is None and str(tokenize) == "auto":
        warn_if_unspaced(first, "name the language, as in language='ja', or a tokeniser: BLEU is near 0 else")
    score = _score(said, heard, _tokenizer(tokenize, language))
    if glossary is None:
        return score
    table = glossary_table(first, heard, glossary, sources, language, source_language)
    return replace(score, glossary=table)


def _score(said: list[list[str]], heard: list[str], tokenizer: str) -> TranslationScore:
    metrics = _metrics(tokenizer, single=len(said) == 1)
    # sacrebleu wants a list of first references, one of second ones, and so on, with None where there is none.
    streams = list(zip_longest(*said))
    scores, statistics = {}, []
    for name, metric in metrics.items():
        rows = metric._extract_corpus_statistics(heard, streams)  # noqa: SLF001 - sums of these are the corpus score
        scores[name] = metric._aggregate_and_compute(rows).score  # noqa: SLF001
        statistics.append(np.array(rows, dtype=np.int64))
    return TranslationScore(
        scores["chrf"],
        scores["bleu"],
        str(metrics["chrf"].get_signature()),
        str(metrics["bleu"].get_signature()),
        len(said),
        None,
        sum(1 for texts in said if not "".join(texts).strip()),
        (statistics[0], statistics[1]),
    )


def score_translations(
    frame: pd.DataFrame,
    reference: str = "reference",
    hypothesis: str = "translation",
    language: str = "target_lang",
    by: str | Sequence[str] = (),
    *,
    tokenize: str = "auto",
    level: float = 0.95,
    n: int = 1_000,
    seed: int = 0,
    groups: str | None = None,
) -> pd.DataFrame:
    """Corpus scores of groups of translations, with intervals.

    Args:
        frame: One row for each translation.
        reference: Column of the reference translations.
        hypothesis: Column of the translations.
        language: Column of the languages translated into; or the language of all rows.
        by: Columns to group by; languages are never mixed.
        tokenize: As for :func:`translation_score`.
        level: Confidence level of the intervals.
        n: Bootstrap draws of each.
        seed: The same seed gives the same table.
        groups: Column of blocks, such as documents, that are drawn as wholes.

    Returns:
        One row for each group and language: the columns of ``by``, ``language``, ``n`` (rows), ``n_scored`` (rows
        with both texts), ``empty_references``, ``chrf``, ``chrf_low``, ``chrf_high``,
        ``bleu``, ``bleu_low``, ``bleu_high`` (0 to 100), ``signature`` (of chrF) and ``bleu_signature``.

    Raises:
        InvalidRequestError: A column is missing, or a language or tokeniser does not exist.
    """
    import pandas as pd

    draws = Bootstrap(level, n, seed, groups)
    keys = column_names(by, "by")
    hint = "Name the right one, as in reference='text'"
    require_columns(frame, reference, hypothesis, *keys, *draws.columns, hint=hint)
    _tokenizer(tokenize, None)
    if has_column(frame, language, "language"):
        codes = frame[language].map(language_code, na_action="ignore")
    else:
        codes = pd.Series(language_code(language), index=frame.index)
    keyed = frame.assign(language=codes.astype(object))
    names = [*[key for key in keys if key != "language"], "language"]
    rows = []
    for values, part in keyed.groupby(names, observed=True, sort=True):
        done = part[part[reference].notna() & part[hypothesis].notna()]
        figures: dict[str, Any] = {"n": len(part), "n_scored": len(done)}
        if len(done):
            score = translation_score(
                done[reference].tolist(),
                done[hypothesis].tolist(),
                language=str(values[-1]),
                tokenize=tokenize,
            )
            figures |= {"empty_references": score.empty_references}
            figures |= {"signature": score.signature, "bleu_signature": score.bleu_signature}
            for metric in get_args(Metric):
                low, high = score._interval(metric, draws.within(done))  # noqa: SLF001 - its own module
                figures |= {metric: getattr(score, metric), f"{metric}_low": low, f"{metric}_high": high}
        rows.append(dict(zip(names, values, strict=True)) | figures)
    return pd.DataFrame(rows, columns=[*names, *_SUMMARY]).astype(_SUMMARY)


_SUMMARY = {
    "n": "Int64",
    "n_scored": "Int64",
    "empty_references": "Int64",
    **{f"{metric}{end}": "Float64" for metric in get_args(Metric) for end in ("", "_low", "_high")},
    "signature": "string",
    "bleu_signature": "string",
}


def _references(references: Any) -> list[list[str]]:
    """For each segment all its references; the first kind of argument, one text alone, stays what it was."""
    if isinstance(references, str) or not isinstance(references, Iterable):
        return [[text] for text in as_texts(references, "references")]
    said = []
    for position, entry in enumerate(references):
        texts = as_texts(entry, f"references[{position}]")
        if not texts:
            message = f"references[{position}] is empty; give at least one reference for each translation"
            raise InvalidRequestError(message, parameter="references")
        said.append(texts)
    return said


def _metrics(tokenize: str, *, single: bool) -> dict[str, Any]:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    metrics = {"chrf": CHRF(), "bleu": BLEU(tokenize=tokenize, effective_order=single)}
    for metric in metrics.values():
        metric.num_refs = 1
    return metrics


def _tokenizer(tokenize: str, language: str | None) -> str:
    check_choice(tokenize, ("auto", *_TOKENIZERS), "tokenize", "there is no tokeniser")
    if tokenize != "auto":
        module, extra = _NEEDS.get(tokenize, ("sacrebleu", ""))
        if find_spec(module) is None:
            message = (
                f"the tokeniser {tokenize!r} needs MeCab; install it with: pip install 'sacrebleu[{extra}]'"
            )
            raise MissingDependencyError(message)
        return tokenize
    code = None if language is None else language_code(language)
    if code == "ja" and find_spec("MeCab") is not None and find_spec("ipadic") is not None:
        return "ja-mecab"
    if code is None or code == "zh":
        return code or "13a"
    return "char" if auto_unit(code) == "char" else "13a"
