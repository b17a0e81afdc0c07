"""Rewards of groups in TRL's GRPOTrainer, for objectives that use them differently.

`GRPOTrainer` samples groups of completions, computes their rewards and converts them to advantages.
Objectives over groups need the rewards by group, before batches are shuffled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from forgetmap._lazy import require
from forgetmap.errors import UsageError

GroupFunction = Callable[[torch.Tensor], torch.Tensor]
"""Converts rewards (groups, completions of a group) to advantages of the same shape."""


def check_grpo(trainer: Any, name: str) -> None:
    """Check that the trainer is a GRPOTrainer, the only one that samples groups.

    Raises:
        UsageError: it is another trainer.
    """
    trl = require("trl", name)
    if not isinstance(trainer, trl.GRPOTrainer):
        raise UsageError(
            f"{name} needs groups of sampled completions, which {type(trainer).__name__} does "
            "not have",
            hint="use TRL's GRPOTrainer with your reward functions.",
        )


def replace_advantages(
    trainer: Any,
    advantages_of: GroupFunction,
    adjust: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Replace the advantages of a GRPOTrainer during training.

    Args:
        trainer: a GRPOTrainer.
        advantages_of: computes advantages from the rewards of whole groups.
        adjust: may make further changes to the batch of this process.
    """
    reward, generate = trainer._calculate_rewards, trainer._generate_and_score_completions  # noqa: SLF001
    rewards: list[torch.Tensor] = []

    def calculate_rewards(*args: Any, **kwargs: Any) -> Any:
        each = reward(*args, **kwargs)
        weights = trainer.reward_weights.to(each.device).unsqueeze(0)
        total = (each * weights).nansum(dim=1)
        rewards[:] = [total.masked_fill(torch.isnan(each).all(dim=1), float("nan"))]
        return each

    def generate_and_score(inputs: Any) -> Any:
        batch = generate(inputs)
        if not trainer.model.training:
            return batch
        groups = rewards[0].view(-1, trainer.num_generations)
        flat = torch.nan_to_num(advantages_of(groups)).flatten()
        size = len(batch["advantages"])
        first = trainer.accelerator.process_index * size
        batch["advantages"] = flat[first : first + size].to(batch["advantages"])
        if adjust is not None:
            adjust(batch)
        return batch

    trainer._calculate_rewards = calculate_rewards  # noqa: SLF001
    trainer._generate_and_score_completions = generate_and_score  # noqa: SLF001


def token_log_probs(trainer: Any, model: Any, batch: dict[str, Any]) -> torch.Tensor:
    """Return log-probabilities of the completions in a GRPO batch: (completions, tokens)."""
    logs, _, _ = trainer._get_per_token_logps_and_entropies(  # noqa: SLF001
        model,
        torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1),
        torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
        batch["completion_ids"].size(1),
    )
    result: torch.Tensor = logs
    return result


def plain_log_probs(trainer: Any, model: Any, batch: dict[str, Any]) -> torch.Tensor:
    """The same for a model without the patched forward of TRL, such as a copy."""
    completion = batch["completion_ids"]
    logits = model(
        input_ids=torch.cat([batch["prompt_ids"], completion], dim=1),
        attention_mask=torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
        use_cache=False,
    ).logits[:, -completion.size(1) - 1 : -1]
    logs: torch.Tensor = (logits.float() / trainer.temperature).log_softmax(-1)
    return logs.gather(-1, completion.unsqueeze(-1)).squeeze(-1)
