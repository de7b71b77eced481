# SPDX-License-Identifier: Apache-2.0
"""What the main paper published: Tables I-VI, and its statements about Figures 5-12 (they come without numbers).

"Three-Chains" of 2022, sections V.A-V.D. Times in microseconds, rates in messages a second. Where the table's
speedup cell is not the quotient of the printed, rounded values, it is the paper's own, from unrounded ones.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Platform:
    name: str
    breakdown_table: str  # I-III
    rates_table: str      # IV-VI
    lookup_us: tuple      # Active Message, uncached bitcode, cached bitcode
    transmission_us: tuple
    total_us: tuple
    jit_us: float
    rates: tuple
    latency_speedup: tuple  # cached bitcode against Active Message, against uncached bitcode; percent
    rate_speedup: tuple
    cached_latency_us: float  # as printed in Tables IV-VI; Thor BF2's differs from Table II by rounding


FRAME_BYTES = (33, 5185, 26)  # on every platform

PLATFORMS = (
    Platform("Ookami", "I", "IV", (0.08, 0.10, 0.05), (2.50, 5.02, 2.62), (2.58, 5.12, 2.67), 6590.0,
             (1_320_000, 405_300, 1_669_000), (-3.29, 91.39), (26.44, 311.79), 2.67),
    Platform("Thor BF2", "II", "V", (0.01, 0.04, 0.01), (1.87, 3.45, 1.85), (1.88, 3.49, 1.86), 4500.0,
             (974_000, 417_300, 1_311_000), (0.86, 87.73), (34.60, 214.16), 1.87),
    Platform("Thor Xeon", "III", "VI", (0.01, 0.01, 0.02), (1.55, 3.58, 1.51), (1.56, 3.59, 1.53), 830.0,
             (6_754_000, 2_037_000, 7_302_000), (2.30, 135.54), (8.11, 258.47), 1.53),
)


@dataclass(frozen=True)
class Figure:
    number: int
    caption: str
    claim: str
    julia: bool = False


FIGURES = {f.number: f for f in (
    Figure(5, "Thor 32-Server; C/C++ (Xeon Client and BF2 Servers)",
           "Cached bitcode is on par with Active Messages and cached binary on the Arm platforms, and up to 20 % "
           "faster than GET here."),
    Figure(6, "Ookami 64-Server; C/C++", "On par with Active Messages and binary; up to 30 % faster than GET."),
    Figure(7, "Thor 16-Server; C/C++ (Xeon Client and Servers)",
           "Up to 75 % faster than GET. As depth grows, the gaps between the lines become constant."),
    Figure(8, "Thor 32-Server; Julia (Xeon Client and BF2 Servers)", "Same sweep, with ifuncs from Julia.", True),
    Figure(9, "Thor 4096-Chase-Depth; C/C++ (Xeon Client and BF2 Servers)",
           "GET stays flat whatever the number of servers; Active Message and ifunc fall as servers are added, "
           "because more steps leave the server. Active Messages are 3-7 % faster than bitcode ifuncs."),
    Figure(10, "Ookami 4096-Chase-Depth; C/C++", "The same trends."),
    Figure(11, "Thor 4096-Chase-Depth; C/C++ (Xeon Client and Servers)", "The same trends."),
    Figure(12, "Thor 4096-Chase-Depth; Julia (Xeon Client and BF2 Servers)",
           "Bitcode from Julia is surprisingly constant over the number of servers.", True),
)}


@dataclass(frozen=True)
class ChaseClaim:
    """The best gain over GET that section V.C states, and the one-way times (us) its tables give for that system."""
    system: str
    servers: int
    gain: float
    ifunc_us: float
    am_us: float


CHASE_CLAIMS = (
    ChaseClaim("Thor, BF2 servers (Fig. 5)", 32, 0.20, 1.86, 1.88),
    ChaseClaim("Ookami (Fig. 6)", 64, 0.30, 2.67, 2.58),
    ChaseClaim("Thor, Xeon servers (Fig. 7)", 16, 0.75, 1.53, 1.56),
)
