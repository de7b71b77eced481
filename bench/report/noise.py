# SPDX-License-Identifier: Apache-2.0
"""How noisy each file's figures are: the width between the quartiles, over the median."""

from dataclasses import dataclass


@dataclass
class Noise:
    figures: int   # that have a spread
    middle: float  # the median width
    worst: float
    worst_name: str


def _widths(holder, prefix):
    for key, value in holder.items():
        if isinstance(value, dict):
            yield from _widths(value, f"{prefix}{key}.")
        elif key + "_spread" in holder and value:
            low, high = holder[key + "_spread"]
            yield (high - low) / value, prefix + key


def _all_widths(json):
    for key, value in json.items():
        if isinstance(value, dict) and key != "machine":
            yield from _widths(value, f"{key}.")
    for s in json.get("sizes", []):
        yield from _widths(s, f"{s['payload_bytes']} bytes: ")
    for p in json.get("points", []):
        where = f"{p['bytes']} bytes" if "bytes" in p else \
            f"{p['servers']} servers, depth {p['depth']}, {p['inflight']} in flight"
        yield from _widths(p, where + ": ")


def of(result):
    """None when the file has no spreads."""
    widths = sorted(_all_widths(result.json))
    if not widths:
        return None
    return Noise(len(widths), widths[len(widths) // 2][0], *widths[-1])
