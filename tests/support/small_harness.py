"""A program that behaves like a harness: `python small_harness.py WHAT FOLDER`."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

ROW = {
    "doc_id": 0,
    "doc": {"question": "Who?", "choices": ["me", "you"]},
    "target": "me",
    "arguments": {"gen_args_0": {"arg_0": "Who?", "arg_1": {"until": ["\n"]}}},
    "resps": [["me"]],
    "filtered_resps": ["me"],
    "filter": "none",
    "metrics": ["exact_match"],
    "exact_match": 1.0,
}


def main() -> None:
    what, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    doings = (log, letters, wait, stubborn, fail, killed)
    {doing.__name__: doing for doing in doings}[what](folder)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def log(folder: Path) -> None:
    say("asking")
    (folder / "samples_who_2026-01-01T00-00-00.000001.jsonl").write_text(json.dumps(ROW) + "\n")


def letters(_: Path) -> None:
    """Print a character in two pieces, and a line that is overwritten."""
    for piece in (b"na\xc3", b"\xafve\n", b"10%\r", b"100%\r\n"):
        os.write(1, piece)
        time.sleep(0.05)


def wait(folder: Path) -> None:
    """Wait for an interrupt, then write a marker file."""
    try:
        say("ready")
        time.sleep(60)
    except KeyboardInterrupt:
        (folder / "ended").touch()


def stubborn(_: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    say("ready")
    time.sleep(60)


def killed(folder: Path) -> None:
    """Kill this process while a child keeps its standard output open."""
    if os.fork() == 0:
        wait(folder)
        return
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)


def fail(folder: Path) -> None:
    """Fail at the first attempt; the second one finds the file of the first."""
    mark = folder / "tried"
    if mark.exists():
        log(folder)
        return
    mark.touch()
    say("working\nthe disk \x1b[31m is on fire")
    sys.exit(3)


if __name__ == "__main__":
    main()
