"""The second process that reads part of large logs (see crew.py)."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import asdict
from pathlib import Path

from forgetmap.records import refuse_pandas
from forgetmap.sources.adapter import Problems
from forgetmap.sources.gather import RunWriter

ORDER, TOLD = "order.pickle", "told.json"


def take(folder: Path, number: int) -> bool:
    """Take a share; False if the other one has it."""
    try:
        (folder / f"taken-{number}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def main(folder: Path) -> None:
    """Read what is left of the order that lies in a folder, and tell there what was found."""
    order, texts = pickle.loads((folder / ORDER).read_bytes())  # noqa: S301  # crew.py wrote it
    problems = Problems()
    with RunWriter(folder, texts=texts, problems=problems, is_part=True) as writer:
        for number, share in enumerate(order):
            if take(folder, number):
                for adapter, log in share:
                    for sample in adapter.read(log, problems, texts=texts):
                        writer.add(sample)
    told = {
        **writer.told(),
        "problem_count": problems.count,
        "problems": [asdict(each) for each in problems.kept],
    }
    (folder / TOLD).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    refuse_pandas()
    main(Path(sys.argv[1]))
