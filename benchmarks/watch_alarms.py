"""How often a watched training raises a false alarm, and whether it sees an early peak.

    python benchmarks/watch_alarms.py [--trainings N] [--looks N]

A tiny model remembers 3,000 facts of an invented world, each with four options; a probe is 300 of
them, drawn for every training. Trainings without harm are (a) at learning rate 0, where nothing
changes, and (b) on replay of the same facts only, where items fluctuate. Harm is the forgetting of
*all* facts at a look, beyond the margin and the noise floor: an alarm without harm is false.
Trainings with harm (c) learn new answers at a high rate, then return to replay: damage peaks early
and partly reverses.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from forgetmap.train.alarm import AlarmRule, Key, WatchedItems, judge_look

FACTS, PROBE, OPTIONS, WIDTH = 3000, 300, 4, 48
RULE = AlarmRule(margin=0.02, noise_floor=None, alpha=0.05)
CATEGORIES = {"red": "red", "blue": "blue", "green": "green"}


class Memory(torch.nn.Module):
    """An embedding per subject and a small network over it: facts share weights."""

    def __init__(self) -> None:
        super().__init__()
        self.subject = torch.nn.Embedding(FACTS, WIDTH)
        self.body = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.GELU(), torch.nn.Linear(2 * WIDTH, OPTIONS)
        )

    def forward(self, facts: torch.Tensor) -> torch.Tensor:
        """Return the logits of the options."""
        logits: torch.Tensor = self.body(self.subject(facts))
        return logits


def step(
    model: Memory, optimizer: torch.optim.Optimizer, facts: torch.Tensor, answers: torch.Tensor
) -> None:
    loss = torch.nn.functional.cross_entropy(model(facts), answers)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


@torch.no_grad()
def right(model: Memory, answers: torch.Tensor) -> np.ndarray:
    """Return which facts the model knows."""
    found: np.ndarray = (model(torch.arange(FACTS)).argmax(-1) == answers).numpy()
    return found


def start_model(answers: torch.Tensor) -> Memory:
    """Train until the model knows four of five facts, with noisy labels: many are near the edge."""
    torch.manual_seed(0)
    model = Memory()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    while right(model, answers).mean() < 0.8:
        facts = torch.randint(FACTS, (128,))
        step(model, optimizer, facts, answers[facts])
    return model


def train(
    kind: str, seed: int, start: Memory, answers: torch.Tensor, looks: int
) -> Iterator[np.ndarray]:
    """Yield what the model knows at each look of one training."""
    torch.manual_seed(seed)
    model = Memory()
    model.load_state_dict(start.state_dict())
    rate = {"still": 0.0, "replay": 3e-4, "harm": 3e-3}[kind]
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.0)
    new = answers.roll(1)
    for look in range(looks):
        for _ in range(10):
            facts = torch.randint(FACTS, (64,))
            is_new = kind == "harm" and look < looks // 3
            step(model, optimizer, facts, (new if is_new else answers)[facts])
        yield right(model, answers)


def watch(
    kind: str, seed: int, start: Memory, answers: torch.Tensor, looks: int
) -> tuple[bool, bool, bool, float]:
    """Return any alarm, any false alarm, alarm at the peak, and the maximum forgetting."""
    before = right(start, answers)
    drawn = random.Random(seed).sample(range(FACTS), PROBE)
    tasks = list(CATEGORIES)
    keys: list[Key] = [(tasks[fact % 3], str(fact)) for fact in drawn]
    known = {key: bool(before[fact]) for key, fact in zip(keys, drawn, strict=True)}
    groups = {"total": np.arange(FACTS)} | {
        name: np.arange(number, FACTS, 3) for number, name in enumerate(tasks)
    }
    alarms, false, losses = [], False, []
    for number, now in enumerate(train(kind, seed, start, answers, looks), 1):
        found = {key: bool(now[fact]) for key, fact in zip(keys, drawn, strict=True)}
        judged = judge_look(number, known, found, WatchedItems(CATEGORIES, {}), RULE)
        lost = before & ~now
        losses.append(float(lost.mean()))
        alarms.append(any(group.alarm for group in judged.values()))
        false |= any(
            group.alarm and lost[groups[name]].mean() <= RULE.margin
            for name, group in judged.items()
        )
    peak = int(np.argmax(losses))
    return any(alarms), false, any(alarms[: peak + 1]), max(losses)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainings", type=int, default=200)
    parser.add_argument("--looks", type=int, default=15)
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    answers = torch.randint(OPTIONS, (FACTS,), generator=generator)
    start = start_model(answers)
    for kind in ("still", "replay", "harm"):
        began = time.perf_counter()
        seen = [watch(kind, seed, start, answers, given.looks) for seed in range(given.trainings)]
        any_alarm, false, by_peak, losses = zip(*seen, strict=True)
        print(
            f"{kind}: {given.trainings} trainings, {given.looks} looks; forgot at most "
            f"{100 * float(np.median(losses)):.1f} % (median; largest {100 * max(losses):.1f} %); "
            f"an alarm in {sum(any_alarm)}, a false one in {sum(false)}, "
            f"one up to the peak in {sum(by_peak)} ({time.perf_counter() - began:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
