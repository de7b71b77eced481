# SPDX-License-Identifier: Apache-2.0
"""Reads and checks the JSON files. What is wrong is told with the file's name and the key's path."""

import json
import os
from dataclasses import dataclass, field, replace

TRANSPORTS = ("shm", "tcp", "tls", "ucx-shm", "ucx-tcp")
BENCHES = ("tsi", "bulk", "dapc", "ucp-ifunc")
TSI_KEYS = {  # of each object: the figures that the tables need
    "am": ("frame_bytes", "latency_ns", "rate_msgs_per_s", "batched64_rate_msgs_per_s", "lookup_execution_ns"),
    "cached": ("frame_bytes", "latency_ns", "rate_msgs_per_s", "single_rate_msgs_per_s", "latency_ratio_to_am",
               "single_rate_ratio_to_am", "lookup_execution_ns"),
    "uncached_object": ("frame_bytes", "latency_ns", "rate_msgs_per_s", "first_execution_us", "load_us"),
    "uncached_bitcode": ("frame_bytes", "latency_ns", "rate_msgs_per_s", "first_execution_us", "load_us"),
}
BULK_KEYS = ("bytes", "call_gb_per_s", "reply_gb_per_s", "memcpy_gb_per_s", "am_gb_per_s", "call_ratio_to_memcpy",
             "reply_ratio_to_memcpy", "call_ratio_to_am", "reply_ratio_to_am")
UCP_KEYS = ("payload_bytes", "am_latency_ns", "ifunc_latency_ns", "send_receive_latency_ns", "latency_ratio_to_am",
            "send_receive_latency_ratio_to_am", "am_rate_msgs_per_s", "ifunc_rate_msgs_per_s",
            "send_receive_rate_msgs_per_s", "rate_ratio_to_am", "send_receive_rate_ratio_to_am")
IFUNCS = ("ifunc_bitcode", "ifunc_object")
MODES = ("ifunc_bitcode", "ifunc_object", "am", "get")  # of dapc; a point need not have all
TRANSLATIONS = {"julia": "ifunc_bitcode_julia", "rust": "ifunc_bitcode_rust"}  # what dapc --lang adds to each point
JULIA = TRANSLATIONS["julia"]
# Figures that the report uses where a mode of dapc has them.
MODE_KEYS = ("rate_ratio_to_am", "rate_ratio_to_get", "rate_ratio_to_c", "fraction_of_bound_vs_get")


class BadResult(Exception):
    """A sentence that names the file and what is wrong in it."""


@dataclass
class Noise:
    """How noisy a file's figures are: the width between the quartiles, over the median."""
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


@dataclass
class Result:
    """One file."""
    path: str
    json: dict

    @property
    def name(self):
        return os.path.basename(self.path)

    @property
    def transport(self):
        return self.json["transport"]

    @property
    def command(self):
        return self.json.get("command", "(not recorded)")

    def noise(self):
        """None when the file has no spreads."""
        widths = sorted(_all_widths(self.json))
        return Noise(len(widths), widths[len(widths) // 2][0], *widths[-1]) if widths else None


@dataclass
class Point:
    """One of dapc's: every mode at one number of servers, depth and chases in flight."""
    transport: str
    servers: int
    depth: int
    inflight: int
    modes: dict  # name -> the object with chases_per_s
    source: Result
    times: dict  # one_way_us, get_us: what the run measured besides the chases; a key may be missing

    def rate(self, mode):
        return self.modes[mode]["chases_per_s"] if mode in self.modes else None

    def spread(self, mode, key="chases_per_s"):
        """The quartiles; the median twice where the file has none."""
        values = self.modes[mode]
        return values.get(key + "_spread", [values[key]] * 2)

    def ratio(self, mode, baseline):
        """The runs' own median where the file has it, else the quotient of the medians."""
        own = self.modes[mode].get(f"rate_ratio_to_{baseline}")
        return own if own is not None else self.rate(mode) / self.rate(baseline)

    def ratio_spread(self, mode, baseline):
        return self.modes[mode].get(f"rate_ratio_to_{baseline}_spread", [self.ratio(mode, baseline)] * 2)

    def julia_to_c(self):
        own = self.modes[JULIA].get("rate_ratio_to_c")
        return own if own is not None else self.rate(JULIA) / self.rate("ifunc_bitcode")

    def measured_bound(self):
        """What ifunc/GET could be by the one-way and GET times that the same run measured; None when not recorded."""
        for mode in IFUNCS:
            values = self.modes.get(mode, {})
            fraction = values.get("fraction_of_bound_vs_get")
            if fraction:
                return values.get("rate_ratio_to_get", self.ratio(mode, "get")) / fraction
        return None


@dataclass
class Results:
    tsi: list = field(default_factory=list)
    bulk: list = field(default_factory=list)
    dapc: list = field(default_factory=list)
    ucp: list = field(default_factory=list)
    points: list = field(default_factory=list)  # of all dapc files; where two have a setting, of the longer sweep
    julia: list = field(default_factory=list)   # the same, of the points that have Julia

    def all(self):
        return self.tsi + self.bulk + self.dapc + self.ucp

    def tsi_on(self, transport):
        return next((r for r in self.tsi if r.transport == transport), None)

    def network(self, transport):
        """In words: where the nodes of the chases over it are."""
        carrier = ", ifuncs carried by UCX" if transport.startswith("ucx-") else ""
        if transport.endswith("shm"):
            return f"shared memory{carrier}"
        separate = all(r.json.get("namespaces", True) for r in self.dapc if r.transport == transport)
        return ("TCP between network namespaces" if separate else "TCP on loopback") + carrier

    def select(self, **wanted):
        """Points whose attributes equal the given ones, by servers, depth and chases in flight."""
        found = [p for p in self.points if all(getattr(p, k) == v for k, v in wanted.items())]
        return sorted(found, key=lambda p: (p.servers, p.depth, p.inflight))

    def with_julia(self):
        """These results as if only the chases with Julia had been measured: each stands beside C's of the same run."""
        return replace(self, points=self.julia)


def _number(path, holder, key, where):
    value = holder.get(key)
    if key not in holder:
        raise BadResult(f"{path}: the key {where}{key} is missing")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise BadResult(f"{path}: {where}{key} is {json.dumps(value)} when it should be a number that is not negative")
    spread = holder.get(key + "_spread")
    if spread is not None and (not isinstance(spread, list) or len(spread) != 2 or
                               not all(isinstance(v, (int, float)) for v in spread)):
        raise BadResult(f"{path}: {where}{key}_spread is {json.dumps(spread)} when it should be two numbers")
    return value


def _object(path, holder, key, where=""):
    value = holder.get(key)
    if not isinstance(value, dict):
        raise BadResult(f"{path}: the key {where}{key} is missing or not an object")
    return value


def _check_tsi(result):
    for name, keys in TSI_KEYS.items():
        holder = _object(result.path, result.json, name)
        for key in keys:
            _number(result.path, holder, key, name + ".")


def _objects(result, key):
    """The objects of a list, each with its path."""
    found = result.json.get(key)
    if not isinstance(found, list) or not found:
        raise BadResult(f"{result.path}: the key {key} is missing or not a list with {key} in it")
    for index, value in enumerate(found):
        if not isinstance(value, dict):
            raise BadResult(f"{result.path}: {key}[{index}] is not an object")
    return [(f"{key}[{index}].", value) for index, value in enumerate(found)]


def _check_bulk(result):
    for where, point in _objects(result, "points"):
        for key in BULK_KEYS:
            _number(result.path, point, key, where)


def _check_ucp(result):
    for where, size in _objects(result, "sizes"):
        for key in UCP_KEYS:
            if not _number(result.path, size, key, where) > 0:
                raise BadResult(f"{result.path}: {where}{key} is 0")
    for key in ("memory", "payload_read"):
        if key not in result.json:
            raise BadResult(f"{result.path}: the key {key} is missing")


def _translations(result):
    """The modes that --lang added."""
    languages = result.json.get("languages", [])
    known = tuple(TRANSLATIONS)
    if not isinstance(languages, list) or not all(language in known for language in languages):
        raise BadResult(f"{result.path}: languages is {json.dumps(languages)} when it should be a list of some of "
                        f"{', '.join(known)}")
    return [TRANSLATIONS[language] for language in languages]


def _modes(result, where, raw, translations):
    """The modes of a point, checked."""
    modes = {k: v for k, v in raw.items() if isinstance(v, dict)}
    if not modes:
        raise BadResult(f"{result.path}: {where[:-1]} has none of the modes {', '.join(MODES)}")
    for name in translations:
        _object(result.path, raw, name, where)
    if any(name in modes for name in TRANSLATIONS.values()):  # its line is drawn beside C's
        _object(result.path, raw, "ifunc_bitcode", where)
    for name, values in modes.items():
        if not _number(result.path, values, "chases_per_s", f"{where}{name}.") > 0:
            raise BadResult(f"{result.path}: {where}{name}.chases_per_s is 0")
        for key in MODE_KEYS:
            if key in values:
                _number(result.path, values, key, f"{where}{name}.")
    return modes


def _check_dapc(result):
    translations = _translations(result)
    for where, raw in _objects(result, "points"):
        for key in ("servers", "depth", "inflight"):
            if _number(result.path, raw, key, where) < 1:
                raise BadResult(f"{result.path}: {where}{key} is {raw[key]} when it should be at least 1")
        if raw.get("verified") is not True:
            raise BadResult(f"{result.path}: {where}verified is {json.dumps(raw.get('verified'))}: a chase with a "
                            "wrong answer is not a measurement; run it again")
        modes = _modes(result, where, raw, translations)
        times = {key: _number(result.path, raw, key, where) for key in ("one_way_us", "get_us") if key in raw}
        yield Point(result.transport, raw["servers"], raw["depth"], raw["inflight"], modes, result, times)


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except ValueError as error:  # also what is not UTF-8
        raise BadResult(f"{path}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadResult(f"{path}: not a JSON object")
    if value.get("bench") not in BENCHES:
        raise BadResult(f"{path}: bench is {json.dumps(value.get('bench'))} when the report knows {', '.join(BENCHES)}")
    if value.get("transport") not in TRANSPORTS:
        raise BadResult(f"{path}: transport is {json.dumps(value.get('transport'))} when it should be one of "
                        f"{', '.join(TRANSPORTS)}")
    if not isinstance(value.get("machine", {}), dict):
        raise BadResult(f"{path}: machine is {json.dumps(value['machine'])} when it should be an object")
    return Result(path, value)


def _files(paths):
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        names = sorted(n for n in os.listdir(path) if n.endswith(".json"))
        if not names:
            raise BadResult(f"{path}: holds no .json file")
        for name in names:
            yield os.path.join(path, name)


def _each_setting_once(sweeps):
    """The points of all sweeps; where two have a setting, that of the longer one."""
    kept = {}
    for point in (p for sweep in sorted(sweeps, key=len, reverse=True) for p in sweep):
        kept.setdefault((point.transport, point.servers, point.depth, point.inflight), point)
    return list(kept.values())


def load(paths):
    """All results in the files and folders named; BadResult or OSError when one cannot be used."""
    results, sweeps = Results(), []
    for path in _files(paths):
        result = _read(path)
        if result.json["bench"] == "dapc":
            results.dapc.append(result)
            sweeps.append(list(_check_dapc(result)))
            continue
        check, kept = {"tsi": (_check_tsi, results.tsi), "bulk": (_check_bulk, results.bulk),
                       "ucp-ifunc": (_check_ucp, results.ucp)}[result.json["bench"]]
        check(result)
        kept.append(result)
    results.points = _each_setting_once(sweeps)
    results.julia = _each_setting_once([[p for p in sweep if JULIA in p.modes] for sweep in sweeps])
    return results
