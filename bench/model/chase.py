# SPDX-License-Identifier: Apache-2.0
"""The formulae (README.md explains them). Times in microseconds, one chase unless said otherwise."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
    """Of one mode. For GET a `trip` is a round trip, for ifunc and Active Message it is one way."""
    trip_us: float        # between two processes that poll on cores of their own, until the code has run
    step_us: float = 0.0  # a step that stays on its server; GET has none
    wait_us: float = 0.0  # added to each trip by each process that has no core of its own


def remote_fraction(servers):
    """How many of a random cycle's steps leave their server, when entries are spread evenly."""
    return (servers - 1) / servers


def trips(mode, servers, depth):
    """Over the network. A chase by code: there, the steps that leave their server, and the answer home."""
    if mode == "get":
        return depth
    return 2 + (depth - 1) * remote_fraction(servers)


def processes_without_core(servers, cores):
    """The servers and one client; None stands for a core each."""
    return 0 if cores is None else max(0, servers + 1 - cores)


def chase_us(mode, costs, servers, depth, cores=None):
    trip = costs.trip_us + costs.wait_us * processes_without_core(servers, cores)
    steps = 0 if mode == "get" else depth
    return trips(mode, servers, depth) * trip + steps * costs.step_us


def frames_together(servers, inflight):
    """Of the chases that a server holds, how many go on to the same server: what one message can carry."""
    return max(1.0, inflight / servers / max(1, servers - 1))


@dataclass(frozen=True)
class Gaps:
    """LogGP's g: the time between messages when one side is busy with nothing else (from `bench tsi`)."""
    message_us: float  # one Active Message
    frame_us: float    # one more frame in a message that goes anyway; what a cached call costs in a full one


def work_us(mode, costs, gaps, servers, depth, inflight):
    """CPU time of a chase: each trip is sent and received once; a GET's request and its answer, both."""
    if mode == "get":
        return depth * 4 * gaps.message_us
    per_trip = gaps.message_us
    if mode != "am":
        per_trip = gaps.message_us / frames_together(servers, inflight) + gaps.frame_us
    return trips(mode, servers, depth) * 2 * per_trip + depth * costs.step_us


def closed_rate(customers, alone_us, demand_us, stations):
    """Chases per microsecond of `customers` that each need `demand_us` at some of equal stations, and wait else.

    Schweitzer's approximation of mean value analysis. demand_us is limited to alone_us: nothing is faster alone.
    """
    demand = min(demand_us, alone_us)
    think = alone_us - demand
    residence = demand
    for _ in range(500):
        rate = customers / (think + residence)
        queue = rate * residence / stations  # at each station
        residence = 0.5 * residence + 0.5 * demand * (1 + queue * (customers - 1) / customers)
    return customers / (think + residence)


def rate_per_s(mode, costs, servers, depth, inflight=1, cores=None, gaps=None):
    """Chases per second. More than one in flight needs the gaps."""
    alone = chase_us(mode, costs, servers, depth, cores)
    if inflight == 1:
        return 1e6 / alone
    demand = work_us(mode, costs, gaps, servers, depth, inflight)
    if cores is not None:
        stations = cores
    elif mode == "get":
        demand, stations = demand / 2, 1  # the client's half; the servers' is spread over them
    else:
        stations = servers
    return 1e6 * closed_rate(inflight, alone, demand, stations)
