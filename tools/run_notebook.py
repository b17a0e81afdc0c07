"""Runs the tutorial in an empty folder and keeps what its cells printed.

    python tools/run_notebook.py

The outputs are part of docs/tutorial.ipynb, so that readers on GitHub and on the site see them.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent.parent / "docs" / "tutorial.ipynb"
SECONDS = 300
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r(?=\n)")
SPINNER = re.compile(r"\r?[\u2800-\u28ff] [^\n\r\u2800-\u28ff]*?\.\.\.\r?")


def execute(folder: Path) -> Any:
    """Run the notebook in a folder and return it with outputs; a cell that fails is an error."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "COLUMNS": "100"}
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    )
    client.execute(env=environment)
    return notebook


def main() -> None:
    """Run and write the notebook."""
    with tempfile.TemporaryDirectory() as folder:
        notebook = execute(Path(folder))
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    nbformat.write(notebook, NOTEBOOK)


def _joined(outputs: list[Any]) -> list[Any]:
    """Join the printed output of a cell, without colours and animations of a terminal."""
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    text = CONTROL.sub("", SPINNER.sub("", CONTROL.sub("", printed))).strip("\r\n")
    streams = [nbformat.v4.new_output("stream", name="stdout", text=f"{text}\n")] if text else []
    return streams + [output for output in outputs if output.output_type != "stream"]


if __name__ == "__main__":
    main()
