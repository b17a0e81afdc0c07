"""The second process that reads part of large logs (see crew.py)."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from forgetmap.sources.adapter import Problems
from forgetmap.sources.crew import TOLD
from forgetmap.sources.gather import RunWriter
from forgetmap.sources.logs import recognise
from forgetmap.sources.registry import adapter


def main(order: str) -> None:
    """Read the logs made of the files in the order, and tell what was found."""
    wanted = json.loads(order)
    folder, files = Path(wanted["folder"]), set(wanted["files"])
    problems = Problems()
    logs = [
        log
        for log in recognise(Path(wanted["path"]))
        if any(file.name in files for file in log.files[:1])
    ]
    with RunWriter(folder, texts=wanted["texts"], problems=problems) as writer:
        for log in logs:
            for sample in adapter(log.adapter).read(log, problems, texts=wanted["texts"]):
                writer.add(sample)
    told = {
        **writer.told(),
        "problem_count": problems.count,
        "problems": [asdict(each) for each in problems.kept],
    }
    (folder / TOLD).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
