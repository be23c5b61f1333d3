"""Components of variance: between systems, between utterances, of their interaction, and between takes.

The model is a two-way layout with random effects. The method of moments gives the components: mean squares are set
equal to their expected values. A negative component becomes zero.

Source: S. R. Searle, G. Casella, C. E. McCulloch, Variance Components (1992), chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Components(NamedTuple):
    """Components of the variance of one take of one utterance by one system."""

    system: float  # variance between systems
    utterance: float  # variance between utterances
    # interaction of systems and utterances; without repeated takes, it includes the variance between takes
    both: float
    take: float  # variance between takes of one utterance by one system; NaN without repeated takes


def components(means: NDArray[np.float64], spread: NDArray[np.float64], takes: float) -> Components | None:
    """Components of variance of a full table."""
    systems, utterances = means.shape
    if systems < 2 or utterances < 2:
        return None
    grand = means.mean()
    rows, columns = means.mean(axis=1), means.mean(axis=0)
    residuals = means - rows[:, None] - columns[None, :] + grand
    rest_square = float((residuals**2).sum()) / ((systems - 1) * (utterances - 1))
    row_square = utterances * float(((rows - grand) ** 2).sum()) / (systems - 1)
    column_square = systems * float(((columns - grand) ** 2).sum()) / (utterances - 1)
    finite = spread[np.isfinite(spread)]
    take = float(finite.mean()) if len(finite) else float("nan")
    return Components(
        system=max(0.0, (row_square - rest_square) / utterances),
        utterance=max(0.0, (column_square - rest_square) / systems),
        both=max(0.0, rest_square - (take / takes if len(finite) else 0.0)),
        take=take,
    )
