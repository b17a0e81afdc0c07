"""The packages of forgetmap in layers: what tests/test_architecture.py enforces and the docs draw.

A package imports only from layers below its own, so packages of one layer know nothing of each
other. Add a package here before you write it.
"""

from __future__ import annotations

from typing import Final

LAYERS: Final[tuple[dict[str, str], ...]] = (
    {"errors": "every way to fail, with what to type next"},
    {"_lazy": "imports on first use; what to install where a package is missing"},
    {
        "_plugins": "one registry of what installed packages add",
        "_http": "asking servers: retries, errors, limits",
        "_cache": "one folder for what is worth keeping",
        "_disk": "files that survive: syncs, locks, checksums",
        "_workers": "one pool of processes",
        "text": "sentences and tables as plain text, HTML fragments and Markdown",
        "results": "values, estimates with intervals, notices",
        "stats": "estimators and intervals on arrays only",
    },
    {
        "records": "THE table of results per item: schema, run folders, validation",
        "theory": "mixtures of two modes: formulas, simulations, claims, advice (no records)",
        "merge": "recipes, methods, weights (no records)",
    },
    {"scoring": "answers extracted and graded"},
    {
        "sources": "logs of harnesses, tables, remote paths read into records",
        "evaluation": "suites, prompts, backends: a model answers into records",
        "simulation": "two models whose knowledge is known",
    },
    {"pairing": "the same item before and after"},
    {"comparison": "counts, estimators, headline, flips, chains, plans"},
    {
        "capabilities": "taxonomies of tasks and drift per capability",
        "overlap": "two models by their log-probabilities",
        "probe": "a small set of items that stands for a full run",
        "sweep": "merges compared with both of their parents",
        "export": "sets to replay, items to ask again, model cards, data sets",
        "train": "forgetting watched in training, and mitigations for trainers",
    },
    {"lab": "ways to train compared: retention against gain, repair, merging under small drift"},
    {"study": "many pairs declared in one file, and findings tested over all of them"},
    {
        "report": "payloads drawn as figures, pages, Markdown and terminal output",
        "gate": "policies held against a comparison: PASS, FAIL or INCONCLUSIVE",
    },
    {
        "serve": "the pages of a report, served for any two runs",
        "map": "evaluate models or their merges, compare them, write reports",
        "harness_runs": "other harnesses run, their logs imported",
    },
    {
        "doctor": "what works on this machine",
        "pytest_plugin": "gates in pytest: options, a fixture, a summary",
        "inspect_extension": "the verdict at the end of a run of Inspect",
    },
    {"cli": "commands and groups of commands, one file each"},
    {"__main__": "`python -m forgetmap`"},
)
"""From the bottom up; each package with what it is for."""

PLANNED: Final = {"atlas": "above records and pairing"}
"""Packages to come, and where they will go."""

ONLY: Final = {"theory": {"errors", "_lazy"}, "merge": {"errors", "_lazy", "_plugins", "_disk"}}
"""Packages that stand alone: all they may use of the rest."""


def layer_of(package: str) -> int | None:
    """Number of the layer, from 0 at the bottom; None where the package is in no layer."""
    return next((number for number, layer in enumerate(LAYERS) if package in layer), None)


def drawing() -> str:
    """The layers as a Mermaid flowchart, users at the top."""
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
