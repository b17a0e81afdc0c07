"""The command `forgetmap`: loads subcommands and prints typed errors without tracebacks."""

from __future__ import annotations

import atexit
import io
import os
import sys
import traceback

import click
from click.shell_completion import get_completion_class

from forgetmap import __version__
from forgetmap.cli.groups import CommandGroup
from forgetmap.errors import ForgetmapError, HarnessError

COMMANDS = {
    "compare": "Compare a model before and after training.",
    "confirm": "Ask the flipped items again, to prove what was lost.",
    "drift": "Measure how capabilities and style drifted.",
    "gate": "Decide whether a model may be released.",
    "report": "Write a comparison as one file to read and share.",
    "map": "Evaluate models before and after, and compare them.",
    "run": "Evaluate one model on a suite.",
    "merge": "Merge models, and measure what the merge keeps.",
    "lab": "Compare training methods by how much they forget.",
    "study": "Compare many pairs of models and find trends.",
    "probe": "Choose a small set of items that detects forgetting.",
    "export": "Write training data, a model card, or a data set.",
    "plan": "Calculate how many items and repeats detect a loss.",
    "serve": "Explore runs of any size in a browser.",
    "overlap": "Measure the overlap of two models and bound what was kept.",
    "records": "Check, show and convert tables of per-item results.",
    "simulate": "Write two simulated runs with known forgetting.",
    "theory": "Verify and apply a theory of why post-training forgets.",
    "doctor": "Check what works on this machine, and how to fix the rest.",
    "completion": "Print the shell completion script.",
}
EXAMPLES = """\b
Examples:
  forgetmap compare runs/base runs/tuned
  forgetmap compare base.csv tuned.csv --columns item=question_id,score=correct
  forgetmap compare runs/base runs/sft runs/rl --chain
  forgetmap compare runs/base runs/tuned --show forgotten
  forgetmap confirm runs/base runs/tuned --out confirm
  forgetmap drift runs/base runs/tuned --taxonomy captrack
  forgetmap gate runs/base runs/tuned
  forgetmap report runs/base runs/tuned --out report.html
  forgetmap map models/base models/tuned --suite basics --out map
  forgetmap records check results.jsonl
"""
UNFORESEEN = 4
"""Exit code of a gate without a decision, after an unexpected error."""
COMPLETION_EXAMPLES = """\b
Examples:
  forgetmap completion bash >> ~/.bashrc
  forgetmap completion zsh >> ~/.zshrc
  forgetmap completion fish > ~/.config/fish/completions/forgetmap.fish
"""


@click.group(
    cls=CommandGroup,
    package="forgetmap.cli",
    lines=COMMANDS,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(
    __version__, prog_name="forgetmap", help="Show the version of forgetmap and exit."
)
def cli() -> None:
    """Show what a language model lost in post-training: which items, how many, and why."""


@cli.command("completion", epilog=COMPLETION_EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the shell completion script."""
    script = get_completion_class(shell)
    assert script is not None  # noqa: S101  # click has all three
    click.echo(script(ctx.find_root().command, {}, "forgetmap", "_FORGETMAP_COMPLETE").source())


def script() -> None:
    """Entry point of the installed command.

    If torch was loaded, it keeps types of DuckDB alive until the end, and DuckDB would report each
    of them at exit. So the process ends before that.
    """
    try:
        main()
    except SystemExit as end:
        if "torch" not in sys.modules:
            raise
        atexit._run_exitfuncs()  # noqa: SLF001  # as the interpreter would do
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else int(end.code is not None))


def main() -> None:
    """Run the command; typed errors end in exit code 2."""
    _replace_unencodable()
    if sys.argv[1:2] == ["gate"]:
        sys.exit(_run_gate())
    try:
        cli.main(prog_name="forgetmap")
    except ForgetmapError as error:
        _print_error(error)
        sys.exit(2)
    except _cluster_failures() as error:
        from forgetmap.records import spark_error

        _print_error(spark_error(error))
        sys.exit(2)
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has closed it: that is not an error.
        _drop_output()
        sys.exit(1)


def _cluster_failures() -> tuple[type[BaseException], ...]:
    """Return the errors of Spark if it is loaded; called only after an error."""
    if "pyspark" not in sys.modules:
        return ()
    from forgetmap.records import spark_failures

    return spark_failures()


def _run_gate() -> int:
    """Return the exit code of a gate: 0 and 1 are decisions, so no other outcome may use them."""
    try:
        return _gate_code()
    except BaseException:  # noqa: BLE001  # not even the error could be printed
        return UNFORESEEN


def _gate_code() -> int:
    try:
        code = cli.main(prog_name="forgetmap", standalone_mode=False)
        sys.stdout.flush()
    except ForgetmapError as error:
        _print_error(error)
        return 2
    except click.ClickException as error:
        error.show()
        return 2
    except (BrokenPipeError, SystemExit):
        # The pipe is closed; rich would end the process with 1.
        _drop_output()
        return UNFORESEEN
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted: nothing was decided.", err=True)
        return UNFORESEEN
    except Exception:  # noqa: BLE001  # any other error is not a decision
        traceback.print_exc()
        return UNFORESEEN
    return code if isinstance(code, int) else 0


def _drop_output() -> None:
    """Discard the remaining output, so that writing it cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _replace_unencodable() -> None:
    """Replace characters that the terminal cannot show, instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _print_error(error: ForgetmapError) -> None:
    from forgetmap.text import printable

    output = error.output if isinstance(error, HarnessError) else ()
    click.secho("Error: ", fg="red", bold=True, err=True, nl=False)
    lines = [printable(error.located), *(f"  | {printable(line)}" for line in output)]
    click.echo("\n".join([*lines, f"Hint: {printable(error.hint)}"]), err=True)
