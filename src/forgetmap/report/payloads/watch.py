"""A watched training as sentences and tables."""

from __future__ import annotations

from forgetmap.report.payloads.lab import KeyNumber
from forgetmap.text import Sheet, counted, listed, percent, share
from forgetmap.train import WatchHistory, WatchLook, WatchRule

MAX_ROWS = 16
"""Maximum number of rows of a table on a screen: the first, the last, and some between."""
WATCH_LEGEND = {
    "forgotten": "right at the start, wrong now; share of all items",
    "at least": "proven to be lost since the start, valid for all looks together",
    "gained": "wrong at the start, right now; share of all items",
    "KL": "KL(now || start), nats per token of the right answers",
}


def watch_title(history: WatchHistory) -> str:
    """Return the title of the report."""
    return f"Forgetting during training: {history.suite}"


def peak_of(history: WatchHistory) -> WatchLook | None:
    """Return the look with the most forgetting if it is not the last: damage that reversed."""
    looks = [look for look in history.curve if look.total.forgotten is not None]
    if not looks:
        return None
    most = max(looks, key=lambda look: look.total.forgotten or 0.0)
    return None if most is looks[-1] or not most.total.forgotten else most


def watch_headline(history: WatchHistory) -> str:
    """Return one sentence on what happened."""
    if not history.curve:
        return "No look was taken."
    last = history.curve[-1]
    rang = history.alarms[0] if history.alarms else None
    end = f"{share(last.total.forgotten)} of the items were forgotten at step {last.step:,}"
    if rang is None:
        return f"No alarm: {end}."
    return f"Alarm at step {rang.step:,}: {end}."


def watch_number(history: WatchHistory) -> KeyNumber | None:
    """Return the forgetting at the end."""
    if not history.curve:
        return None
    last = history.curve[-1].total
    return KeyNumber(
        share(last.forgotten),
        f"of {counted(last.items, 'item')} forgotten at the last look, {share(last.gained)} "
        f"gained; at least {share(last.lost_at_least)} lost",
    )


def watch_sentences(history: WatchHistory) -> list[str]:
    """Return sentences on the peak, the alarm and the cost."""
    sentences = []
    peak = peak_of(history)
    if peak is not None:
        after = history.curve[-1].total.forgotten
        sentences.append(
            f"Most forgotten at step {peak.step:,}: {share(peak.total.forgotten)}; {share(after)} "
            "at the end."
        )
    sentences += _alarm_sentences(history)
    cost = history.curve[-1].cost if history.curve else None
    if cost is not None:
        limit = "" if history.rule.cost is None else f", with a limit of {share(history.rule.cost)}"
        sentences.append(
            f"{counted(len(history.curve), 'look')} took {share(cost)} of the time in training"
            f"{limit}."
        )
    if history.best is not None:
        sentences.append(
            f"Kept checkpoint: step {history.best.step:,}, {share(history.best.forgotten)} "
            f"forgotten, accuracy {share(history.best.accuracy)}."
        )
    return sentences


def _alarm_sentences(history: WatchHistory) -> list[str]:
    """Return a sentence on the first alarm of each group; later looks repeat it."""
    first = {name: alarm for alarm in reversed(history.alarms) for name in alarm.groups}
    by_step = sorted({alarm.step for alarm in first.values()})
    sentences = []
    for step in by_step:
        names = [
            "all items" if name == "total" else name
            for name, alarm in first.items()
            if alarm.step == step
        ]
        action = next(alarm.action for alarm in history.alarms if alarm.step == step)
        sentences.append(
            f"Alarm at step {step:,} for {listed(names)}: more than the margin of "
            f"{percent(history.rule.margin)} was lost. Action: {action}."
        )
    again = len(history.alarms) - len(by_step)
    if again:
        sentences.append(f"The alarm was also raised at {counted(again, 'later look')}.")
    return sentences


def watch_gaps(history: WatchHistory) -> list[str]:
    """Return missing results with reasons."""
    return [f"step {gap.step:,}: {gap.kind}: {gap.message}" for gap in history.gaps]


def watch_sheet(history: WatchHistory, most: int | None = None) -> Sheet:
    """Return one row per look.

    Args:
        history: the training.
        most: maximum number of rows, evenly spread, including both ends.
    """
    heads = ("step", "accuracy", "forgotten", "gained", "lost at least", "KL", "loss", "alarm")
    looks = history.curve
    if most is not None and len(looks) > most:
        places = {round(k * (len(looks) - 1) / (most - 1)) for k in range(most)}
        looks = [looks[place] for place in sorted(places)]
    rang = {alarm.step for alarm in history.alarms}
    rows = [
        (
            f"{look.step:,}", share(look.total.accuracy), share(look.total.forgotten),
            share(look.total.gained), share(look.total.lost_at_least),
            _number(look.total.kl_to_start), _number(look.loss),
            "alarm" if look.step in rang else "",
        )
        for look in looks
    ]  # fmt: skip
    return Sheet(heads, rows, spare=("loss",))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def watch_category_sheet(history: WatchHistory) -> Sheet:
    """Return each category at the last look and at its worst."""
    heads = ("category", "items", "accuracy", "forgotten", "worst", "gained", "lost at least", "KL")
    last = history.curve[-1].categories if history.curve else {}
    worst = {name: worst_of(history, name) for name in last}
    rows = [
        (
            name, f"{group.items:,}", share(group.accuracy), share(group.forgotten),
            share(worst[name]), share(group.gained), share(group.lost_at_least),
            _number(group.kl_to_start),
        )
        for name, group in sorted(last.items(), key=lambda pair: -worst[pair[0]])
    ]  # fmt: skip
    return Sheet(heads, rows, spare=("KL", "accuracy"))


def worst_of(history: WatchHistory, category: str) -> float:
    """Return the largest share of a category that was forgotten at any look."""
    groups = (look.categories.get(category) for look in history.curve)
    return max((group.forgotten or 0.0 for group in groups if group is not None), default=0.0)


def _stated(rule: WatchRule) -> str:
    if rule.noise_floor is None:
        return ""
    return f", if reruns flip at most {percent(rule.noise_floor)} of the answers one way"


def watch_facts(history: WatchHistory) -> dict[str, str]:
    """Return the facts on controls and measurements."""
    rule = history.rule
    left = history.items_of_suite - history.items
    chosen = f" ({left:,} more were left out to limit the cost)" if left > 0 else ""
    return {
        "Items": (
            f"{history.items:,} items of {history.suite}{chosen}, the same at every look; each "
            "is compared with its answer at step 0."
        ),
        "Alarm": (
            f"The alarm is raised when a loss of more than {percent(rule.margin)} is proven"
            f"{_stated(rule)}; over all looks and groups together, at most {percent(rule.alpha)} "
            "of training runs have a false alarm."
        ),
        "Cost": "Looks are denser at the start, because damage peaks early"
        + ("." if rule.cost is None else f"; at most {percent(rule.cost)} of the training time."),
        "Model": "The probe restores the mode, random state and cache of the model.",
    }
