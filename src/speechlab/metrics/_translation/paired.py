"""Paired tests of translation systems, as sacrebleu makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_frame, require_columns
from speechlab.errors import InvalidRequestError
from speechlab.metrics._arguments import as_texts, check_choice, check_index
from speechlab.metrics._statistics.bootstrap import Bootstrap
from speechlab.metrics._translation.measures import make_metrics, tokenizer
from speechlab.metrics._translation.scores import as_references, as_streams

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

_TESTS = {"bootstrap": "bs", "randomization": "ar"}


def compare_translations(
    references: Sequence[str | Sequence[str]] | pd.DataFrame,
    systems: Mapping[str, Any],
    *,
    language: str | None = None,
    tokenize: str = "auto",
    metrics: Sequence[str] = ("chrf", "bleu"),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    test: str = "randomization",
    draws: int | None = None,
    level: float = 0.95,
    reference: str = "reference",
) -> pd.DataFrame:
    """Compare translation systems with the first of them, by sacrebleu's paired tests.

    Args:
        references: As for :func:`translation_score`; or a table.
        systems: For each system, the baseline first, its translations; of a table the column that has them. Rows of a
            table in which one text is missing are passed over.
        language: As for :func:`translation_score`, like the next three.
        tokenize: Tokeniser of BLEU.
        metrics: Metrics by their names.
        options: Arguments of sacrebleu's classes.
        test: ``"randomization"`` (paired approximate randomisation: Riezler and Maxwell, 2005) or ``"bootstrap"``
            (paired bootstrap resampling: Koehn, 2004), which gives no verdict: by sacrebleu's p-value of it, equal
            systems were called different in 9 % of simulated corpora instead of 5 %.
        draws: How many; None for sacrebleu's own number (10,000 trials, or 1,000 draws). Its seed is 12345, or what
            the environment variable ``SACREBLEU_SEED`` says.
        level: Confidence level: ``significant`` is ``p < 1 - level``.
        reference: Column of the references of a table.

    Returns:
        For each system and metric a row: ``system``, ``metric``, ``score``, ``difference`` (from the baseline), ``p``
        and ``significant`` (both missing for the baseline), ``utterances`` and ``signature``, which names test, draws
        and seed.

    Raises:
        InvalidRequestError: Fewer than two systems, lists of different lengths, or a column, metric, option,
            tokeniser or test that does not exist.

    Example:
        >>> table = compare_translations(
        ...     ["the cat sat"] * 20,
        ...     {"old": ["a dog ran"] * 20, "new": ["the cat sat"] * 20},
        ...     metrics=["chrf"],
        ... )
        >>> table["system"].tolist(), bool(table["significant"][1])
        (['old', 'new'], True)
    """
    import pandas as pd
    from sacrebleu.significance import PairedTest

    Bootstrap(level, 1 if draws is None else draws, 0)
    check_choice(test, _TESTS, "test", "there is no test")
    said, texts = _lists(references, systems, reference)
    made = make_metrics(metrics, tokenizer(tokenize, language), options, single=False)
    for metric in made.values():
        metric.num_refs = max(map(len, said))
    streams: Any = as_streams(said)
    paired = PairedTest(
        list(texts.items()), made, streams, _TESTS[test], n_samples=draws or 0, n_ar_confidence=-1
    )
    signatures, found = paired()
    results: dict[str, list[Any]] = dict(found)
    names = [name for name in results if name != "System"]
    rows = []
    for metric, key in zip(made, names, strict=True):
        base = results[key][0].score
        for system, result in zip(texts, results[key], strict=True):
            p = result.p_value
            verdict = None if p is None or test != "randomization" else p < 1 - level
            figures = (result.score, result.score - base, p, verdict)
            rows.append((system, metric, *figures, len(said), str(signatures[key])))
    return pd.DataFrame(rows, columns=list(_TYPES)).astype(_TYPES)


_TYPES = {
    "system": "string",
    "metric": "string",
    "score": "Float64",
    "difference": "Float64",
    "p": "Float64",
    "significant": "boolean",
    "utterances": "Int64",
    "signature": "string",
}


def _lists(references: Any, systems: Any, reference: str) -> tuple[list[list[str]], dict[str, list[str]]]:
    if not isinstance(systems, Mapping) or len(systems) < 2:
        message = (
            f"systems is {systems!r:.60}; give a dict from names to translations, of two systems or more"
        )
        raise InvalidRequestError(message, parameter="systems")
    if is_frame(references):
        columns: list[Any] = list(systems.values())
        require_columns(references, reference, *columns, hint="Name the right one, as in reference='text'")
        rows: Any = references.dropna(subset=[reference, *columns])
        given: dict[Any, Any] = {
            name: rows[column].tolist() for name, column in zip(systems, columns, strict=True)
        }
        said = as_references(rows[reference].tolist())
    else:
        given = dict(systems)
        index: Any = getattr(references, "index", None)
        for name, translations in given.items():
            check_index(translations, index, f"systems[{name!r}]")
        said = as_references(references)
    texts = {str(name): as_texts(values, f"systems[{name!r}]") for name, values in given.items()}
    for name, translations in texts.items():
        if len(translations) != len(said) or not said:
            message = f"{len(said)} references do not fit {len(translations)} translations of {name!r}; give as many"
            raise InvalidRequestError(message, parameter="systems")
    return said, texts
