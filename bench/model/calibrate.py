# SPDX-License-Identifier: Apache-2.0
"""Costs from measured chases: least squares of the relative error, no cost below zero."""

from itertools import combinations

from .chase import Costs, Gaps, processes_without_core, trips


def solve(matrix, right):
    """Gauss with pivoting; None when the system is singular."""
    size = len(right)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda r: abs(rows[r][column]))
        if abs(rows[pivot][column]) < 1e-12:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(column + 1, size):
            factor = rows[row][column] / rows[column][column]
            rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column])]
    values = [0.0] * size
    for row in reversed(range(size)):
        known = sum(rows[row][c] * values[c] for c in range(row + 1, size))
        values[row] = (rows[row][size] - known) / rows[row][row]
    return values


def _fit_some(rows, columns):
    normal = [[sum(r[a] * r[b] for r in rows) for b in columns] for a in columns]
    return solve(normal, [sum(r[a] for r in rows) for a in columns])


def fit(rows):
    """Non-negative x with rows·x as near 1 as can be: there are three unknowns, so every subset is tried."""
    unknowns = len(rows[0])
    best, best_error = None, None
    for count in range(1, unknowns + 1):
        for columns in combinations(range(unknowns), count):
            some = _fit_some(rows, columns)
            if some is None or min(some) < 0:
                continue
            x = [0.0] * unknowns
            for column, value in zip(columns, some):
                x[column] = value
            error = sum((sum(a * b for a, b in zip(r, x)) - 1) ** 2 for r in rows)
            if best is None or error < best_error * (1 - 1e-9):
                best, best_error = x, error
    return best


def costs_of(mode, samples, cores):
    """`samples`: (servers, depth, chases per second), one in flight. Each is an equation, divided by its time."""
    rows = []
    for servers, depth, rate in samples:
        per_time = rate / 1e6
        count = trips(mode, servers, depth)
        row = [count, count * processes_without_core(servers, cores)]
        if mode != "get":
            row.append(depth)
        rows.append([value * per_time for value in row])
    trip, wait, *step = fit(rows)
    return Costs(trip_us=trip, step_us=step[0] if step else 0.0, wait_us=wait)


def gaps_of(tsi):
    """From the JSON object of `bench tsi`."""
    return Gaps(message_us=1e6 / tsi["am"]["rate_msgs_per_s"], frame_us=1e6 / tsi["cached"]["rate_msgs_per_s"])


def calibration_servers(counts):
    """The fewest servers (on two cores, one has no neighbours to wait for) and the middle number."""
    counts = sorted(counts)
    return {counts[0], counts[len(counts) // 2]}
