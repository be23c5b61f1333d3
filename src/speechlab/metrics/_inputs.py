"""Argument checks of this room: lists of texts, choices, and numbers in a range.

An invalid argument raises an error with the argument's name. An invalid row of a table does not, because one row must
not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeAlias

from speechlab._arguments import convert_table, is_number, is_pandas_frame, require_columns
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError

# Blocks for resampling: a column of the table, or a name for each row.
Groups: TypeAlias = Hashable | Iterable[Any] | None


def to_texts(values: object, argument: str, remedy: str = "leave such pairs out") -> list[str]:
    """Return one text or several as a list."""
    if isinstance(values, str):
        return [values]
    values = convert_table(values)
    if (
        not isinstance(values, Iterable)
        or isinstance(values, Mapping | set | frozenset | bytes)
        or is_pandas_frame(values)
    ):
        message = f"{argument} is {values!r:.60} ({type(values).__name__}); give one text, or a list of texts"
        raise InvalidRequestError(message, parameter=argument)
    texts: list[Any] = list(values)
    if set(map(type, texts)) <= {str}:
        return texts
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            message = f"{argument}[{position}] is {text!r:.60}, not a text; {remedy}"
            raise InvalidRequestError(message, parameter=argument)
    return texts


def to_text_pairs(
    references: object, hypotheses: object, reference: str, hypothesis: str, remedy: str
) -> tuple[list[str], list[str], Any]:
    """References and hypotheses as two lists of texts, from lists, Series, or a table with its columns."""
    references = convert_table(references)
    if is_pandas_frame(references):
        refuse_hypotheses_with_table(hypotheses)
        hint = "Name the right one, as in reference='text'"
        references = require_columns(references, reference, hypothesis, argument="references", hint=hint)
        reference_texts = to_texts(references[reference].tolist(), reference, remedy)
        return reference_texts, to_texts(references[hypothesis].tolist(), hypothesis, remedy), references
    if isinstance(references, str) != isinstance(hypotheses, str):
        message = "references and hypotheses must both be one text, or both be lists of texts"
        raise InvalidRequestError(message, parameter="hypotheses")
    index = get_shared_index(references, hypotheses=hypotheses)
    reference_texts = to_texts(references, "references", remedy)
    hypothesis_texts = to_texts(hypotheses, "hypotheses", remedy)
    _check_equal_lengths(reference_texts, hypothesis_texts)
    return reference_texts, hypothesis_texts, index


def refuse_hypotheses_with_table(hypotheses: object) -> None:
    """Refuse hypotheses passed with a table, which has a column of them."""
    if hypotheses is not None:
        message = "the table already has hypotheses; leave hypotheses out, or give two lists"
        raise InvalidRequestError(message, parameter="hypotheses")


def get_shared_index(first: object, **others: object) -> Any:
    """Return the index of a Series, from which no other Series may differ; None for a list."""
    index = getattr(first, "index", None)
    for argument, values in others.items():
        check_same_index(values, index, argument)
    return None if callable(index) else index


def _check_equal_lengths(references: list[Any], hypotheses: list[Any]) -> None:
    if len(references) != len(hypotheses):
        counts = f"{len(references)} references and {len(hypotheses)} hypotheses"
        message = f"there are {counts}; give one hypothesis for each"
        raise InvalidRequestError(message, parameter="hypotheses")


def to_text_table(references: Any, hypotheses: object, reference: str, hypothesis: str) -> Any:
    """A table with references and hypotheses, some of which may be missing: the given one, or one of two lists."""
    references = convert_table(references)
    if is_pandas_frame(references) or hypotheses is None:
        refuse_hypotheses_with_table(hypotheses)
        return references
    sides = []
    for values, argument in ((references, "references"), (hypotheses, "hypotheses")):
        if isinstance(values, str | bytes | Mapping | set | frozenset) or not isinstance(values, Iterable):
            message = (
                f"{argument} is {values!r:.60} ({type(values).__name__}); give a table, or a list of texts"
            )
            raise InvalidRequestError(message, parameter=argument)
        sides.append(list(values))
    index = get_shared_index(references, hypotheses=hypotheses)
    _check_equal_lengths(*sides)
    return pd.DataFrame(
        {name: _to_series(side, index) for name, side in zip((reference, hypothesis), sides, strict=True)}
    )


def _to_series(values: list[Any], index: Any) -> Any:
    try:
        return pd.Series(values, index)
    except UnicodeEncodeError:  # lone surrogates, which Arrow cannot encode
        return pd.Series(values, index, dtype=object)


def check_same_index(values: object, index: Any, argument: str) -> None:
    """Refuse a Series whose index differs from that of its partner."""
    own_index = getattr(values, "index", None)
    if own_index is None or index is None or callable(own_index) or callable(index):
        return
    if len(own_index) == len(index) > 0 and not own_index.equals(index):
        first, second = own_index[:1].tolist()[0], index[:1].tolist()[0]
        message = (
            f"the index of the Series {argument} differs from that of the other values (it begins with "
            f"{first!r:.40}, not {second!r:.40}), so pairing by position would be a guess; put both into one "
            f"table, or give {argument}.tolist() if the order is right"
        )
        raise InvalidRequestError(message, parameter=argument)


def check_named_functions(
    functions: Any, argument: str, taken: Iterable[str]
) -> dict[str, Callable[..., Any]]:
    """Functions of the user by their names, none of which is the name of a column or measure that there is."""
    if functions is None:
        return {}
    if not isinstance(functions, Mapping) or not all(
        isinstance(name, str) and callable(function) for name, function in functions.items()
    ):
        message = f"{argument} is {functions!r:.60}; give a dict from names to functions"
        raise InvalidRequestError(message, parameter=argument)
    if same := set(taken) & set(functions):
        message = f"{argument} has {min(same)!r}, the name of another column or measure; give it another name"
        raise InvalidRequestError(message, parameter=argument)
    return dict(functions)


def check_choice(value: object, choices: Iterable[str], argument: str, what: str) -> None:
    """Refuse a value that is not one of the choices."""
    names = tuple(choices)
    if not isinstance(value, str) or value not in names:
        message = f"{what} {value!r:.60}; use one of {', '.join(map(repr, names))}"
        raise InvalidRequestError(message, parameter=argument)


def check_number(value: object, argument: str, low: float, high: float, unit: str) -> None:
    """Refuse a value that is not a number in the range."""
    if not is_number(value) or not low <= float(value) <= high:
        message = (
            f"{argument}={value!r:.60} is out of range; give a number of {unit} from {low:g} to {high:g}"
        )
        raise InvalidRequestError(message, parameter=argument)
