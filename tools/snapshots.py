"""Writes or checks the snapshots of JSON output and report payloads.

.venv/bin/python tools/snapshots.py --check            list every difference by JSON path
.venv/bin/python tools/snapshots.py --write            rewrite changed snapshots
.venv/bin/python tools/snapshots.py --write drift      only commands or cases with this in the name
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from snapshot_cases import Case, all_cases  # after the path
from snapshot_store import SNAPSHOTS, difference, path_of, read, write


def main() -> int:
    """Return exit code 1 if a check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="rewrite the snapshots that changed")
    action.add_argument("--check", action="store_true", help="print differences")
    parser.add_argument("part", nargs="?", default="", help="of COMMAND/CASE [default: all]")
    args = parser.parse_args()
    cases = [case for case in all_cases() if args.part in f"{case.command}/{case.name}"]
    with tempfile.TemporaryDirectory() as folder:
        changed = [case for case in cases if _changed(case, Path(folder), write_it=args.write)]
    unused = [] if args.part else _unused(cases)
    for path in unused:
        print(f"{path.relative_to(SNAPSHOTS)}: no case has this name")
        if args.write:
            path.unlink()
    print(f"{len(cases)} cases, {len(changed)} {'written' if args.write else 'different'}")
    return int(args.check and bool(changed or unused))


def _changed(case: Case, folder: Path, *, write_it: bool) -> bool:
    path, new = path_of(case.command, case.name), case.run(folder)
    found = difference(read(path), new) if path.exists() else "no snapshot yet"
    if not found:
        return False
    print(f"{case.command}/{case.name}\n{found}\n")
    if write_it:
        write(path, new)
    return True


def _unused(cases: list[Case]) -> list[Path]:
    known = {path_of(case.command, case.name) for case in cases}
    return sorted(set(SNAPSHOTS.rglob("*.json")) - known)


if __name__ == "__main__":
    sys.exit(main())
