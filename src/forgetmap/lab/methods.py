"""The methods of the lab: their requirements, and the strengths to try.

A method creates a trainer for a setting: most add mitigations to the plain one. Its strengths are
tried with every learning rate on the development seed; the setting that reached the target and
forgot least is then repeated on the other seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from forgetmap.errors import UsageError
from forgetmap.lab.recipe import LabRecipe, Row
from forgetmap.lab.start_texts import free_texts
from forgetmap.lab.training import reward_trainer, supervised_trainer, trainer_options
from forgetmap.train import (
    EWC,
    L2SP,
    OAPL,
    SDFT,
    EMAWeights,
    GradientProjection,
    KLToStart,
    LoRA,
    MarginPenalty,
    Mitigation,
    OnPolicyReplay,
    Replay,
    TTTDiscover,
    protect,
)

Needs = Literal["nothing", "prompts", "examples"]
"""Required old data: none, prompts without answers, or examples with answers."""
WRITTEN_ROWS = 600
"""Number of texts that the start model generates."""
WRITTEN_TOKENS = 16
RL_KL = 0.04
"""Weight of the KL to the start in GRPO, per token."""


@dataclass(frozen=True)
class ArmSetting:
    """Parameters of a training run.

    Attributes:
        recipe: start model, data and settings.
        strength: strength of the method.
        rate: learning rate.
        seed: random seed of data and order.
        folder: output folder of the trainer.
    """

    recipe: LabRecipe
    strength: float
    rate: float
    seed: int
    folder: Path

    @property
    def prompts(self) -> list[Row]:
        """Old examples without their answers."""
        return [{"prompt": row["prompt"]} for row in self.recipe.pool]


def _no_mitigations(_: ArmSetting) -> Sequence[Mitigation]:
    """Return no mitigations: plain training."""
    return ()


@dataclass(frozen=True)
class LabMethod:
    """A training method.

    Attributes:
        name: name on the command line.
        title: name in tables and figures.
        needs: required old data.
        mitigations: returns the mitigations of a setting.
        strengths: strengths to try; `strength_of` names the parameter.
        strength_of: parameter of the strength, such as `weight`; empty if there is none.
        trainer: function that creates another trainer than the plain one.
        rate_factor: factor on the learning rates of the recipe; adapters need higher ones.
        is_slow: whether it samples from the model at every step; then it runs only on request.
    """

    name: str
    title: str
    needs: Needs
    mitigations: Callable[[ArmSetting], Sequence[Mitigation]] = _no_mitigations
    strengths: tuple[float, ...] = (0.0,)
    strength_of: str = ""
    trainer: Callable[[ArmSetting, Any, Any], Any] | None = None
    rate_factor: float = 1.0
    is_slow: bool = False

    def make_trainer(self, setting: ArmSetting, model: Any, tokenizer: Any) -> Any:
        """Return a trainer with its mitigations."""
        make = self.trainer or _plain_trainer
        trainer = make(setting, model, tokenizer)
        mitigations = self.mitigations(setting)
        if mitigations:
            protect(trainer, *mitigations, tokenizer=tokenizer)
        return trainer


def _plain_trainer(setting: ArmSetting, model: Any, tokenizer: Any) -> Any:
    return supervised_trainer(
        setting.recipe, model, tokenizer,
        rate=setting.rate, seed=setting.seed, folder=setting.folder,
    )  # fmt: skip


def _sdft_trainer(setting: ArmSetting, model: Any, tokenizer: Any) -> Any:
    recipe = setting.recipe
    sdft = SDFT(template=recipe.hint_template, max_tokens=recipe.max_tokens, teacher="base")
    return sdft.make_trainer(
        model, list(recipe.new_rows(setting.seed)), tokenizer, str(setting.folder),
        **trainer_options(recipe, rate=setting.rate, seed=setting.seed),
    )  # fmt: skip


def _grpo_trainer(setting: ArmSetting, model: Any, tokenizer: Any) -> Any:
    return reward_trainer(
        setting.recipe, model, tokenizer,
        rate=setting.rate, seed=setting.seed, folder=setting.folder, beta=RL_KL,
    )  # fmt: skip


def _reward_trainer(setting: ArmSetting, model: Any, tokenizer: Any) -> Any:
    return reward_trainer(
        setting.recipe, model, tokenizer,
        rate=setting.rate, seed=setting.seed, folder=setting.folder, beta=0.0,
    )  # fmt: skip


def _kl(setting: ArmSetting, direction: Literal["forward", "reverse"]) -> list[Mitigation]:
    return [
        KLToStart(
            setting.prompts,
            weight=setting.strength,
            direction=direction,
            max_tokens=setting.recipe.max_tokens,
            seed=setting.seed,
        )
    ]


def _start_texts(setting: ArmSetting, model: Any, tokenizer: Any) -> list[Row]:
    return free_texts(
        setting.recipe, model, tokenizer,
        count=WRITTEN_ROWS, max_tokens=WRITTEN_TOKENS, seed=setting.seed,
    )  # fmt: skip


def _free_kl_trainer(setting: ArmSetting, model: Any, tokenizer: Any) -> Any:
    texts = _start_texts(setting, model, tokenizer)
    trainer = _plain_trainer(setting, model, tokenizer)
    protect(trainer, KLToStart(texts, weight=setting.strength, seed=setting.seed))
    return trainer


def _margin(
    setting: ArmSetting, *, kl: float = 0.0, risk: float = 0.0, focus: float = 0.0
) -> list[Mitigation]:
    return [
        MarginPenalty(
            setting.prompts,
            weight=setting.strength,
            max_tokens=setting.recipe.max_tokens,
            kl=kl,
            risk=risk,
            focus=focus,
            seed=setting.seed,
        )
    ]


def _margin_with_kl(setting: ArmSetting) -> list[Mitigation]:
    return _margin(setting, kl=setting.strength, risk=1.0, focus=0.5)


def _replay(setting: ArmSetting) -> list[Mitigation]:
    return [Replay(setting.recipe.pool, share=setting.strength, eos=False, seed=setting.seed)]


def _synthetic_replay_trainer(setting: ArmSetting, model: Any, tokenizer: Any) -> Any:
    texts = _start_texts(setting, model, tokenizer)
    trainer = _plain_trainer(setting, model, tokenizer)
    protect(trainer, Replay(texts, share=setting.strength, seed=setting.seed))
    return trainer


def _ewc(setting: ArmSetting) -> list[Mitigation]:
    return [
        EWC(
            setting.prompts,
            weight=setting.strength,
            max_tokens=setting.recipe.max_tokens,
            seed=setting.seed,
        )
    ]


def _projection(setting: ArmSetting) -> list[Mitigation]:
    return [
        GradientProjection(setting.prompts, max_tokens=setting.recipe.max_tokens, seed=setting.seed)
    ]


def _on_policy(setting: ArmSetting) -> list[Mitigation]:
    return [
        OnPolicyReplay(
            setting.prompts,
            weight=setting.strength,
            max_tokens=setting.recipe.max_tokens,
            seed=setting.seed,
        )
    ]


_KL_WEIGHTS = (1.0, 4.0)
_SHARES = (0.25, 0.5)
_ALL = (
    LabMethod("sft", "plain fine-tuning", "nothing"),
    LabMethod(
        "forward-kl", "forward KL to the start", "prompts", lambda setting: _kl(setting, "forward"),
        _KL_WEIGHTS, "weight",
    ),
    LabMethod(
        "reverse-kl", "reverse KL to the start", "prompts", lambda setting: _kl(setting, "reverse"),
        _KL_WEIGHTS, "weight",
    ),
    LabMethod(
        "free-kl", "forward KL on the start's own texts", "nothing", strengths=_KL_WEIGHTS,
        strength_of="weight", trainer=_free_kl_trainer,
    ),
    LabMethod("margin", "1->0 penalty", "prompts", _margin, _KL_WEIGHTS, "weight"),
    LabMethod(
        "margin-kl", "1->0 penalty with KL", "prompts", _margin_with_kl, _KL_WEIGHTS, "weight"
    ),
    LabMethod("replay", "replay", "examples", _replay, _SHARES, "share"),
    LabMethod(
        "synthetic-replay", "synthetic replay", "nothing", strengths=_SHARES, strength_of="share",
        trainer=_synthetic_replay_trainer,
    ),
    LabMethod(
        "l2sp", "L2-SP", "nothing", lambda setting: [L2SP(setting.strength)], (0.01, 0.05), "weight"
    ),
    LabMethod("ewc", "EWC", "prompts", _ewc, (10.0, 100.0), "weight"),
    LabMethod(
        "lora", "LoRA", "nothing", lambda setting: [LoRA(int(setting.strength))], (8, 32), "rank",
        rate_factor=2.5,
    ),
    LabMethod(
        "ema", "average of weights", "nothing", lambda setting: [EMAWeights(setting.strength)],
        (0.9, 0.98), "decay",
    ),
    LabMethod("projection", "gradient projection", "prompts", _projection),
    LabMethod(
        "on-policy", "on-policy replay", "prompts", _on_policy, (0.1, 0.4), "weight", is_slow=True
    ),
    LabMethod(
        "sdft", "self-distillation (SDFT)", "nothing", trainer=_sdft_trainer, is_slow=True
    ),
    LabMethod("grpo", "GRPO with KL", "nothing", trainer=_grpo_trainer, is_slow=True),
    LabMethod(
        "oapl", "OAPL", "nothing", lambda setting: [OAPL(t1=setting.strength, t2=setting.strength)],
        (0.1, 1.0), "temperature", _reward_trainer, is_slow=True,
    ),
    LabMethod(
        "ttt-discover", "TTT-Discover", "nothing",
        lambda setting: [TTTDiscover(strength=setting.strength)],
        (0.1,), "KL strength", _reward_trainer, is_slow=True,
    ),
)  # fmt: skip
METHODS: dict[str, LabMethod] = {method.name: method for method in _ALL}
"""All methods by name."""


def find_method(name: str) -> LabMethod:
    """Return a method by its name.

    Raises:
        UsageError: there is no such method.
    """
    if name not in METHODS:
        raise UsageError(f"there is no method {name!r}", hint=f"choose from {', '.join(METHODS)}.")
    return METHODS[name]
