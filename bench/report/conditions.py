# SPDX-License-Identifier: Apache-2.0
"""The page's part about where it was measured, how noisy, what differs from the paper, and what is not there."""

from . import markup, paper
from .markup import code, paragraph, table


def machine_line(machine):
    """One sentence; what a file does not say is left out."""
    parts = []
    if machine.get("cpu"):
        parts.append(machine["cpu"])
    if machine.get("cores"):
        parts.append(f"{machine['cores']} cores" + (" of a virtual machine" if machine.get("virtualized") else ""))
    if machine.get("memory_bytes"):
        parts.append(f"{machine['memory_bytes'] / 2**30:.0f} GiB of memory")
    if machine.get("kernel"):
        parts.append(machine["kernel"])
    if machine.get("ucx"):
        parts.append(f"UCX {machine['ucx']}")
    if parts:
        parts.append(f"frequency governor {machine['governor']}" if machine.get("governor")
                     else "frequency governor not readable")
    return ", ".join(parts) or "a machine that the files do not describe"


def _machines(results):
    seen = list(dict.fromkeys(machine_line(r.json.get("machine", {})) for r in results.all()))
    if len(seen) == 1:
        return paragraph(f"Measured on: {markup.text(seen[0])}.")
    items = "".join(f"<li>{markup.text(line)}</li>" for line in seen)
    return paragraph("<b>The files come from different machines or settings: compare within one file only.</b>") + \
        f"<ul>{items}</ul>"


def _load(machine, key):
    values = machine.get(key)
    return f"{values[0]:.2f}" if isinstance(values, list) and values else "—"


def _files(results, data):
    rows = []
    for r in results.all():
        machine, found = r.json.get("machine", {}), r.noise()
        begun = machine.get("date", "—").replace("T", " ").removesuffix("Z")
        rows.append([r.name, r.json["bench"], r.transport, begun, _load(machine, "load_before"),
                     _load(machine, "load_after"), f"{found.middle:.1%}" if found else "—",
                     f"{found.worst:.0%} ({found.worst_name})" if found else "—"])
    where = f" The files: {code(data)}." if data else ""
    head = ["File", "Bench", "Transport", "Begun", "Load before", "Load after", "Spread, median", "Spread, worst"]
    return ("<h3>How noisy</h3>" +
            paragraph("Every figure is a median over interleaved runs with its quartiles. <i>Spread</i> is the "
                      "distance between the quartiles over the median. Loads are one-minute averages; the one after "
                      "holds the benchmark's own." + where) + table(head, rows, kind="text files"))


DIFFERENCES = (
    "The network is TCP of one kernel: on loopback for the tables, between network namespaces for the chases. The "
    "paper has InfiniBand (100 Gb/s ConnectX-6, BlueField-2) between machines.",
    "GET over TCP is not done by a network card: UCX emulates it in software, and the server's process must take part. "
    "On the paper's systems a GET does not touch the server's cores.",
    "Over shared memory a GET is a load from the other process's memory, which no message can beat. The paper has no "
    "such case; it stands here to show where moving the function does not pay.",
    "All nodes share the cores named above: with more processes than cores, each waits for the others' turns. The "
    "paper has a machine for each server.",
    "JIT is the time to compile never-seen code in a warm process, baseline tier; optimising for this CPU follows in the "
    "background. The paper's is one full compilation. As in the paper it is not part of the total.",
    "An uncached message here carries the slice that the target can use, the paper's carries all of them.",
    "Over TCP, calls sent one after the other are coalesced by the link. Their rate is one of frames: compare it with "
    "64 calls in one Active Message.",
    "Transmission is the total less lookup and execution, as in the paper's equations (1) to (3).",
)

# Only where one of them is drawn.
JULIA_DIFFERENCE = ("Figures 8 and 12 have the ifunc in Julia beside the one in C, measured in turn. Only the ifunc is "
                    "in Julia here; the paper's client is as well.")
# What measures a figure that is missing. Servers, depths and transport that are not named are the command's own choice.
COMMANDS = {
    **dict.fromkeys((5, 6, 7), "ifunc bench dapc --json"),
    8: "TC_JULIA=scripts/julia ifunc bench dapc --servers 2 --lang julia --json",
    9: "ifunc bench dapc --depth 4096 --json",
    10: "ifunc bench dapc --transport shm --depth 4096 --json",
    11: "ifunc bench dapc --depth 4096 --inflight 16 --json",
    12: "TC_JULIA=scripts/julia ifunc bench dapc --depth 4096 --lang julia --json",
}


def remedy(number):
    """A sentence for a figure that is missing."""
    return f"The command that measures it: {code(COMMANDS[number])}."


def _missing(results, drawn):
    items = [f"Table{'s' if many else ''} {name}: no tsi file over {transport}."
             for transport, name, many in (("shm", "I-VI, shared memory", True), ("tcp", "I-VI, TCP", True))
             if results.tsi_on(transport) is None]
    items += [f"Figure {n}: no such sweep{' with Julia' if f.julia else ''} in the files. {remedy(n)}"
              for n, f in paper.FIGURES.items() if str(n) not in drawn]
    if not any(p.transport == "tcp" and p.inflight > 1 for p in results.points):
        items.append("Several chases in flight over TCP.")
    items += [f"{markup.text(r.name)}: the run was stopped before its end." for r in results.dapc
              if r.json.get("complete") is False]
    items += ["RDMA hardware, more than one machine, Arm processors.", "More servers than the figures show, except on "
              "paper (last section)."]
    return "<h3>Not measured</h3><ul>" + "".join(f"<li>{i}</li>" for i in items) + "</ul>"


def render(results, drawn, data):
    differences = DIFFERENCES + ((JULIA_DIFFERENCE,) if "8" in drawn or "12" in drawn else ())
    emulated = "".join(f"<li>{d}</li>" for d in differences)
    transports = ", ".join(results.network(t) for t in ("shm", "tcp") if any(r.transport == t for r in results.dapc))
    chases = paragraph(f"Chases over: {transports}.") if transports else ""
    return ('<h2 id="conditions">Conditions</h2>' + _machines(results) + chases + _files(results, data) +
            f"<h3>Emulated, or not like the paper's</h3><ul>{emulated}</ul>" + _missing(results, drawn))
