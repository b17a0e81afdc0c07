"""The packages of forgetmap in layers: what tests/test_architecture.py enforces and the docs draw.

A package imports only from layers below its own, so packages of one layer are independent of each
other. Add a package here before you write it.
"""

from __future__ import annotations

from typing import Final

LAYERS: Final[tuple[dict[str, str], ...]] = (
    {"errors": "typed errors with hints"},
    {"_lazy": "imports on first use; errors that name the package to install"},
    {
        "_plugins": "registries of objects from installed packages",
        "_http": "requests to servers: retries, errors, limits",
        "_cache": "the cache folder of the user",
        "_disk": "durable files: syncs, locks, checksums",
        "_workers": "one pool of worker processes",
        "text": "sentences and tables as plain text, HTML fragments and Markdown",
        "results": "values, estimates with intervals, notices",
        "stats": "limits, verdicts and intervals on arrays only",
    },
    {
        "records": "the table of results per item: schema, run folders, validation",
        "theory": "mixtures of two modes: formulas, simulations, claims, advice (no records)",
        "merge": "recipes, methods, weights (no records)",
    },
    {"scoring": "answers extracted and graded"},
    {
        "sources": "logs of harnesses, tables, remote paths read into records",
        "evaluation": "suites, prompts, backends: a model answers into records",
        "simulation": "simulated models with known knowledge",
    },
    {"pairing": "pairs of results before and after"},
    {"comparison": "counts, limits, verdicts, flips, chains, plans"},
    {
        "capabilities": "taxonomies of tasks and drift per capability",
        "overlap": "overlap of two models from log-probabilities",
        "confirmation": "flips asked again: chosen, written for a harness, or asked",
        "probe": "small sets of items that represent a full run",
        "sweep": "merges compared with both of their parents",
        "export": "replay sets, model cards, data sets",
        "train": "watching forgetting in training, and mitigations for trainers",
    },
    {"lab": "training methods compared: retention and gain, repair, merging under small drift"},
    {"study": "many pairs declared in one file, and findings tested over all of them"},
    {
        "report": "payloads drawn as figures, pages, Markdown and terminal output",
        "gate": "policies checked on a comparison: PASS, FAIL or INCONCLUSIVE",
    },
    {
        "serve": "the pages of a report, served for any two runs",
        "map": "evaluate models or their merges, compare them, write reports",
        "harness_runs": "runs of other harnesses, and import of their logs",
    },
    {
        "doctor": "check of the installation",
        "pytest_plugin": "gates in pytest: options, a fixture, a summary",
        "inspect_extension": "a verdict at the end of an Inspect run",
    },
    {"cli": "commands and groups of commands, one file each"},
    {"__main__": "`python -m forgetmap`"},
)
"""Layers from the bottom up; each package with its purpose."""

PLANNED: Final = {"atlas": "above records and pairing"}
"""Planned packages, and their layers."""

ONLY: Final = {"theory": {"errors", "_lazy"}, "merge": {"errors", "_lazy", "_plugins", "_disk"}}
"""Self-contained packages: the only other packages that they may use."""


def layer_of(package: str) -> int | None:
    """Return the number of the layer, from 0 at the bottom; None if the package is in no layer."""
    return next((number for number, layer in enumerate(LAYERS) if package in layer), None)


def drawing() -> str:
    """Return the layers as a Mermaid flowchart, with users at the top."""
    lines = ["```mermaid", "flowchart TD"]
    for number, layer in reversed(list(enumerate(LAYERS))):
        lines.append(f'    subgraph L{number}[" "]')
        lines += [
            f'        {name.strip("_")}["{name}<br/>{purpose}"]' for name, purpose in layer.items()
        ]
        lines.append("    end")
    numbers = range(len(LAYERS) - 1, -1, -1)
    lines += ["    " + " --> ".join(f"L{number}" for number in numbers), "```"]
    return "\n".join(lines)
