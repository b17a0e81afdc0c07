"""`forgetmap merge apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from forgetmap.cli.options.merge import write_merge, writing_options

EXAMPLES = """\b
Examples:
  forgetmap merge apply recipe.yaml --out merged
  forgetmap merge apply mergekit.yml --out merged --shard-size 2GB
"""


@click.command("apply", epilog=EXAMPLES)
@click.argument("recipe", type=click.Path(path_type=Path))
@writing_options
def command(recipe: Path, **writing: Any) -> None:
    """Merge as a RECIPE in YAML says: ours, or mergekit's as it is.

    The folder gets the weights, configuration, tokenizer, a model card and the recipe itself.
    """
    from forgetmap._lazy import require

    require("yaml", "A recipe")
    from forgetmap.merge import read_recipe

    write_merge(read_recipe(recipe), **writing)
