# SPDX-License-Identifier: Apache-2.0
"""Ratios of a chase point: the runs' own medians where the file has them, else the quotient of the medians."""

IFUNCS = ("ifunc_bitcode", "ifunc_object")


def ratio(point, mode, baseline):
    own = point.modes[mode].get(f"rate_ratio_to_{baseline}")
    return own if own is not None else point.rate(mode) / point.rate(baseline)


def spread(point, mode, baseline):
    median = ratio(point, mode, baseline)
    return point.modes[mode].get(f"rate_ratio_to_{baseline}_spread", [median, median])


def measured_bound(point):
    """What ifunc/GET could be by the one-way and GET times that the same run measured; None when not recorded."""
    for mode in IFUNCS:
        values = point.modes.get(mode, {})
        fraction = values.get("fraction_of_bound_vs_get")
        if fraction:
            return values.get("rate_ratio_to_get", ratio(point, mode, "get")) / fraction
    return None
