"""The model card of a merged model: what it is made of, and how to make it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.merge.registry import find_method

if TYPE_CHECKING:
    from forgetmap.merge.recipe.model import ModelPart, Recipe


def model_card(recipe: Recipe, name: str, config: Mapping[str, Any]) -> str:
    """README.md, with the header that the hub reads."""
    method = find_method(recipe.method)
    dtype = config.get("dtype") or config.get("torch_dtype")
    lines = [
        *_header(recipe),
        f"# {name}",
        "",
        f"Merged with forgetmap {version('forgetmap')} by `{recipe.method}`: {method.summary}.",
        *([f"Paper: {method.paper}."] if method.paper else []),
        *([method.direction] if method.direction else []),
        "",
        "| model | role | parameters |",
        "|---|---|---|",
        *([f"| {recipe.base} | base | |"] if recipe.base else []),
        *(_row(part) for part in recipe.parts),
        "",
        f"Architecture: {config.get('model_type', 'unknown')}; weights in {dtype}.",
        "Licence and limits of use are those of the models it is made of.",
        "",
        "## Recipe",
        "",
        "To make it again: `forgetmap merge apply merge.yaml --out DIR`.",
        "",
        "```yaml",
        recipe.as_yaml().rstrip("\n"),
        "```",
        "",
    ]
    return "\n".join(lines)


def _header(recipe: Recipe) -> list[str]:
    """Only names that mean something elsewhere: no folders of this machine."""
    ids = [model.partition("@")[0] for model in recipe.all_models if "+" not in model]
    public = [model for model in ids if not Path(model).expanduser().exists()]
    named = ["base_model:", *(f"- {json.dumps(model)}" for model in public)] if public else []
    return ["---", "library_name: transformers", "tags:", "- merge", *named, "---", ""]


def _row(part: ModelPart) -> str:
    role = "merged"
    if part.layer_range is not None:
        role = f"layers {part.layer_range[0]} to {part.layer_range[1] - 1}"
    parameters = part.model_dump(mode="json")["parameters"]
    values = ", ".join(f"{name} {_value(rules)}" for name, rules in parameters.items())
    return f"| {part.model} | {role} | {values} |"


def _value(rules: list[dict[str, Any]]) -> str:
    if len(rules) == 1 and rules[0]["filter"] is None:
        return str(rules[0]["value"])
    return "; ".join(f"{rule['value']} for {rule['filter'] or 'the rest'}" for rule in rules)
