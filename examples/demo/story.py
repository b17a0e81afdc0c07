"""Put everything that the demo made into one page.

Run: .venv/bin/python examples/demo/story.py --demo demo    (after `make demo`; a few seconds)
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import forgetmap as fm
from forgetmap.report import WatchedTraining, write_story
from forgetmap.sweep import SweepResult
from forgetmap.train import read_history

NAMES = {"plain": "plain fine-tuning", "protected": "with KL to the start"}


def read_training(demo: Path, number: int, folder: str) -> WatchedTraining:
    """One training: what was seen while it went on, and what it forgot in the end."""
    model = demo / "models" / folder
    runs = demo / "map" / "runs"
    comparison = fm.compare(runs / "0-start", runs / f"{number}-{folder}")
    score = json.loads((model / "new-task.json").read_text(encoding="utf-8"))["score"]
    history = read_history(model / "forgetting")
    return WatchedTraining(NAMES[folder], history, comparison, score)


def main() -> None:
    """Read what is there, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demo", type=Path, default=Path("demo"))
    demo = parser.parse_args().demo
    plain = read_training(demo, 1, "plain")
    protected = read_training(demo, 2, "protected")
    sweep = SweepResult.model_validate_json((demo / "sweep" / "sweep.json").read_text("utf-8"))
    page = write_story(plain, protected, sweep, demo / "story.html")
    print(f"Everything on one page: {page}")


if __name__ == "__main__":
    main()
