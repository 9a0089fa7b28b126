"""Compilers of other languages and an emulator, from Debian's packages, for the tests of builds.

Tests whose compiler is not there are left out and say so. Continuous integration installs them
first: as root, on a Debian of any kind, packages that come within ``LIMIT`` seconds.

Run it with any Python 3: ``make toolchains``. It always ends with status 0.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

# Programs, the files that stand for libraries, and the packages that have them.
PACKAGES = {
    "qemu-aarch64": ("qemu-user",),
    "/usr/aarch64-linux-gnu/lib/libc.so.6": ("libc6-arm64-cross",),
    "go": ("golang-go",),
    "ruby": ("ruby",),
    "ocamlfind ocamlopt ocaml": ("ocaml-nox",),
    "mcs": ("mono-mcs", "mono-runtime", "libmono-system-core4.0-cil"),
    "javac": ("default-jdk-headless",),
    "rustc": ("rustc",),
    "doxygen": ("doxygen",),
    "ghc": ("ghc",),
}
LIMIT = 240.0


def is_there(programs: str) -> bool:
    """Whether one of some programs, or a file, is on this machine."""
    return any(
        os.path.exists(name) if name.startswith("/") else shutil.which(name) is not None
        for name in programs.split()
    )


def install(packages: list[str], until: float) -> None:
    """Install packages, as far as they come until a time of ``time.monotonic``."""
    quick = ("-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20")
    commands = [("update",), *(("install", "-y", "--no-install-recommends", p) for p in packages)]
    for command in commands:
        left = until - time.monotonic()
        if left <= 0:
            return
        try:
            done = subprocess.run(
                ["apt-get", "-qq", *quick, *command],
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=left,
                check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"toolchains: {' '.join(command)}: {error}")
            return
        if done.returncode != 0:
            print(f"toolchains: {' '.join(command)}: {done.stderr.strip()[-300:]}")
            if command[0] == "update":
                return


def main() -> int:
    """Install what lacks, and name the rest."""
    missing = [program for program in PACKAGES if not is_there(program)]
    if missing and shutil.which("apt-get") is not None and os.geteuid() == 0:
        packages = [package for program in missing for package in PACKAGES[program]]
        install(packages, time.monotonic() + LIMIT)
    left = [program.split()[-1] for program in PACKAGES if not is_there(program)]
    print(f"toolchains: {'not here: ' + ', '.join(left) if left else 'all are here'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
