# SPDX-License-Identifier: Apache-2.0
"""How every figure looks: one colour and one marker for a mode, in all of them (Okabe and Ito's palette)."""

import matplotlib

matplotlib.use("Agg")  # files only, no display
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402

MODES = {  # name in the JSON -> label, colour, marker
    "get": ("GET", "#D55E00", "s"),
    "am": ("Active Message", "#000000", "D"),
    "ifunc_bitcode": ("ifunc, bitcode", "#56B4E9", "o"),
    "ifunc_object": ("ifunc, binary", "#007A59", "^"),
    "ifunc_bitcode_julia": ("ifunc, bitcode of Julia", "#0072B2", "v"),
    "ifunc": ("ifunc, slots", "#007A59", "o"),
    "send_receive": ("ifunc, send-receive", "#56B4E9", "^"),
}
BESIDE_JULIA = {"ifunc_bitcode": "ifunc, bitcode of C"}  # another label, so that the two are told apart
# Lines that lie on each other must all be seen: the wide ones below, the narrow ones inside them.
STROKES = {"ifunc_bitcode": (5, 12, 2.0), "ifunc_object": (2.6, 7.5, 2.1), "get": (1.6, 6, 2.2), "am": (1.1, 4, 2.3),
           "ifunc_bitcode_julia": (2.6, 7.5, 2.1), "ifunc": (2.6, 7.5, 2.1), "send_receive": (1.6, 6, 2.2)}
BOUND = "#777777"
PAPER = "#CC79A7"  # what a paper says of its own

plt.rcParams.update({
    "font.family": "sans-serif", "font.size": 11, "axes.titlesize": 12, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.titlepad": 12, "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": "#666666", "axes.labelcolor": "#222222", "axes.grid": True, "grid.color": "#e3e3e3",
    "grid.linewidth": 0.8, "axes.axisbelow": True, "xtick.color": "#444444", "ytick.color": "#444444",
    "legend.frameon": False, "legend.labelspacing": 0.8, "savefig.dpi": 144,
})


def canvas(title, width=8.6, height=4.3):
    figure, axes = plt.subplots(figsize=(width, height))
    axes.set_title(title)
    return figure, axes


def two_canvases(title):
    """Values on the left, what is derived from them on the right."""
    figure, axes = plt.subplots(1, 2, figsize=(13.2, 4.3))
    figure.subplots_adjust(wspace=0.28)
    axes[0].set_title(title)
    return figure, axes


def short_number(value, _position=None):
    """A tick: 1200 as 1.2k."""
    for limit, divisor, suffix in ((1e6, 1e6, "M"), (1e3, 1e3, "k")):
        if value >= limit:
            return f"{value / divisor:g}{suffix}"
    return f"{value:g}"


def power_of_two_axis(axis, values):
    """A logarithmic axis with a tick at each measured value."""
    axis.axes.set_xscale("log", base=2)
    values = sorted(set(values))
    ticks = values if len(values) <= 13 else values[::2]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))


def size_axis(axis):
    """Bytes, as people write powers of two: 256, 16K, 1M. After power_of_two_axis()."""
    def label(value, _position=None):
        for limit, suffix in ((1 << 20, "M"), (1 << 10, "K")):
            if value >= limit:
                return f"{value / limit:g}{suffix}"
        return f"{value:g}"
    axis.set_major_formatter(FuncFormatter(label))


def rate_axis(axes, label):
    """Logarithmic, with a few labels even where it spans less than a decade."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    decades = range(-6, 10)
    steps = (1, 2, 5) if high / low < 300 else (1,)
    ticks = [s * 10.0 ** d for d in decades for s in steps if low <= s * 10.0 ** d <= high]
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(short_number))
    axes.set_ylabel(label)


def plot_mode(axes, mode, xs, medians, spreads, label=None):
    """One line with quartile bars, under the mode's own label if no other is given."""
    own_label, colour, marker = MODES[mode]
    width, size, layer = STROKES[mode]
    below = [max(m - low, 0) for m, (low, _) in zip(medians, spreads)]
    above = [max(high - m, 0) for m, (_, high) in zip(medians, spreads)]
    axes.errorbar(xs, medians, yerr=[below, above], label=label or own_label, color=colour, marker=marker,
                  linewidth=width, markersize=size, zorder=layer, capsize=3, elinewidth=1.1, markeredgecolor="white",
                  markeredgewidth=0.7)


def finish(figure, axes, path):
    """Legend outside the data, and the file."""
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.savefig(path, bbox_inches="tight", facecolor="white", metadata={"Software": None})
    plt.close(figure)
