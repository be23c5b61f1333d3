"""The assignment problem: a column for each row of a cost table, at the lowest total cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def cheapest_assignment(costs: Sequence[Sequence[int]]) -> list[int]:
    """Assign a different column to each row, at the lowest total cost.

    The Hungarian method: rows are added one by one, each along the cheapest augmenting path. Prices of rows and
    columns keep all reduced costs at 0 or more.
    """
    size = len(costs)
    row_price: list[float] = [0] * (size + 1)
    column_price: list[float] = [0] * (size + 1)
    owner = [0] * (size + 1)  # row of each column, counted from 1; 0 for none
    for row in range(1, size + 1):
        owner[0] = row
        column = 0
        distance: list[float] = [math.inf] * (size + 1)
        before = [0] * (size + 1)
        settled = [False] * (size + 1)
        while owner[column]:
            settled[column] = True
            row_here, step, nearest = owner[column], math.inf, 0  # of whole costs, all prices are whole
            for candidate in range(1, size + 1):
                if settled[candidate]:
                    continue
                through = costs[row_here - 1][candidate - 1] - row_price[row_here] - column_price[candidate]
                if through < distance[candidate]:
                    distance[candidate], before[candidate] = through, column
                if distance[candidate] < step:
                    step, nearest = distance[candidate], candidate
            for candidate in range(size + 1):
                if settled[candidate]:
                    row_price[owner[candidate]] += step
                    column_price[candidate] -= step
                else:
                    distance[candidate] -= step
            column = nearest
        while column:
            owner[column] = owner[before[column]]
            column = before[column]
    columns = [0] * size
    for column in range(1, size + 1):
        columns[owner[column] - 1] = column - 1
    return columns
