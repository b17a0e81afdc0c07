"""Build a fresh environment for each extra, and try every command in it.

usage: python tools/test_install.py [KIND...]     core, server, run, drift, serve; all if left out

The same as tests/integration/test_installations.py with hidden packages, but with real
environments:
`pip install` from the checkout, every file as in requirements.lock, then
tests/support/walk_commands.py with the Python of that environment.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from lock_hashes import LOCK, faults_of_report

ROOT = Path(__file__).parent.parent
KINDS = ("core", "server", "run", "drift", "serve")


def walk(kind: str, folder: Path) -> bool:
    """Whether every command works or names the package to install."""
    environment = folder / kind
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    package = str(ROOT) if kind == "core" else f"{ROOT}[{kind}]"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    report = folder / f"{kind}.json"
    subprocess.run(
        [*install, *constraints, "--dry-run", "--report", str(report), package], check=True
    )
    faults = faults_of_report(json.loads(report.read_text("utf-8")), LOCK.read_text("utf-8"))
    if faults:
        print(f"{kind}: not installed, as", *faults, sep="\n  ", flush=True)
        return False
    subprocess.run([*install, *constraints, package], check=True)
    script = ROOT / "tests" / "support" / "walk_commands.py"
    done = subprocess.run([python, script, folder / f"{kind}-walk", kind], check=False, cwd=folder)
    print(f"{kind}: {'fine' if done.returncode == 0 else 'FAULTS'}", flush=True)
    return done.returncode == 0


def main() -> int:
    """Check all kinds; return 1 if one has faults."""
    kinds = sys.argv[1:] or KINDS
    with tempfile.TemporaryDirectory(prefix="forgetmap-install-") as folder:
        outcomes = [walk(kind, Path(folder)) for kind in kinds]
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
