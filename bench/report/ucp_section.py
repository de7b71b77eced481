# SPDX-License-Identifier: Apache-2.0
"""Figures 3 and 4 of the 2021 paper: the papers' API beside Active Messages over payload sizes, ours and its own."""

import os
from dataclasses import dataclass

from . import markup, style
from .figures import Drawn
from .markup import absent, paragraph
from .tables import digits, times

TITLE = '<h2 id="ucp">The 2021 paper: Figures 3 and 4</h2>'
WAYS = ("am", "ifunc", "send_receive")


@dataclass(frozen=True)
class Claim:
    """What the 2021 paper says in words about a figure; it prints no values. Sizes in bytes, ratios to AM."""
    number: int
    quantity: str
    stated: tuple  # (payload, ratio)
    words: str


CLAIMS = {
    "latency": Claim(3, "latency", ((1, 1.42), (11_585, 1.0), (1 << 20, 0.65)),
                     "up to 42 % slower than AM for small payloads, crossing between 8 and 16 KB, 35 % less at 1 MB"),
    "rate": Claim(4, "message rate", ((1, 0.19), (1448, 1.0), (1 << 20, 1.62)),
                  "81 % lower at 1 B, ahead from between 1 and 2 KB on: first 380 %, then 23 %, at last 62 %"),
}
VALUES = {"latency": "{}_latency_ns", "rate": "{}_rate_msgs_per_s"}
RATIOS = {"latency": {"ifunc": "latency_ratio_to_am", "send_receive": "send_receive_latency_ratio_to_am"},
          "rate": {"ifunc": "rate_ratio_to_am", "send_receive": "send_receive_rate_ratio_to_am"}}


def where(result):
    network = "shared memory" if result.transport == "shm" else "TCP on loopback"
    memory = "that UCX allocated" if result.json["memory"] == "allocated" else "of the program's own"
    return f"{network}, slots in memory {memory}, payload {'read' if result.json['payload_read'] else 'not read'}"


def _key(quantity, result):
    return f"ucp-{quantity}-{result.name.removesuffix('.json')}"


def _spread(size, key):
    return size.get(key + "_spread", [size[key]] * 2)


def _values(axes, quantity, sizes):
    scale = 1e-3 if quantity == "latency" else 1
    for way in WAYS:
        key = VALUES[quantity].format(way)
        style.plot_mode(axes, way, [s["payload_bytes"] for s in sizes], [s[key] * scale for s in sizes],
                        [[v * scale for v in _spread(s, key)] for s in sizes])
    style.rate_axis(axes, "One way, µs (log)" if quantity == "latency" else "Messages per second (log)")


def _ratios(axes, quantity, sizes):
    for way, key in RATIOS[quantity].items():
        style.plot_mode(axes, way, [s["payload_bytes"] for s in sizes], [s[key] for s in sizes],
                        [_spread(s, key) for s in sizes])
    claim = CLAIMS[quantity]
    axes.plot(*zip(*claim.stated), color=style.PAPER, marker="*", markersize=11, linestyle=":", linewidth=1.2,
              label="the paper's ifunc,\nas it says in words")
    axes.axhline(1, color=style.BOUND, linewidth=1.2, linestyle="--", label="as Active Message")
    style.rate_axis(axes, f"Times the {claim.quantity} of AM (log)")


def _draw(result, quantity, directory):
    sizes = result.json["sizes"]
    title = f"{'Latency' if quantity == 'latency' else 'Message rate'}: {where(result)}"
    figure, (left, right) = style.two_canvases(title)
    _values(left, quantity, sizes)
    _ratios(right, quantity, sizes)
    for axes in (left, right):
        style.power_of_two_axis(axes.xaxis, [s["payload_bytes"] for s in sizes])
        style.size_axis(axes.xaxis)
        axes.set_xlabel("Payload, bytes (log)")
    key = _key(quantity, result)
    left.legend(loc="upper left" if quantity == "latency" else "lower left")
    style.finish(figure, right, os.path.join(directory, f"{key}.png"))
    return Drawn(key, f"{key}.png", title, [result])


def draw(results, directory):
    for result in results.ucp:
        for quantity in CLAIMS:
            yield _draw(result, quantity, directory)


def _ratio_cell(size, key):
    low, high = _spread(size, key)
    return f"{times(size[key])} [{digits(low)}, {digits(high)}]"


def _table(result):
    rows = [[f"{s['payload_bytes']}", digits(s["am_latency_ns"] / 1000), digits(s["ifunc_latency_ns"] / 1000)] +
            [_ratio_cell(s, RATIOS["latency"][way]) for way in ("ifunc", "send_receive")] +
            [style.short_number(round(s[f"{way}_rate_msgs_per_s"], -2)) for way in ("am", "ifunc")] +
            [_ratio_cell(s, RATIOS["rate"][way]) for way in ("ifunc", "send_receive")] for s in result.json["sizes"]]
    head = ["Payload", "AM, µs", "Slots, µs", "Slots / AM", "Send-receive / AM", "AM, /s", "Slots, /s", "Slots / AM",
            "Send-receive / AM"]
    return (f"<details><summary>Every size: {markup.text(where(result))}</summary>" + markup.table(head, rows) +
            "</details>")


def render(results, drawn):
    if not results.ucp:
        return TITLE + absent("Not measured yet.", "No file of ifunc bench ucp-ifunc.")
    parts = [TITLE, paragraph("The papers' own interface (libucp_ifunc) beside Active Messages over the same endpoint. "
                              "The 2021 paper sends into polled memory, as “slots” here; send-receive is what it "
                              "announces as future work. Its figures print no values: the stars are its statements.")]
    for result in results.ucp:
        for quantity, claim in CLAIMS.items():
            shown = drawn[_key(quantity, result)]
            caption = (f'{markup.text(shown.title)}.<br><span class="paper">The paper states for its Figure '
                       f"{claim.number}, ifunc against AM over InfiniBand: {markup.text(claim.words)}.</span>")
            parts.append(markup.figure(shown, f"In the form of the 2021 paper's Figure {claim.number}.", caption))
        parts.append(_table(result))
    return "".join(parts)
