"""Options of commands that write a merged model, and the merge itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options import Command, overwrite_option, with_options
from forgetmap.cli.progress import JobProgress, stoppable

if TYPE_CHECKING:
    from forgetmap.merge import Recipe

DTYPES = ["float64", "float32", "float16", "bfloat16"]
UNITS = {
    "": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
}
MODEL_HELP = "A model is a folder with safetensors, a hub id, or BASE+ADAPTER."


class SizeType(click.ParamType[int]):
    """`5GB` as a number of bytes."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the size."""
        size = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]I?B|)\s*", str(value).upper())
        if size is None or float(size[1]) <= 0:
            self.fail(f"{value!r} is not a size, such as 5GB or 500MB", param, ctx)
        return max(int(float(size[1]) * UNITS[size[2]]), 1)


def writing_options(command: Command) -> Command:
    """Add options for the output folder and its files."""
    options = [
        click.option("--out", type=click.Path(path_type=Path), required=True,
                     help="Folder to write the merged model to."),
        click.option("--shard-size", type=SizeType(), default="5GB", show_default=True,
                     help="Maximum size of a weight file."),
        click.option("--threads", type=click.IntRange(1),
                     help="Number of tensors merged at the same time [default: cores + 1]."),
        overwrite_option,
    ]  # fmt: skip
    return with_options(command, options)


def model_options(command: Command) -> Command:
    """Add options for the merged model other than the method."""
    options = [
        click.option("--dtype", type=click.Choice(DTYPES),
                     help="Data type of the weights [default: that of the first model]."),
        click.option("--seed", type=int, default=0, show_default=True,
                     help="Random seed of methods that drop values at random."),
        click.option("--vocabulary", type=click.Choice(["error", "smallest", "base", "union"]),
                     default="error", show_default=True,
                     help="How to merge models with different tokens."),
        click.option("--tokenizer", metavar="MODEL",
                     help="Model whose tokenizer is used [default: the first]."),
        click.option("--chat-template", metavar="TEMPLATE",
                     help="Chat template of the result: `auto`, `chatml`, a model, a file, or the "
                     "template itself [default: that of the tokenizer]."),
    ]  # fmt: skip
    return with_options(command, options)


def write_merge(
    recipe: Recipe, *, out: Path, shard_size: int, threads: int | None, overwrite: bool
) -> None:
    """Merge, show the progress, and print the output folder."""
    from forgetmap._lazy import require

    require("torch", "Merging")
    from forgetmap.merge import apply_recipe

    message = "Stopped. Run the same command to resume."
    with stoppable(message), JobProgress() as progress:
        apply_recipe(
            recipe, out,
            shard_bytes=shard_size, threads=threads, overwrite=overwrite,
            on_progress=lambda step: progress.show_bytes(out.name, step),
        )  # fmt: skip
    click.echo(f"Written to {out}")
