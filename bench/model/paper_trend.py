# SPDX-License-Identifier: Apache-2.0
"""What the model says about the paper's chases, with the times that the paper's own tables give.

The tables give the one-way times but no GET, so its gains over GET cannot be predicted from them: they can be
bracketed, and the GET time can be found that each stated gain would need.
"""

from dataclasses import dataclass

from .chase import Costs, chase_us

DEPTH = 4096


@dataclass(frozen=True)
class Trend:
    system: str
    servers: int
    stated_gain: float
    least_gain: float        # were a GET as quick as one message one way
    most_gain: float         # were it two messages
    needed_get_us: float     # for the stated gain
    get_over_one_way: float
    ifunc_over_am: float     # rate, by the tables' one-way times; section V.D states 0.93 to 0.97


def _gain(one_way_us, get_us, servers):
    return chase_us("get", Costs(get_us), servers, DEPTH) / chase_us("ifunc", Costs(one_way_us), servers, DEPTH) - 1


def trend(claim):
    """For one of report.paper.CHASE_CLAIMS. Local steps are taken as free, which favours the ifunc."""
    per_chase = chase_us("ifunc", Costs(claim.ifunc_us), claim.servers, DEPTH)
    needed = (1 + claim.gain) * per_chase / DEPTH
    return Trend(claim.system, claim.servers, claim.gain,
                 _gain(claim.ifunc_us, claim.ifunc_us, claim.servers),
                 _gain(claim.ifunc_us, 2 * claim.ifunc_us, claim.servers),
                 needed, needed / claim.ifunc_us, claim.am_us / claim.ifunc_us)
