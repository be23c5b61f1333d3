"""Paired tests of translation systems: sacrebleu's tests, also by blocks and with scorers of the user.

Approximate randomization swaps the two systems in random blocks; the paired bootstrap draws blocks with replacement.
Random numbers are drawn as in sacrebleu, so blocks of one utterance give the same draws as sacrebleu.

Source: S. Riezler, J. T. Maxwell, On some pitfalls in automatic evaluation and significance testing for MT (2005);
P. Koehn, Statistical significance tests for machine translation evaluation (EMNLP 2004).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import convert_table, is_pandas_frame
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.metrics._inputs import Groups, check_choice
from speechlab.metrics._statistics.bootstrap import Bootstrap
from speechlab.metrics._statistics.significance import BETTER, POINTS, WORSE, judge
from speechlab.metrics._translation.texts import Translations, check_not_empty, collect_translations
from speechlab.metrics._translation.translation_metrics import (
    Scorer,
    build_metrics,
    choose_tokenizer,
    compute_measures,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CELLS_AT_ONCE = 4_000_000  # of draws x blocks: 32 MB
_FEW = 13  # blocks: up to this number, there are fewer ways to swap than draws
_ALIKE = 1e-6  # relative to the scores: rounding errors of equal differences


@dataclass(frozen=True)
class PairedDraws:
    """Random draws, the same for all pairs of systems and all metrics."""

    blocks: int
    draws: int
    seed: int | None  # that of sacrebleu gives the same draws; None for new draws each time

    def compute_randomization_p_values(
        self, base: NDArray[Any], other: NDArray[Any], score: Callable[[Any], float]
    ) -> tuple[float, float]:
        """P-values of approximate randomization, with and without the draws that equal the observed difference.

        sacrebleu leaves these draws out. Its p-value is too small for few blocks or coarse scores.
        """
        observed, tolerance = _compute_score_difference(base.sum(0), other.sum(0), score)
        as_large = larger = 0
        random = np.random.default_rng(self.seed)
        for size in self._iterate_batch_sizes():
            swapped = random.integers(2, size=(size, self.blocks), dtype=bool)
            counts = np.ones(size, dtype=np.int64)
            if self.blocks <= _FEW:  # most draws are equal: score each distinct one once
                swapped, counts = np.unique(swapped, axis=0, return_counts=True)
            sums = _sum_swapped_systems(swapped, base, other), _sum_swapped_systems(swapped, other, base)
            for first, second, count in zip(*sums, counts.tolist(), strict=True):
                difference, _ = _compute_score_difference(first, second, score)
                larger += count * (difference > observed)
                as_large += count * (difference >= observed - tolerance)
        return (as_large + 1) / (self.draws + 1), (larger + 1) / (self.draws + 1)

    def compute_bootstrap_p_values(
        self, base: NDArray[Any], other: NDArray[Any], score: Callable[[Any], float]
    ) -> tuple[float, float]:
        """P-value of the paired bootstrap as in sacrebleu, twice, in the shape of :meth:`randomization`."""
        observed, _ = _compute_score_difference(base.sum(0), other.sum(0), score)
        samples = []
        random = np.random.default_rng(self.seed)
        for size in self._iterate_batch_sizes():
            drawn = random.choice(self.blocks, size=(size, self.blocks), replace=True)
            counts = np.stack([np.bincount(row, minlength=self.blocks) for row in drawn]).astype(np.float64)
            # In 32 bits as in sacrebleu: with 64 bits, scores would differ from it in the last digits.
            pairs = zip((counts @ base).astype("float32"), (counts @ other).astype("float32"), strict=True)
            samples += [
                _compute_score_difference(first, second, score, listed=False)[0] for first, second in pairs
            ]
        differences = np.array(samples)
        p = (int(((differences - differences.mean()) > observed).sum()) + 1) / (self.draws + 1)
        return p, p

    def _iterate_batch_sizes(self) -> Iterator[int]:
        step = max(1, _CELLS_AT_ONCE // max(self.blocks, 1))
        return (min(step, self.draws - start) for start in range(0, self.draws, step))


def _sum_swapped_systems(swapped: NDArray[np.bool_], base: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    sums = swapped.astype(np.float64) @ base + (~swapped).astype(np.float64) @ other
    return np.asarray(sums, dtype=np.int64 if np.issubdtype(base.dtype, np.integer) else np.float64)


def _compute_score_difference(
    first: NDArray[Any], second: NDArray[Any], score: Callable[[Any], float], *, listed: bool = True
) -> tuple[float, float]:
    """Return the absolute difference of the scores of two sums, and its tolerance for rounding errors."""
    first_score, second_score = (score(sums.tolist() if listed else sums) for sums in (first, second))
    return abs(first_score - second_score), _ALIKE * max(abs(first_score), abs(second_score))


_TESTS = {"bootstrap": "bs", "randomization": "ar"}
_DRAWS = {"bootstrap": 1_000, "randomization": 10_000}  # sacrebleu's


def compare_translations(
    references: Sequence[str | Sequence[str]] | pd.DataFrame,
    systems: Mapping[str, Any],
    *,
    language: str | None = None,
    tokenize: str = "auto",
    metrics: Sequence[str] = ("chrf", "bleu"),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    scorers: Mapping[str, Scorer] | None = None,
    sources: Sequence[str] | None = None,
    test: str = "randomization",
    draws: int | None = None,
    level: float = 0.95,
    groups: Groups = None,
    reference: str = "reference",
    source: str = "text",
) -> pd.DataFrame:
    """Compare translation systems with the first of them, by sacrebleu's paired tests.

    Args:
        references: As for :func:`score_translations`; or a table.
        systems: The translations of each system, the baseline first; for a table, the column of each system. Rows of
            a table with a missing text are skipped.
        language: Code of the target language, as for :func:`score_translations`.
        tokenize: Tokenizer of BLEU, as for :func:`score_translations`.
        metrics: Names of metrics, as for :func:`score_translations`.
        options: Arguments of sacrebleu's classes, as for :func:`score_translations`.
        scorers: Other metrics, as for :func:`score_translations`.
        sources: Source texts, for scorers; None for a table.
        test: ``"randomization"`` (paired approximate randomization: Riezler and Maxwell, 2005) or ``"bootstrap"``
            (paired bootstrap resampling: Koehn, 2004). The bootstrap gives no verdict: by sacrebleu's p-value, equal
            systems were called different in 9% of simulated corpora instead of 5%.
        draws: Number of draws; None for sacrebleu's default (10,000 trials, or 1,000 bootstrap draws). The seed is
            sacrebleu's: 12345, or the value of the environment variable ``SACREBLEU_SEED``. Intervals have the same
            number of draws, 1,000 by default.
        level: Confidence level of intervals and verdicts.
        groups: Column of a table with blocks, such as documents, or a name for each reference. Blocks are swapped or
            drawn as wholes. The effect of one document on one system is then no evidence for other documents.
        reference: Column of the references of a table.
        source: Column of the sources of a table; used if it exists.

    Returns:
        One row for each metric and system after the first: the columns of :func:`judge`, where ``a`` is
        the baseline and ``measure`` the metric.

        - ``low`` and ``high``: a paired bootstrap interval (Koehn, 2004), widened for few blocks as all intervals
          here; missing with fewer than two utterances or blocks. Where no block differs, it has room for a difference
          that the sample may lack; of ``scorers`` it is missing. Each is for one difference and is not corrected.
        - ``p_holm`` is corrected for the number of systems, for each metric separately.
        - ``verdict``: missing for ``test="bootstrap"``. More is better, but for TER.
        - ``p_sacrebleu``: the p-value of sacrebleu. ``p`` counts draws that equal the observed difference, which a
          randomization test needs. ``p_sacrebleu`` leaves them out, and is too small for few utterances. It is
          missing for groups and scorers, for which sacrebleu has no test.
        - ``blocks``, and ``signature`` with the test, the draws and the seed.

    Raises:
        InvalidRequestError: There are fewer than two systems, lists differ in length, or a column, metric, option,
            tokenizer or test does not exist.

    Example:
        >>> table = compare_translations(
        ...     ["the cat sat"] * 20,
        ...     {"old": ["a dog ran"] * 20, "new": ["the cat sat"] * 20},
        ...     metrics=["chrf"],
        ... )
        >>> table[["a", "b", "verdict"]].values.tolist()
        [['old', 'new', 'better']]
    """
    bootstrap = Bootstrap(level, _DRAWS.get(str(test), 1) if draws is None else draws, 0, groups)
    check_choice(test, _TESTS, "test", "there is no test")
    texts, bootstrap = _collect_texts_and_blocks(references, systems, bootstrap, sources, reference, source)
    metric_of = build_metrics(metrics, choose_tokenizer(tokenize, language), options, single=False)
    systems_measured = {
        argument: compute_measures(metric_of, scorers, texts, argument) for argument in texts.systems
    }
    (base_name, *names), (base_measures, *compared) = map(str, systems), systems_measured.values()
    written_seed = os.environ.get("SACREBLEU_SEED", "12345")
    seed = None if written_seed.lower() == "none" else int(written_seed)
    interval = replace(bootstrap, draws=_DRAWS["bootstrap"] if draws is None else draws, seed=seed or 0)
    rows = []
    for metric, (before, signature, statistics, compute) in base_measures.items():
        # A test needs the figures of each block, and the function from their sums to a score.
        base = bootstrap.sum_blocks(statistics)
        paired = PairedDraws(len(base), bootstrap.draws, seed)
        run = (
            paired.compute_randomization_p_values
            if test == "randomization"
            else paired.compute_bootstrap_p_values
        )
        what = {
            "a": base_name,
            "measure": metric,
            "unit": POINTS,
            "n": len(texts.references),
            "value_a": before,
            "test": f"paired {test}",
            "blocks": len(base),
            "signature": _build_test_signature(metric_of.get(metric), signature, test, paired, groups),
            "more": WORSE if metric == "ter" else BETTER,
        }
        for name, measures in zip(names, compared, strict=True):
            blocks, score = bootstrap.sum_blocks(measures[metric].statistics), measures[metric].score
            ends = 100 if metric in metric_of else math.nan  # what scorers can give is not known
            low, high = interval.compute_gain_interval(statistics, measures[metric].statistics, compute, ends)
            p, theirs = run(base, blocks, compute)
            figures = {"b": name, "value_b": score, "difference": score - before, "low": low, "high": high}
            of_sacrebleu = theirs if groups is None and metric in metric_of else math.nan
            rows.append({**what, **figures, "p": p, "p_sacrebleu": of_sacrebleu})
    table = judge(rows, level=level, by="measure")
    return table if test == "randomization" else table.assign(verdict=pd.array([None] * len(table), "string"))


def compute_chrf_pseudo_values(
    references: Sequence[str], systems: Mapping[str, Sequence[str]], groups: Groups = None
) -> dict[str, NDArray[np.float64]]:
    """Return of each system the jackknife's pseudo-values of its chrF, whose mean is the score, for each block."""
    bootstrap = Bootstrap(0.95, 1, 0, groups)
    texts, bootstrap = _collect_texts_and_blocks(references, systems, bootstrap, None, "", "")
    metrics = build_metrics(["chrf"], "13a", None, single=False)
    measures = {
        str(name): compute_measures(metrics, None, texts, argument)["chrf"]
        for name, argument in zip(systems, texts.systems, strict=True)
    }
    return {
        name: compute_pseudo_values(bootstrap.sum_blocks(measure.statistics), measure.compute)
        for name, measure in measures.items()
    }


def compute_pseudo_values(blocks: NDArray[Any], compute: Callable[[list[Any]], float]) -> NDArray[np.float64]:
    """Return the jackknife's pseudo-value of each block, for a score that is computed from sums of their figures."""
    count, whole = len(blocks), blocks.sum(0)
    without = np.array([compute(sums) for sums in (whole - blocks).tolist()], dtype=np.float64)
    return count * compute(whole.tolist()) - (count - 1) * without


def _build_test_signature(metric: Any, plain: str, test: str, paired: PairedDraws, groups: object) -> str:
    """Return the signature of sacrebleu, with the number of blocks if there are groups."""
    facts = {"seed": str(paired.seed).lower(), _TESTS[test]: paired.draws}
    blocks = "" if groups is None else f"|blocks:{paired.blocks}"
    if metric is None:
        return f"{plain}|{'|'.join(f'{key}:{value}' for key, value in facts.items())}{blocks}"
    signature = metric.get_signature()
    for key, value in facts.items():
        signature.update(key, value)
    return f"{signature}{blocks}"


def _collect_texts_and_blocks(
    references: Any,
    systems: Any,
    bootstrap: Bootstrap,
    sources: Sequence[str] | None,
    reference: str,
    source: str,
) -> tuple[Translations, Bootstrap]:
    """Return the texts of all systems, and the blocks of the segments."""
    if not isinstance(systems, Mapping) or len(systems) < 2:
        kind = f"dict of {len(systems)}" if isinstance(systems, Mapping) else type(systems).__name__
        swapped = "references is a dict, and " if isinstance(references, Mapping) else ""
        message = (
            f"{swapped}systems is a {kind}; give the references first, then a dict from names to translations, of "
            "two systems or more"
        )
        raise InvalidRequestError(message, parameter="systems")
    references = convert_table(references)
    of_table = is_pandas_frame(references)
    if of_table and sources is not None:
        message = (
            "the table already has sources; leave sources out, and name their column, as in source='text'"
        )
        raise InvalidRequestError(message, parameter="sources")
    if of_table:
        references, bootstrap = bootstrap.add_blocks(references, "references")
    arguments = {f"systems[{str(name)!r}]": values for name, values in systems.items()}
    texts = collect_translations(references, arguments, sources, reference, source)
    check_not_empty(texts)
    return texts, bootstrap.bind_rows(texts.rows)
