# SPDX-License-Identifier: Apache-2.0
"""Calibrates on some of the measured points, predicts 1 to 1024 servers, and tells the error on the other points."""

from dataclasses import dataclass, field

from . import calibrate, chase

SERVERS = tuple(2 ** n for n in range(11))
MODES = ("get", "am", "ifunc_bitcode", "ifunc_object")


@dataclass
class Error:
    """A measured point beside its prediction."""
    mode: str
    servers: int
    depth: int
    inflight: int
    measured: float
    predicted: float
    calibrated: bool  # the costs come from it, so its error proves little

    @property
    def relative(self):
        return self.predicted / self.measured - 1


@dataclass
class Prediction:
    transport: str
    depth: int
    cores: int
    calibrated_on: tuple  # numbers of servers
    modes: tuple
    costs: dict
    gaps: object  # None without a tsi file of this transport
    servers: tuple = SERVERS
    here: dict = field(default_factory=dict)   # mode -> rates with all nodes on this machine's cores
    alone: dict = field(default_factory=dict)  # with a core for each node
    measured: dict = field(default_factory=dict)
    errors: list = field(default_factory=list)
    sources: list = field(default_factory=list)

    def tested(self, one_in_flight):
        """Errors of the points that the costs do not come from."""
        return [e for e in self.errors if not e.calibrated and (e.inflight == 1) == one_in_flight]


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def median_and_worst(errors):
    """Of the sizes of the relative errors; the worst as the Error itself. None without any."""
    if not errors:
        return None
    return median([abs(e.relative) for e in errors]), max(errors, key=lambda e: abs(e.relative))


def _errors(prediction, points):
    for point in points:
        for mode in prediction.modes:
            if mode not in point.modes or (point.inflight > 1 and prediction.gaps is None):
                continue
            predicted = chase.rate_per_s(mode, prediction.costs[mode], point.servers, point.depth, point.inflight,
                                         prediction.cores, prediction.gaps)
            yield Error(mode, point.servers, point.depth, point.inflight, point.rate(mode), predicted,
                        point.inflight == 1 and point.servers in prediction.calibrated_on)


def _costs(points, counts, cores):
    for mode in MODES:
        samples = [(p.servers, p.depth, p.rate(mode)) for p in points if p.servers in counts and mode in p.modes]
        if len({s for s, _, _ in samples}) == 2:
            yield mode, calibrate.costs_of(mode, samples, cores)


def predict_transport(results, transport):
    """None when fewer than three numbers of servers were measured: nothing would be left to check against."""
    points = results.select(transport=transport)
    single = [p for p in points if p.inflight == 1]
    counts = {p.servers for p in single}
    if len(counts) < 3:
        return None
    cores = single[0].source.json.get("machine", {}).get("cores", 2)
    chosen = calibrate.calibration_servers(counts)
    costs = dict(_costs(single, chosen, cores))
    if not costs:
        return None
    tsi = results.tsi_on(transport)
    depth = max(p.depth for p in single)
    prediction = Prediction(transport, depth, cores, tuple(sorted(chosen)), tuple(costs), costs,
                            calibrate.gaps_of(tsi.json) if tsi else None)
    for mode in prediction.modes:
        prediction.here[mode] = [chase.rate_per_s(mode, costs[mode], s, depth, cores=cores) for s in SERVERS]
        prediction.alone[mode] = [chase.rate_per_s(mode, costs[mode], s, depth) for s in SERVERS]
        prediction.measured[mode] = [(p.servers, p.rate(mode)) for p in single if p.depth == depth and mode in p.modes]
    prediction.modes = tuple(m for m in prediction.modes if prediction.measured[m])
    prediction.errors = list(_errors(prediction, points))
    prediction.sources = list({id(p.source): p.source for p in points}.values())
    return prediction


def predict(results):
    """Over TCP, where remote means remote; else over shared memory; None when neither was measured enough."""
    return predict_transport(results, "tcp") or predict_transport(results, "shm")
