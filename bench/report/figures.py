# SPDX-License-Identifier: Apache-2.0
"""Which figures the results allow, and drawing them: 5-8 over depth, 9-12 over servers, then what follows from them."""

import os
from dataclasses import dataclass, field

from . import load, style

RATE = "Chases per second (log)"
ORDER = ("get", "am", "ifunc_bitcode", "ifunc_object")
JULIA_ORDER = ("get", "am", "ifunc_bitcode", load.JULIA)


@dataclass
class Drawn:
    key: str        # "5" for the paper's Figure 5, a word for our own
    file: str       # beside the page
    title: str
    sources: list = field(default_factory=list)  # results whose commands made it


def _sources(points):
    return list({id(p.source): p.source for p in points}.values())


def _in_flight(count):
    return "one chase in flight" if count == 1 else f"{count} chases in flight"


def _servers(count):
    return "one server" if count == 1 else f"{count} servers"


def _lines(axes, points, x_of, value=load.Point.rate, spread=load.Point.spread, modes=ORDER):
    labels = style.BESIDE_JULIA if load.JULIA in modes else {}
    for mode in modes:
        of_mode = [p for p in points if mode in p.modes]
        if of_mode:
            style.plot_mode(axes, mode, [x_of(p) for p in of_mode], [value(p, mode) for p in of_mode],
                            [spread(p, mode) for p in of_mode], labels.get(mode))


def depth_settings(results):
    """(transport, servers) with a sweep over depth, up to three of each transport: TCP before shared memory.

    The first three stand for the paper's Figures 5-7.
    """
    chosen = []
    for transport in ("tcp", "shm"):
        points = results.select(transport=transport, inflight=1)
        counts = sorted({p.servers for p in points if p.servers > 1})
        swept = [s for s in counts if len({p.depth for p in points if p.servers == s}) >= 3]
        if len(swept) > 3:
            swept = [swept[0], swept[len(swept) // 2], swept[-1]]
        chosen += [(transport, s) for s in swept]
    return chosen


def server_settings(results):
    """Up to three (transport, depth, chases in flight) with a sweep over servers at the greatest depth."""
    chosen = []
    for transport in ("tcp", "shm"):
        depth = max((p.depth for p in results.select(transport=transport)), default=0)
        points = results.select(transport=transport, depth=depth)
        for inflight in sorted({p.inflight for p in points}, key=lambda n: (n != 1, -n)):
            if len([p for p in points if p.inflight == inflight]) >= 2:
                chosen.append((transport, depth, inflight))
    first = [c for c in chosen if c[2] == 1]
    return (first + [c for c in chosen if c[2] != 1])[:3]


def inflight_settings(results):
    """(transport, servers, depth) with at least two numbers of chases in flight: the depth that has most of them."""
    chosen = []
    for transport, servers in sorted({(p.transport, p.servers) for p in results.points}):
        depths = [p.depth for p in results.select(transport=transport, servers=servers)]
        depth = max(depths, key=lambda d: (depths.count(d), d))
        if depths.count(depth) >= 2:
            chosen.append((transport, servers, depth))
    return chosen


def _sweep(results, wanted, over, label, title, key, directory, modes=ORDER):
    """Chase rates of the points that are `wanted`, over one attribute of theirs."""
    points = results.select(**wanted)
    figure, axes = style.canvas(title)
    _lines(axes, points, lambda p: getattr(p, over), modes=modes)
    style.power_of_two_axis(axes.xaxis, [getattr(p, over) for p in points])
    axes.set_xlabel(label + " (log)")
    style.rate_axis(axes, RATE)
    name = f"figure-{int(key):02d}.png" if key.isdigit() else f"{key}.png"
    style.finish(figure, axes, os.path.join(directory, name))
    return Drawn(key, name, title, _sources(points))


def _over_depth(results, setting, directory, key, modes=ORDER):
    transport, servers = setting
    return _sweep(results, {"transport": transport, "servers": servers, "inflight": 1}, "depth", "Depth of the chase",
                  f"{_servers(servers)}, {results.network(transport)}, one chase in flight", key, directory, modes)


def _over_servers(results, setting, directory, key, modes=ORDER):
    transport, depth, inflight = setting
    return _sweep(results, {"transport": transport, "depth": depth, "inflight": inflight}, "servers",
                  "Number of servers", f"Depth {depth}, {results.network(transport)}, {_in_flight(inflight)}", key,
                  directory, modes)


def _over_inflight(results, setting, directory):
    transport, servers, depth = setting
    return _sweep(results, {"transport": transport, "servers": servers, "depth": depth}, "inflight", "Chases in flight",
                  f"{_servers(servers)}, depth {depth}, {results.network(transport)}", f"inflight-{transport}-{servers}",
                  directory)


def _with_julia(results, directory):
    """Figures 8 and 12: what would be Figures 5 and 9 if only the chases with Julia had been measured."""
    julia = results.with_julia()
    for setting in depth_settings(julia)[:1]:
        yield _over_depth(julia, setting, directory, "8", JULIA_ORDER)
    for setting in server_settings(julia)[:1]:
        yield _over_servers(julia, setting, directory, "12", JULIA_ORDER)


def _bounds(axes, points):
    """What ifunc/GET could be at most: from two servers on, over a network."""
    axes.plot([p.servers for p in points], [2 * p.servers / (p.servers - 1) for p in points], color=style.BOUND,
              linestyle="--", linewidth=1.2, label="2·S/(S−1)")
    bounds = [(p.servers, p.measured_bound()) for p in points if p.measured_bound()]
    if bounds:
        axes.plot(*zip(*bounds), color=style.BOUND, linestyle=":", marker="_", markersize=14, markeredgewidth=2,
                  label="bound by measured\none-way and GET times")


def _ratio_figure(points, baseline, title, path):
    figure, axes = style.canvas(title)
    _lines(axes, points, lambda p: p.servers, value=lambda p, m: p.ratio(m, baseline),
           spread=lambda p, m: p.ratio_spread(m, baseline), modes=load.IFUNCS)
    if baseline == "am":
        axes.axhline(1, color=style.BOUND, linewidth=1.2, linestyle="--", label="as fast as AM")
    elif points[0].transport == "tcp" and points[0].inflight == 1:
        _bounds(axes, points)
    style.power_of_two_axis(axes.xaxis, [p.servers for p in points])
    axes.set_xlabel("Number of servers (log)")
    axes.set_ylabel("Times the rate of " + style.MODES[baseline][0])
    axes.set_ylim(0, 1.06 * axes.get_ylim()[1])
    style.finish(figure, axes, path)


def _ratios(results, setting, directory):
    transport, depth, inflight = setting
    points = results.select(transport=transport, depth=depth, inflight=inflight)
    for baseline in ("am", "get"):
        usable = [p for p in points if baseline in p.modes and any(m in p.modes for m in load.IFUNCS)]
        if baseline == "get":  # one server: no step of the ifunc's crosses the network, and the ratio is hundreds
            usable = [p for p in usable if p.servers > 1]
        if len(usable) < 2:
            continue
        title = (f"ifunc over {style.MODES[baseline][0]}: depth {depth}, {results.network(transport)}, "
                 f"{_in_flight(inflight)}")
        name = f"ratio-{baseline}-{transport}-{inflight}.png"
        _ratio_figure(usable, baseline, title, os.path.join(directory, name))
        yield Drawn(name.removesuffix(".png"), name, title, _sources(usable))


def _scale(results, prediction, directory):
    figure, axes = style.canvas(f"Predicted: depth {prediction.depth}, "
                                f"{results.network(prediction.transport)}, one chase in flight", height=4.8)
    for mode in prediction.modes:
        label, colour, marker = style.MODES[mode]
        width, size, layer = style.STROKES[mode]
        axes.plot(prediction.servers, prediction.alone[mode], color=colour, linewidth=width, zorder=layer, label=label)
        axes.plot(prediction.servers, prediction.here[mode], color=colour, linewidth=width, zorder=layer,
                  linestyle=(0, (2, 1.2)))
        axes.plot(*zip(*prediction.measured[mode]), color=colour, marker=marker, markersize=size, linestyle="none",
                  zorder=layer + 1, markeredgecolor="white")
    for label, look in (("a core for each node", {"linestyle": "-"}), ("all on this machine", {"linestyle": "--"}),
                        ("measured", {"linestyle": "none", "marker": "o"})):
        axes.plot([], [], color="#777777", label=label, **look)
    style.power_of_two_axis(axes.xaxis, prediction.servers)
    axes.set_xlabel("Number of servers (log)")
    style.rate_axis(axes, RATE)
    style.finish(figure, axes, os.path.join(directory, "scale.png"))
    return Drawn("scale", "scale.png", "Predicted chase rate", prediction.sources)


def draw_all(results, prediction, directory):
    """Writes the PNG files. A dictionary of Drawn by key; a figure without measurements is not in it."""
    drawn = [_over_depth(results, s, directory, str(5 + i) if i < 3 else f"depth-{s[0]}-{s[1]}")
             for i, s in enumerate(depth_settings(results))]
    swept = server_settings(results)
    drawn += [_over_servers(results, s, directory, str(9 + i)) for i, s in enumerate(swept)]
    drawn += _with_julia(results, directory)
    drawn += [_over_inflight(results, s, directory) for s in inflight_settings(results)]
    for setting in swept:
        drawn += _ratios(results, setting, directory)
    if prediction is not None:
        drawn.append(_scale(results, prediction, directory))
    return {d.key: d for d in drawn}
