"""Files beside the weights: configuration, tokenizer, chat template, recipe, model card."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.errors import ModelError
from forgetmap.merge.checkpoint import INDEX, Checkpoint
from forgetmap.merge.layers import LAYER_COUNTS
from forgetmap.merge.output.atomic_folder import RECIPE_FILE
from forgetmap.merge.output.layout import WeightLayout
from forgetmap.merge.registry import find_method
from forgetmap.merge.token_rows import SharedVocabulary, extend_tokenizer

if TYPE_CHECKING:
    from forgetmap.merge.job import TensorJob
    from forgetmap.merge.recipe.model import ModelPart, Recipe

TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "spiece.model",
    "sentencepiece.bpe.model", "chat_template.jinja", "chat_template.json", "*.tiktoken",
    "preprocessor_config.json", "processor_config.json",
)  # fmt: skip
TEMPLATE = "chat_template.jinja"
TEMPLATES = {
    "chatml": "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
}


@dataclass(frozen=True, slots=True)
class PreparedMerge:
    """A merge before the first weight is read.

    Attributes:
        template: the chat template, if it differs from that of the tokenizer.
    """

    recipe: Recipe
    vocabulary: SharedVocabulary
    jobs: Sequence[TensorJob]
    layout: WeightLayout
    template: str | None

    @property
    def main_model(self) -> Checkpoint:
        """The model whose configuration the result gets."""
        return self.vocabulary.models[self.recipe.base or self.recipe.all_models[0]]


def write_sidecar_files(folder: Path, name: str, merge: PreparedMerge) -> None:
    """Write everything but the weights; the configuration last, as it makes a folder a model."""
    main = merge.main_model.folder
    _copy(
        merge.vocabulary.models[merge.vocabulary.tokenizer].tokenizer_folder,
        folder,
        TOKENIZER_FILES,
    )
    if merge.vocabulary.added:
        extend_tokenizer(folder, merge.vocabulary.added)
    if merge.template is not None:
        _replace_template(folder, merge.template)
    _copy(main, folder, ("generation_config.json", "*.py"))  # code that belongs to a model
    (folder / RECIPE_FILE).write_text(merge.recipe.as_yaml(), encoding="utf-8")
    config = merged_config(merge)
    (folder / "README.md").write_text(model_card(merge.recipe, name, config), encoding="utf-8")
    index = merge.layout.index()
    if index is not None:
        _write_json(folder / INDEX, index)
    _write_json(folder / "config.json", config)


def merged_config(merge: PreparedMerge) -> dict[str, Any]:
    """Return the configuration of the main model, with the changes of the result."""
    config = {
        key: value for key, value in merge.main_model.config.items() if key != "_name_or_path"
    }
    sizes: Counter[str] = Counter()
    for job in merge.jobs:
        sizes[job.dtype] += prod(job.shape)
    config["torch_dtype" if "torch_dtype" in config else "dtype"] = sizes.most_common(1)[0][0]
    if any(job.name == "lm_head.weight" for job in merge.jobs):
        config["tie_word_embeddings"] = False
    if merge.recipe.slices:
        _count_layers(config, merge)
    return config


def choose_template(recipe: Recipe, models: Mapping[str, Checkpoint]) -> str | None:
    """Return the chat template of a recipe; None for that of the tokenizer.

    Raises:
        ModelError: there is no such template.
    """
    template = recipe.chat_template
    if template is None:
        return None
    templates = {name: read_template(model) for name, model in models.items()}
    if template == "auto":
        common = Counter(text for text in templates.values() if text is not None).most_common(1)
        return common[0][0] if common else None
    if "{" in template:
        return template
    text = TEMPLATES.get(template) or templates.get(template)
    if text is None and Path(template).is_file():
        text = Path(template).read_text(encoding="utf-8")
    if text is None:
        raise ModelError(
            f"There is no chat template '{template}'.",
            hint=f"use 'auto', {', '.join(map(repr, TEMPLATES))}, a model of the recipe that has "
            "one, a file, or the template itself.",
        )
    return text


def read_template(model: Checkpoint) -> str | None:
    """Return the chat template of a model."""
    folder = model.tokenizer_folder
    if (folder / TEMPLATE).is_file():
        return (folder / TEMPLATE).read_text(encoding="utf-8")
    if not (folder / "tokenizer_config.json").is_file():
        return None
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    text = config.get("chat_template")
    return text if isinstance(text, str) else None


def _count_layers(config: dict[str, Any], merge: PreparedMerge) -> None:
    """Set the number of layers of the slices, each of the kind in its first source."""
    slices = merge.recipe.slices
    inner = config.get("text_config")
    target = inner if isinstance(inner, dict) else config
    for key in LAYER_COUNTS:
        if key in target:
            target[key] = sum(layers.layers for layers in slices)
    kinds = target.get("layer_types")
    if isinstance(kinds, list):
        ranges = [layers.sources[0].layer_range or (0, 0) for layers in slices]
        target["layer_types"] = [kinds[at] for start, stop in ranges for at in range(start, stop)]


def model_card(recipe: Recipe, name: str, config: Mapping[str, Any]) -> str:
    """Return README.md, with the header for the hub."""
    method = find_method(recipe.method)
    dtype = config.get("dtype") or config.get("torch_dtype")
    lines = [
        *_card_header(recipe),
        f"# {name}",
        "",
        f"Merged with forgetmap {version('forgetmap')} by `{recipe.method}`: {method.summary}.",
        *([f"Paper: {method.paper}."] if method.paper else []),
        *([method.direction] if method.direction else []),
        "",
        "| model | role | parameters |",
        "|---|---|---|",
        *([f"| {recipe.base} | base | |"] if recipe.base else []),
        *(_card_row(part) for part in recipe.parts),
        "",
        f"Architecture: {config.get('model_type', 'unknown')}; weights in {dtype}.",
        "Licence and terms of use are those of the merged models.",
        "",
        "## Recipe",
        "",
        "To reproduce it: `forgetmap merge apply merge.yaml --out DIR`.",
        "",
        "```yaml",
        recipe.as_yaml().rstrip("\n"),
        "```",
        "",
        *(f"Note: {notice}\n" for notice in recipe.notices),
    ]
    return "\n".join(lines)


def _card_header(recipe: Recipe) -> list[str]:
    """Return the header with public names only: no folders of this machine."""
    ids = [model.partition("@")[0] for model in recipe.all_models if "+" not in model]
    public = [model for model in ids if not Path(model).expanduser().exists()]
    base_lines = ["base_model:", *(f"- {json.dumps(model)}" for model in public)] if public else []
    return ["---", "library_name: transformers", "tags:", "- merge", *base_lines, "---", ""]


def _card_row(part: ModelPart) -> str:
    role = "merged"
    if part.layer_range is not None:
        role = f"layers {part.layer_range[0]} to {part.layer_range[1] - 1}"
    parameters = part.model_dump(mode="json")["parameters"]
    values = ", ".join(f"{name} {_card_value(rules)}" for name, rules in parameters.items())
    return f"| {part.model} | {role} | {values} |"


def _card_value(rules: list[dict[str, Any]]) -> str:
    if len(rules) == 1 and rules[0]["filter"] is None:
        return str(rules[0]["value"])
    return "; ".join(f"{rule['value']} for {rule['filter'] or 'the rest'}" for rule in rules)


def _replace_template(folder: Path, template: str) -> None:
    (folder / TEMPLATE).write_text(template, encoding="utf-8")
    (folder / "chat_template.json").unlink(missing_ok=True)
    path = folder / "tokenizer_config.json"
    if path.is_file():
        config = json.loads(path.read_text(encoding="utf-8"))
        if config.pop("chat_template", None) is not None:
            _write_json(path, config)


def _copy(source: Path, target: Path, patterns: Sequence[str]) -> None:
    for pattern in patterns:
        for path in source.glob(pattern):
            shutil.copyfile(path, target / path.name)


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
