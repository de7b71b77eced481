# SPDX-License-Identifier: Apache-2.0
"""The paper's Tables I-VI, ours and its own, as plain values: page.py writes them down."""

from dataclasses import dataclass, field

from . import load, paper

COLUMNS = ("Active Message", "Uncached bitcode", "Cached bitcode")
MODES = ("am", "uncached_bitcode", "cached")
SYSTEM = {"shm": "Ours, shared memory", "tcp": "Ours, TCP on loopback",
          "ucx-shm": "Ours, carried by UCX through shared memory", "ucx-tcp": "Ours, carried by UCX over TCP on loopback"}


@dataclass
class Table:
    title: str
    ours: bool
    head: list
    rows: list                      # of lists of text
    note: str = ""
    source: object = None           # the Result it comes from; None for the paper's
    group_starts: set = field(default_factory=set)  # rows that open a new comparison


def digits(value, places=3):
    """Three significant digits, without an exponent: 0.00129, 5.27, 553."""
    if value == 0:
        return "0"
    text = f"{value:.{places}g}"
    if "e" not in text:
        return text
    value = float(text)
    return f"{value:.0f}" if value >= 1 else f"{value:.7f}".rstrip("0")


NBSP = "\u00a0"  # between a number and its unit


def _unit(us):
    """The unit to write so long a time in, and how many of it a microsecond has."""
    if us >= 1000:
        return "ms", 0.001
    return ("µs", 1) if us >= 0.1 else ("ns", 1000)


def duration(us, spread_us=None):
    """Nanoseconds where microseconds would be zeros; the quartiles in the unit of the median."""
    unit, scale = _unit(us)
    value = f"{digits(us * scale)}{NBSP}{unit}"
    return value + f" [{digits(spread_us[0] * scale)}, {digits(spread_us[1] * scale)}]" if spread_us else value


def published(us):
    """As the paper prints it: two decimals."""
    return f"{us / 1000:.2f}{NBSP}ms" if us >= 100 else f"{us:.2f}{NBSP}µs"


def with_quartiles(value, spread, write):
    return f"{write(value)} [{write(spread[0])}, {write(spread[1])}]" if spread else write(value)


def times(ratio):
    return f"{ratio:.2f}" if ratio >= 0.1 else digits(ratio, 2)


def rate(per_second):
    """Messages a second, to four digits as in the paper."""
    return f"{float(f'{per_second:.4g}'):,.0f}"


def percent(fraction):
    return f"{100 * fraction:+.2f}%" if abs(fraction) < 10 else f"{100 * fraction:+,.0f}%"


def _breakdown_rows(write, lookup_us, jit_us, transmission_us, total_us, frame_bytes):
    return [["Lookup+Exec", *map(write, lookup_us)],
            ["JIT", "N/A", f"({write(jit_us)})", "N/A"],
            ["Transmission", *map(write, transmission_us)],
            ["Total", *map(write, total_us)],
            ["Message", *(f"{b:,}{NBSP}B" for b in frame_bytes)]]


def our_breakdown(result):
    """In the form of Tables I-III."""
    j = result.json
    cached_us = j["cached"]["lookup_execution_ns"] / 1000
    lookup_us = (j["am"]["lookup_execution_ns"] / 1000, cached_us, cached_us)
    total_us = [j[m]["latency_ns"] / 1000 for m in MODES]
    rows = _breakdown_rows(duration, lookup_us, j["uncached_bitcode"]["load_us"],
                           [t - l for t, l in zip(total_us, lookup_us)], total_us, [j[m]["frame_bytes"] for m in MODES])
    return Table(SYSTEM[result.transport], True, ["Stage", *COLUMNS], rows, source=result)


def paper_breakdown(platform):
    rows = _breakdown_rows(published, platform.lookup_us, platform.jit_us, platform.transmission_us, platform.total_us,
                           paper.FRAME_BYTES)
    return Table(f"Paper, Table {platform.breakdown_table}: {platform.name}", False, ["Stage", *COLUMNS], rows)


RATES_HEAD = ["Method", "Latency", "Speedup", "Message rate (/s)", "Speedup"]


def _latency(values):
    spread = values.get("latency_ns_spread")
    return duration(values["latency_ns"] / 1000, spread and [s / 1000 for s in spread])


def _rate(values, key):
    return with_quartiles(values[key], values.get(key + "_spread"), rate)


def our_rates(result):
    """In the form of Tables IV-VI, then what only ours has: the object slice, and 64 together."""
    am, cached = result.json["am"], result.json["cached"]
    bitcode, binary = result.json["uncached_bitcode"], result.json["uncached_object"]
    single = cached["single_rate_msgs_per_s"]
    cached_row = ["Cached bitcode", duration(cached["latency_ns"] / 1000), "", rate(single), ""]  # repeated, so short
    rows = [["Active Message", _latency(am), percent(1 / cached["latency_ratio_to_am"] - 1),
             _rate(am, "rate_msgs_per_s"), percent(cached["single_rate_ratio_to_am"] - 1)],
            ["Cached bitcode", _latency(cached), "", _rate(cached, "single_rate_msgs_per_s"), ""]]
    for name, values in (("Uncached bitcode", bitcode), ("Uncached binary", binary)):
        rows.append([name, _latency(values), percent(values["latency_ns"] / cached["latency_ns"] - 1),
                     _rate(values, "rate_msgs_per_s"), percent(single / values["rate_msgs_per_s"] - 1)])
        rows.append(list(cached_row))
    rows.append(["64 calls in one Active Message", "", "", _rate(am, "batched64_rate_msgs_per_s"),
                 percent(cached["rate_msgs_per_s"] / am["batched64_rate_msgs_per_s"] - 1)])
    rows.append(["Cached bitcode, 64 in a call", "", "", _rate(cached, "rate_msgs_per_s"), ""])
    raw = result.json.get("raw")  # older files have none
    if raw:
        rows.append(["No runtime (flags, ring or socket)", _latency(raw), percent(raw["latency_ns"] / cached["latency_ns"] - 1),
                     _rate(raw, "rate_msgs_per_s"), percent(single / raw["rate_msgs_per_s"] - 1)])
        rows.append(list(cached_row))
    return Table(SYSTEM[result.transport], True, RATES_HEAD, rows, source=result,
                 group_starts={2, 4, 6, 8})


def paper_rates(platform):
    am_us, bitcode_us, _ = platform.total_us
    cached = ["Cached bitcode", published(platform.cached_latency_us), "", rate(platform.rates[2]), ""]
    rows = [["Active Message", published(am_us), percent(platform.latency_speedup[0] / 100), rate(platform.rates[0]),
             percent(platform.rate_speedup[0] / 100)], list(cached),
            ["Uncached bitcode", published(bitcode_us), percent(platform.latency_speedup[1] / 100),
             rate(platform.rates[1]), percent(platform.rate_speedup[1] / 100)], list(cached)]
    return Table(f"Paper, Table {platform.rates_table}: {platform.name}", False, RATES_HEAD, rows, group_starts={2})


def _summary_row(name, am_us, bitcode_us, cached_us, jit, rates, frame_bytes, ours):
    am_rate, bitcode_rate, cached_rate = rates
    return ([name, f"{cached_us / am_us:.2f}", f"{bitcode_us / cached_us:.2f}", f"{cached_rate / am_rate:.2f}",
             f"{cached_rate / bitcode_rate:.2f}", jit, f"{frame_bytes[2]}{NBSP}B",
             f"{frame_bytes[1]:,}{NBSP}B"], ours)


def ratios_side_by_side(results):
    """(head, [(row, ours)]): the tables' ratios, every system in one table."""
    head = ["System", "Cached / AM latency", "Uncached / cached latency", "Cached / AM rate",
            "Cached / uncached rate", "JIT", "Cached message", "Uncached message"]
    rows = []
    for result in results.tsi:
        j = result.json
        row, ours = _summary_row(SYSTEM[result.transport], *(j[m]["latency_ns"] for m in MODES),
                                 duration(j["uncached_bitcode"]["load_us"]),
                                 (j["am"]["rate_msgs_per_s"], j["uncached_bitcode"]["rate_msgs_per_s"],
                                  j["cached"]["single_rate_msgs_per_s"]), [j[m]["frame_bytes"] for m in MODES], True)
        row[1] = f"{j['cached']['latency_ratio_to_am']:.2f}"  # the runs' own, not the quotient of two medians
        row[3] = f"{j['cached']['single_rate_ratio_to_am']:.2f}"
        rows.append((row, ours))
    for p in paper.PLATFORMS:
        rows.append(_summary_row(p.name, *p.total_us, published(p.jit_us), p.rates, paper.FRAME_BYTES, False))
    return head, rows


def ratio_points(results, transport):
    """(head, rows): ifunc against Active Message and GET at the greatest depth, for each number of servers."""
    depth = max((p.depth for p in results.select(transport=transport)), default=0)
    head = ["Servers", "In flight", "GET (/s)", "AM (/s)", "ifunc bitcode (/s)", "ifunc / AM", "ifunc / GET",
            "one way, µs", "GET, µs", "2·S/(S−1)", "measured bound", "of it reached"]
    rows = []
    for p in results.select(transport=transport, depth=depth):
        mode = next((m for m in load.IFUNCS if m in p.modes), None)
        if mode is None:
            continue

        def against(baseline):
            if baseline not in p.modes:
                return "—"
            return with_quartiles(p.ratio(mode, baseline),
                                  p.modes[mode].get(f"rate_ratio_to_{baseline}_spread"), times)
        bound = p.measured_bound()
        fraction = p.modes[mode].get("fraction_of_bound_vs_get")
        rows.append([str(p.servers), str(p.inflight),
                     *(digits(p.rate(m)) if m in p.modes else "—" for m in ("get", "am", mode)),
                     against("am"), against("get"),
                     *(digits(p.times[k]) if k in p.times else "—" for k in ("one_way_us", "get_us")),
                     f"{2 * p.servers / (p.servers - 1):.2f}" if p.servers > 1 and p.inflight == 1 else "—",
                     f"{bound:.2f}" if bound else "—", f"{fraction:.0%}" if fraction else "—"])
    return depth, head, rows
