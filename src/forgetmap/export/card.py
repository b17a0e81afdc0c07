"""A section for model cards on forgotten items, with the evidence.

Two comments enclose the section, so that writing it again replaces it and keeps everything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from forgetmap import __version__
from forgetmap.comparison import (
    Comparison,
    ComparisonResult,
    GroupResult,
    RunResult,
    summarize,
    verdict_words,
)
from forgetmap.errors import UnreadableError
from forgetmap.export.choices import CARD_ROWS
from forgetmap.export.files import complete_file
from forgetmap.stats import OPEN
from forgetmap.text import (
    Line,
    Sheet,
    blocks_to_markdown,
    counted,
    escape_markdown,
    percent,
    quote_markdown,
    share,
)

BEGIN, END = "<!-- forgetmap: begin -->", "<!-- forgetmap: end -->"
"""Comments around the section."""
_SECTION = re.compile(rf"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
CORRECTED = (
    "Losses in the table are shares of all items of a group; the verdicts of groups are corrected "
    "for their number."
)
HEADS = ("items", "before", "after", "forgotten", "gained", "lost", "verdict")


@dataclass(frozen=True, slots=True)
class CardSummary:
    """The written section.

    Attributes:
        out: path of the file.
        verdict: verdict on all items.
        headline: the verdict in one sentence.
        action: whether the file was created, or a section was added or replaced.
    """

    out: str
    verdict: str
    headline: str
    action: str

    def to_json(self) -> str:
        """Return the output of `--json`."""
        return json.dumps(asdict(self), indent=2)


def write_card(
    comparison: Comparison, out: str | Path, *, command: str = "", rows: int = CARD_ROWS
) -> CardSummary:
    """Write the section on forgetting into a model card, or replace an earlier one.

    Everything else in the file stays as it is; a missing file is created.

    Args:
        comparison: result of `compare`.
        out: the model card, such as `README.md`.
        command: the command to show.
        rows: maximum number of groups in the table.
    """
    out = Path(out)
    section = card_section(comparison.result, command=command, rows=rows)
    card = _read(out)
    if card is None:
        text, action = f"{section}\n", "made"
    elif _SECTION.search(card):
        text, action = _SECTION.sub(lambda _: section, card, count=1), "replaced"
    else:
        text, action = (
            f"{card.rstrip()}\n\n{section}\n" if card.strip() else f"{section}\n",
            "added",
        )
    with complete_file(out, overwrite=True) as file:
        file.write(text)
    result = comparison.result
    return CardSummary(str(out), result.total.verdict, result.headline, action)


def card_section(result: ComparisonResult, *, command: str = "", rows: int = CARD_ROWS) -> str:
    """Return the section as Markdown, with the comments around it.

    Args:
        result: result of one comparison.
        command: the command to show.
        rows: maximum number of groups in the table.
    """
    summary = summarize(result)
    parts = [
        BEGIN,
        "## Forgetting",
        *blocks_to_markdown([Line(f"{result.after.name}: {summary.sentence}", "strong")]),
        *_paragraph([summary.counts, summary.interval and f"{summary.interval}.", summary.gained]),
        *_paragraph([summary.confirmed, summary.noise, summary.tasks]),
        *_table(result, rows),
        "### How it was measured",
        *blocks_to_markdown([Line(fact.words, lead=fact.label) for fact in summary.facts]),
        "\n".join(_how(result, command)),
        "### Limits",
        "\n".join(f"- {limit}" for limit in _limits(result)),
        END,
    ]
    return "\n\n".join(parts)


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        return None  # writing raises the error
    except UnicodeDecodeError as error:
        raise UnreadableError(
            f"the model card is not UTF-8 (byte {error.start})",
            file=str(path),
            hint="save it as UTF-8, or choose another --out.",
        ) from None


def _paragraph(sentences: Sequence[str]) -> list[str]:
    return blocks_to_markdown([Line(" ".join(filter(None, sentences)))])


def _table(result: ComparisonResult, rows: int) -> list[str]:
    """Return the groups with the largest certified losses; categories if there are any."""
    groups, noun = (result.categories, "category") if result.categories else (result.tasks, "task")
    first = sorted(groups, key=lambda group: -(group.loss.low or 0.0))[:rows]
    if len(groups) < 2:
        return []
    sheet = Sheet((noun, *HEADS), [(group.name, *_cells(group)) for group in first])
    hidden = len(groups) - len(first)
    plural = {"category": "categories", "task": "tasks"}[noun]
    rest = [f"The groups with the largest losses, of {len(groups):,} {plural}."] if hidden else []
    return blocks_to_markdown([sheet, *map(Line, rest)])


def _cells(group: GroupResult) -> tuple[str, ...]:
    low, high = group.loss.low, group.loss.high
    return (
        f"{group.items:,}",
        percent(group.acc_before),
        percent(group.acc_after),
        f"{group.forgotten:,}",
        f"{group.gained:,}",
        percent(None) if low is None else f"{share(low)} to {share(high)}",
        verdict_words(group),
    )


def _how(result: ComparisonResult, command: str) -> list[str]:
    rule = result.rule
    rule_words = (
        f"right from a score of {rule.correct_at:g}; margin {100 * rule.margin:g}%; "
        f"{100 * rule.level:g}% limits"
    )
    lines = [
        f"- **before**: {_run(result.before)}",
        f"- **after**: {_run(result.after)}",
        f"- **rule**: {rule_words}",
        f"- **made with**: forgetmap {__version__}",
    ]
    return [*lines, *([f"- **command**: {quote_markdown(command, 1_000)}"] if command else [])]


def _run(run: RunResult) -> str:
    """Return name, model and id of a run, without its private path."""
    facts = {"model": run.model, "run": run.run_id, "stage": run.stage}
    known = ", ".join(f"{n} {escape_markdown(v)}" for n, v in facts.items() if v and v != run.name)
    name = escape_markdown(run.name.rstrip("/").rpartition("/")[2] or run.name)
    return f"{name} ({known})" if known else name


def _limits(result: ComparisonResult) -> list[str]:
    """Return the limitations of the comparison."""
    total = result.total
    coverage = f"{counted(total.items, 'item')} of {counted(len(result.tasks), 'task')}"
    limits = [f"The comparison covers only {coverage}.", CORRECTED]
    if total.verdict in OPEN:
        limits.insert(0, "These data do not show whether anything was lost.")
    if result.before.simulated or result.after.simulated:
        limits.insert(0, "The data are simulated; no model was measured.")
    warnings = (escape_markdown(notice.message) for notice in result.pairing.warnings)
    return limits + [f"{words[:1].upper()}{words[1:]}" for words in warnings]
