"""Circuits of public projects in ``hagane rtl``: settled points beside random rows and yosys.

Run: ``python tests/outside/rtl_circuits.py [CIRCUIT…] [--from DIR] [--seconds S] [--yosys]``.
The projects are cloned when they are needed, into ``DIR`` or a temporary folder, and are no part of
this one. Printed is a line of a table for each circuit: the points of all kinds, how many of them
are settled (covered in the replay, dead, or reachable by an accelerated loop), how many 10⁶ uniform
random rows reach (run in the compiled model, with a reset every 1,000 rows), how many of the toggle
points yosys' bounded cover reaches in the same time, and differences to the simulator.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hagane.errors import HaganeError
from hagane.tools.rtl import Budget, Result, Sources, cover, read_sources
from hagane.tools.rtl.compiled.engine import Engine
from hagane.tools.rtl.search.search import toggle_goals

PROJECTS = {
    "picorv32": "https://github.com/YosysHQ/picorv32",
    "serv": "https://github.com/olofk/serv",
    "verilog-axis": "https://github.com/alexforencich/verilog-axis",
    "verilog-ethernet": "https://github.com/alexforencich/verilog-ethernet",
    "common_cells": "https://github.com/pulp-platform/common_cells",
    "basejump_stl": "https://github.com/bespoke-silicon-group/basejump_stl",
    "opentitan": "https://github.com/lowRISC/opentitan",
    "cvw": "https://github.com/openhwgroup/cvw",
}


@dataclass(frozen=True, slots=True)
class Circuit:
    """Where a circuit lies: files below its project, in order, and parameters of its top."""

    project: str
    files: tuple[str, ...]
    include: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    defines: tuple[str, ...] = ("SYNTHESIS",)


def _simple(project: str, folder: str, names: str, *more: str) -> dict[str, Circuit]:
    return {name: Circuit(project, (*more, f"{folder}/{name}.v")) for name in names.split()}


_CC = ("src/cc_pkg.sv",)
_PRIM = "hw/ip/prim/rtl"
CIRCUITS: dict[str, Circuit] = {
    **_simple("picorv32", ".", "picorv32"),
    **{
        name: Circuit("picorv32", ("picorv32.v",))
        for name in ("picorv32_pcpi_mul", "picorv32_pcpi_fast_mul", "picorv32_pcpi_div",
                     "picorv32_axi_adapter")
    },
    "serv_top": Circuit("serv", tuple(f"rtl/serv_{part}.v" for part in (
        "bufreg", "bufreg2", "alu", "csr", "ctrl", "decode", "immdec", "mem_if", "rf_if", "state",
        "aligner", "compdec", "top"))),
    "serv_rf_ram_if": Circuit("serv", ("rtl/serv_rf_ram_if.v",)),
    "serv_compdec": Circuit("serv", ("rtl/serv_compdec.v",)),
    **_simple("verilog-axis", "rtl", "axis_frame_len axis_register axis_adapter axis_broadcast "
              "axis_cobs_decode axis_rate_limit axis_frame_length_adjust axis_stat_counter "
              "axis_frame_join axis_ll_bridge axis_srl_fifo"),
    "axis_arb_mux": Circuit("verilog-axis", (
        "rtl/priority_encoder.v", "rtl/arbiter.v", "rtl/axis_arb_mux.v")),
    **_simple("verilog-ethernet", "rtl", "arp_eth_rx arp_eth_tx eth_axis_rx eth_axis_tx ip_eth_rx "
              "udp_ip_tx xgmii_baser_dec_64 xgmii_baser_enc_64 ptp_clock mac_pause_ctrl_rx "
              "eth_phy_10g_rx_ber_mon"),
    "axis_gmii_rx": Circuit("verilog-ethernet", ("rtl/lfsr.v", "rtl/axis_gmii_rx.v")),
    **{
        name: Circuit("common_cells", (*_CC, *more, f"src/{name}.sv"), ("include",))
        for name, more in {
            "cc_serial_deglitch": (), "cc_lfsr_8bit": (), "cc_delta_counter": (),
            "cc_counter": ("src/cc_delta_counter.sv",), "cc_fifo": (), "cc_exp_backoff": (),
            "cc_rr_arb_tree": ("src/cc_lzc.sv",), "cc_plru_tree": (),
        }.items()
    },
    **{
        name: Circuit("basejump_stl", (*more, f"{folder}/{name}.sv"), ("bsg_misc",), parameters)
        for name, folder, more, parameters in (
            ("bsg_counter_up_down", "bsg_misc", (),
             (("max_val_p", "9"), ("init_val_p", "2"), ("max_step_p", "3"))),
            ("bsg_round_robin_arb", "bsg_misc", (), (("inputs_p", "4"),)),
            ("bsg_idiv_iterative", "bsg_misc",
             ("bsg_misc/bsg_defines.sv", "bsg_misc/bsg_dff_en.sv", "bsg_misc/bsg_mux_one_hot.sv",
              "bsg_misc/bsg_adder_cin.sv", "bsg_misc/bsg_buf.sv", "bsg_misc/bsg_xnor.sv",
              "bsg_misc/bsg_nor2.sv", "bsg_misc/bsg_counter_clear_up.sv",
              "bsg_misc/bsg_idiv_iterative_controller.sv"),
             (("width_p", "16"),)),
        )
    },
    **{
        name: Circuit("opentitan", (*(f"{_PRIM}/{part}.sv" for part in more),
                                    f"{_PRIM}/{name}.sv"), (_PRIM,))
        for name, more in {
            "prim_arbiter_ppc": ("prim_util_pkg", "prim_leading_one_ppc"), "prim_filter_ctr": (),
            "prim_packer": ("prim_util_pkg", "prim_count_pkg"),
            "prim_lfsr": ("prim_cipher_pkg",), "prim_edge_detector": tuple(
                f"../../prim_generic/rtl/{part}" for part in ("prim_flop", "prim_flop_2sync")),
        }.items()
    },
    **{
        name: Circuit("cvw", (*more, f"src/{folder}/{name}.sv"))
        for name, folder, more in (
            ("binencoder", "generic", ()), ("lzc", "generic", ()),
            ("priorityonehot", "generic", ()),
            ("counter", "generic", ("src/generic/flop/flopenr.sv",)), ("comparator", "ieu", ()),
            ("spi_fifo", "uncore", ()),
        )
    },
}  # fmt: skip


def project_folder(name: str, base: Path) -> Path:
    """Return the folder of a project, cloned where it is not there."""
    folder = base / name
    if not folder.is_dir():
        subprocess.run(
            ["git", "clone", "--depth", "1", PROJECTS[name], str(folder)], check=True,
            capture_output=True,
        )  # fmt: skip
    return folder


def sources_of(name: str, base: Path) -> Sources:
    """Return the sources of a circuit."""
    circuit = CIRCUITS[name]
    folder = project_folder(circuit.project, base)
    return read_sources(
        [folder / file for file in circuit.files], name,
        [folder / path for path in circuit.include], circuit.defines, dict(circuit.parameters),
    )  # fmt: skip


def random_reach(result: Result, rows: int, seed: int = 1) -> int:
    """Return how many points uniform random rows reach: conditions, and bits that took both."""
    model = result.model
    goals = {**model.points, **toggle_goals(model)}
    engine = Engine(model, goals)
    source = np.random.default_rng(seed)
    resets = {reset.name: reset.active for reset in model.resets}
    prologue = engine.rows([resets, resets]) if resets else engine.rows([{}])
    masks = np.concatenate(
        [engine.rows([{item.name: (1 << item.width) - 1 for item in model.inputs}])]
    )
    rest = engine.rows([{name: 1 - level for name, level in resets.items()}])
    free = engine.rows([dict.fromkeys(resets, 1)])
    met = 0
    for _ in range(rows // 1000):
        drawn = source.integers(0, 1 << 64, (1000, engine.row_words), np.uint64, endpoint=False)
        body = (drawn & masks & ~free) | rest
        met |= engine.run(np.concatenate([prologue, body]), engine.warm(prologue[0]))[0]
    reached = engine.goals(met)
    points = sum(key in reached for key in model.points)
    for name, term in model.signals.items():
        pairs = {
            (goal.index, goal.value) for goal in reached if getattr(goal, "signal", None) == name
        }
        points += sum((k, 0) in pairs and (k, 1) in pairs for k in range(term.width))
    return points


def measure(name: str, base: Path, seconds: float, yosys: bool) -> dict[str, object]:
    """Return a circuit's numbers."""
    sources = sources_of(name, base)
    result = cover(sources, Budget(seconds))
    counts = result.counts()
    total = sum(row["total"] for row in counts.values())
    unknown = sum(row["unknown"] for row in counts.values())
    mine = [row for kind, row in counts.items()]
    found: dict[str, object] = {
        "circuit": name,
        "points": total,
        "covered": sum(row["covered"] for row in mine),
        "dead": sum(row["dead"] - row["dead_within_cycles"] for row in mine),
        "dead_within": sum(row["dead_within_cycles"] for row in mine),
        "reachable": sum(row.get("reachable", 0) for row in mine),
        "unknown": unknown,
        "settled": round(100 * (total - unknown) / max(1, total), 2),
        "random": random_reach(result, 1_000_000),
        "rows": sum(map(len, result.tests)),
        "seconds": round(result.seconds, 1),
        "simulator": result.simulator,
        "defects": result.defects[:3],
        "unknowns": [
            f"{s.kind} {s.where}: {s.why}" for s in result.statuses if s.status == "unknown"
        ][:6],
        "notices": [n for n in result.notices if "replayed" in n][:2],
    }
    if yosys:
        from yosys_cover import yosys_toggles

        found["yosys_toggles"] = yosys_toggles(sources, result, seconds)
        found["toggles"] = [counts["toggle"]["covered"], counts["toggle"]["total"]]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("circuit", nargs="*")
    parser.add_argument("--from", dest="base", type=Path, help="folder of checkouts")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--yosys", action="store_true", help="beside yosys' bounded cover")
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    with tempfile.TemporaryDirectory() as made:
        for name in arguments.circuit or CIRCUITS:
            try:
                row = measure(
                    name, arguments.base or Path(made), arguments.seconds, arguments.yosys
                )
            except HaganeError as error:
                row = {"circuit": name, "error": str(error)[:600]}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
