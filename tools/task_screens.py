"""Types the commands of docs/tasks.md and writes what they printed, and how long they took, below.

    python tools/task_screens.py

Each command runs as a process in a folder with small runs, logs and models.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "src")]

from command_blocks import EVALUATE, SERVERS, blocks_of  # noqa: E402  # of the tests
from page_folder import add_models, any_model, make_folder  # noqa: E402
from scripted_server import scripted_server  # noqa: E402

PAGE = ROOT / "docs" / "tasks.md"
LINES = 22
SCREEN = re.compile(r"\n\n[\d.]+ s:\n\n```text\n.*?\n```", re.DOTALL)


def screen_of(command: str, folder: Path, server: str) -> tuple[str, float]:
    """Return the output of a command, and its seconds of processor time."""
    typed = SERVERS.sub(server, command)
    if any(typed.startswith("forgetmap " + " ".join(path)) for path in EVALUATE):
        typed += " --limit 1 --max-new-tokens 4" + " --scoring generate" * ("http" in command)
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    setting = {
        "PATH": places,
        "PYTHONPATH": str(ROOT / "src"),
        "COLUMNS": "100",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "FORGETMAP_CACHE": str(folder / "cache"),
    }
    before = _spent()
    done = subprocess.run(
        ["bash", "-c", typed], cwd=folder, env={**os.environ, **setting},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode not in {0, 1, 3}:
        raise SystemExit(f"{command}\n{done.stderr}")
    text = done.stdout.replace(server, "http://localhost:8000/v1").replace(f"{folder}/", "")
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    if len(lines) > LINES:
        lines = [*lines[:LINES], "..."]
    return "\n".join(lines), _spent() - before


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run the commands of the page and write their output."""
    PAGE.write_text(SCREEN.sub("", PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as place, scripted_server(any_model) as server:
        folder = make_folder(Path(place) / "folder")
        add_models(folder)
        for block in blocks_of(PAGE):
            if block.kind != "sh":
                continue
            screens = [screen_of(command, folder, server) for command in block.commands()]
            shown = next((screen for screen, _ in screens if screen), "")
            seconds = sum(spent for _, spent in screens)
            fence = f"```sh\n{block.code}\n```"
            text = text.replace(fence, f"{fence}\n\n{seconds:.1f} s:\n\n```text\n{shown}\n```", 1)
            print(f"{seconds:5.1f} s  {block.code.splitlines()[0]}")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
