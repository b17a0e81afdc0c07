"""Whether a known vulnerability concerns a package that requirements.lock names.

usage: python tools/audit.py

Uses pip-audit, which needs a database on the network. The exit code is 1 if there is a
vulnerability; if the database or pip-audit is not available, it prints that nothing was audited and
returns 0.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from lock_hashes import LOCK

SECONDS = 600.0
COMMAND = (
    sys.executable, "-m", "pip_audit", "--requirement", str(LOCK), "--disable-pip",
    "--require-hashes", "--format", "json", "--progress-spinner", "off",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Audit:
    """Vulnerabilities, number of packages, and number of packages unknown to the database."""

    faults: list[str]
    audited: int
    skipped: int


def read_audit(output: str) -> Audit | None:
    """Parse the output of pip-audit; None if it is not a result."""
    try:
        packages: list[Any] = json.loads(output)["dependencies"]
        faults = [
            f"{package['name']} {package['version']}: {fault['id']} "
            f"(fixed in {', '.join(fault['fix_versions']) or 'no version'})"
            for package in packages
            for fault in package.get("vulns", [])
        ]
        skipped = sum("skip_reason" in package for package in packages)
    except (ValueError, LookupError, TypeError):
        return None
    return Audit(faults, len(packages) - skipped, skipped)


def say(audit: Audit | None, errors: str) -> int:
    """Print the result; return 1 only for a vulnerability."""
    if audit is None or not audit.audited:
        lines = [line.strip() for line in errors.splitlines() if line.strip()]
        told = lines[-1][:300] if lines and audit is None else "it knows none of the packages"
        print(f"Nothing was audited, as no database of vulnerabilities can be asked: {told}.")
        return 0
    unknown = f", {audit.skipped} are not in the database" if audit.skipped else ""
    print(*audit.faults, sep="\n", end="\n" if audit.faults else "")
    print(f"{len(audit.faults)} known vulnerabilities in {audit.audited} packages{unknown}.")
    return 1 if audit.faults else 0


def main() -> int:
    """Audit, and print the result."""
    try:
        done = subprocess.run(COMMAND, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return say(None, f"no reply within {SECONDS:.0f} s")
    return say(read_audit(done.stdout), done.stderr)


if __name__ == "__main__":
    sys.exit(main())
