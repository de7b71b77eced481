# SPDX-License-Identifier: Apache-2.0
"""Large payloads: not in the papers, so ours alone, beside what the machine can do."""

from . import markup
from .markup import absent, paragraph
from .tables import SYSTEM, digits

TITLE = '<h2 id="bulk">Large payloads</h2>'
COLUMNS = (("call", "Call"), ("reply", "Reply"), ("memcpy", "memcpy"), ("raw", "Raw stream"), ("am", "Active Message"))
RATIOS = ("memcpy", "raw", "am")


def _size(bytes_):
    return f"{bytes_ >> 20} MiB" if bytes_ >= 1 << 20 else f"{bytes_ >> 10} KiB"


def _rate(point, key):
    value, spread = point[f"{key}_gb_per_s"], point.get(f"{key}_gb_per_s_spread")
    return digits(value) + (f" [{digits(spread[0])}, {digits(spread[1])}]" if spread else "")


def _ratio(point, key):
    """Of calls and of replies."""
    return " / ".join(f"{point[f'{of}_ratio_to_{key}']:.2f}" for of in ("call", "reply"))


def _table(result):
    points = result.json["points"]
    columns = [(key, name) for key, name in COLUMNS if f"{key}_gb_per_s" in points[0]]
    ratios = [key for key in RATIOS if f"call_ratio_to_{key}" in points[0]]
    head = ["Payload"] + [f"{name}, GB/s" for _, name in columns] + [f"Call / reply, times {key}" for key in ratios]
    rows = [[_size(p["bytes"])] + [_rate(p, key) for key, _ in columns] + [_ratio(p, key) for key in ratios]
            for p in points]
    return markup.table(head, rows, SYSTEM[result.transport], "ours") + paragraph(markup.made_by([result]), "note")


def render(results):
    if not results.bulk:
        return TITLE + absent("Not measured yet.", "No bulk file.")
    return (TITLE + paragraph("Each message is answered before the next one is sent. memcpy is one process's, from warm "
                              "memory to warm memory; the raw stream goes through a socket without any runtime.") +
            "".join(_table(r) for r in results.bulk))
