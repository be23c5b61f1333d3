"""The options of an engine, checked by the signature of its factory before it is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

from speechlab.errors import ConfigurationError

# Parameters of factories that are objects: none can be given in a configuration.
_OBJECTS = frozenset({"store", "reader"})
_MINIMUMS = {"threads": 0, "beam_size": 1, "context_tokens": 1}
_CHECKS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "None": ("null", lambda value: value is None),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int": ("a whole number", lambda value: isinstance(value, Integral) and not isinstance(value, bool)),
    "str": ("a text", lambda value: isinstance(value, str)),
    "Sequence[str]": (
        'a list of texts, such as ["de", "en"]',
        lambda value: isinstance(value, list | tuple) and all(isinstance(item, str) for item in value),
    ),
}


def check_options(name: str, factory: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Check that an engine has the options, and that their values have its types.

    Raises:
        ConfigurationError: An option does not exist, or has a value of another type.
    """
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # a factory without a signature
        return
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    unknown = sorted(set(options) - set(parameters))
    if unknown:
        known = ", ".join(option for option in parameters if option not in _OBJECTS) or "none"
        raise ConfigurationError(
            f"the engine {name!r} cannot be made with {unknown}: its options are {known}"
        )
    for option, value in options.items():
        kinds = str(parameters[option].annotation).split(" | ")
        # A type that is not in the table is the engine's own business.
        if all(kind in _CHECKS for kind in kinds) and not any(_CHECKS[kind][1](value) for kind in kinds):
            wanted = " or ".join(_CHECKS[kind][0] for kind in kinds if kind != "None")
            raise ConfigurationError(f"the option {option!r} of {name!r} is {value!r}; it must be {wanted}")
        minimum = _MINIMUMS.get(option)
        if minimum is not None and isinstance(value, Integral) and int(value) < minimum:
            raise ConfigurationError(
                f"the option {option!r} of {name!r} is {value!r}; it must be at least {minimum}"
            )
