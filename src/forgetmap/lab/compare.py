"""`lab compare`: train every method from one start to one score, and measure its losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from forgetmap.errors import UsageError
from forgetmap.lab.arms import Arm, OnArm, describe_start
from forgetmap.lab.folder import open_lab
from forgetmap.lab.methods import METHODS, find_method
from forgetmap.lab.recipe import LabRecipe
from forgetmap.lab.result import LabResult, LabRun
from forgetmap.lab.seeds import DEVELOPMENT_SEED, reported_seeds
from forgetmap.lab.summary import BASELINE, choose, summarise
from forgetmap.lab.workers import run_arms


@dataclass(frozen=True)
class LabPlan:
    """What is compared.

    Attributes:
        methods: their names; plain fine-tuning is among them.
        seeds: repetitions of each method at its best setting.
        strengths: those of a method that are tried instead of its own.
    """

    methods: tuple[str, ...]
    seeds: int
    strengths: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def sweep_arms(self, recipe: LabRecipe) -> list[Arm]:
        """Each method at each of its strengths and rates; plain fine-tuning at low rates too."""
        arms = []
        for name in self.methods:
            method = find_method(name)
            rates = (*recipe.low_rates, *recipe.rates) if name == BASELINE else recipe.rates
            strengths = self.strengths.get(name, method.strengths)
            arms += [
                Arm(name, float(strength), rate * method.rate_factor, DEVELOPMENT_SEED)
                for strength in strengths
                for rate in rates
            ]
        return list(dict.fromkeys(arms))

    def repeat_arms(self, development: Sequence[LabRun]) -> list[Arm]:
        """The best setting of each method, and plain fine-tuning at every rate, on other seeds.

        Any rate of plain fine-tuning may be the one of equal compute.
        """
        arms = []
        for name in self.methods:
            of_method = [run for run in development if run.method == name]
            chosen = of_method if name == BASELINE else [choose(of_method)]
            arms += [
                Arm(name, run.strength, run.rate, seed)
                for run in chosen
                for seed in self.reported_seeds
            ]
        return arms

    @property
    def reported_seeds(self) -> list[int]:
        """All but the one that chooses."""
        return reported_seeds(self.seeds)

    def count_arms(self, recipe: LabRecipe) -> int:
        """Training runs in all."""
        sweep = self.sweep_arms(recipe)
        plain = sum(arm.method == BASELINE for arm in sweep)
        return len(sweep) + self.seeds * (plain + len(self.methods) - 1)


def plan_comparison(
    methods: Sequence[str] | None = None,
    *,
    seeds: int = 3,
    strengths: Mapping[str, Sequence[float]] | None = None,
) -> LabPlan:
    """Check what is asked for, before anything is trained.

    Args:
        methods: their names, all that are not slow if left out; plain fine-tuning is always among
            them.
        seeds: repetitions of each method at its best setting; at least 2 for an interval.
        strengths: those of a method that are tried instead of its own.

    Raises:
        UsageError: a method is unknown, has no strength to try or is not among the methods, or
            there are fewer than 2 seeds.
    """
    reported_seeds(seeds)
    quick = [name for name, method in METHODS.items() if not method.is_slow]
    names = tuple(dict.fromkeys([BASELINE, *(methods or quick)]))
    for name in (*names, *(strengths or {})):
        find_method(name)
    for name, values in (strengths or {}).items():
        if name not in names or not METHODS[name].strength_of or not values:
            raise UsageError(
                f"{name!r} has no strengths to try",
                hint="choose a method with strengths (`forgetmap lab methods`), and add it to "
                "--methods.",
            )
    return LabPlan(names, seeds, dict(strengths or {}))


def compare_methods(
    recipe: LabRecipe,
    out: Path,
    methods: Sequence[str] | None = None,
    *,
    seeds: int = 3,
    strengths: Mapping[str, Sequence[float]] | None = None,
    workers: int = 1,
    capabilities: bool = False,
    on_arm: OnArm | None = None,
) -> LabResult:
    """Train with every method, at every rate and strength, and repeat the best of each.

    Settings are chosen on a development seed that is not reported. What is finished in `out` is
    not done again.

    Args:
        recipe: the world.
        out: folder for all runs.
        methods: their names, all that are not slow if left out; plain fine-tuning is always among
            them.
        seeds: repetitions of each method at its best setting; at least 2 for an interval.
        strengths: those of a method that are tried instead of its own.
        workers: processes that train at the same time.
        capabilities: also measure drift on the suite `capabilities`, of one seed of each method.
        on_arm: called after each run.

    Raises:
        UsageError: a method is unknown, or there are fewer than 2 seeds.
        OutputError: `out` holds runs of another recipe, or another process works there.
        ConvergenceError: plain fine-tuning diverged wherever it was tried.
    """
    plan = plan_comparison(methods, seeds=seeds, strengths=strengths)
    with open_lab(recipe, out, (DEVELOPMENT_SEED, *plan.reported_seeds)):
        trial = plan.sweep_arms(recipe)
        development = run_arms(recipe, out, trial, workers=workers, on_arm=on_arm)
        repeats = plan.repeat_arms(development)
        runs = run_arms(recipe, out, repeats, workers=workers, on_arm=on_arm)
        result = summarise(
            recipe,
            [*development, *runs],
            seeds=plan.reported_seeds,
            development_seed=DEVELOPMENT_SEED,
            start=describe_start(recipe, DEVELOPMENT_SEED),
        )
        return _with_capabilities(recipe, out, result) if capabilities else result


def _with_capabilities(recipe: LabRecipe, out: Path, result: LabResult) -> LabResult:
    """Measured on the first of the reported seeds."""
    from forgetmap.lab.capability_drift import measure_capabilities

    chosen = {
        method.method: run
        for method in result.methods
        for run in result.runs
        if (run.method, run.strength, run.rate, run.seed)
        == (method.method, method.strength, method.rate, result.seeds[0])
    }
    return result.model_copy(update={"capabilities": measure_capabilities(recipe, out, chosen)})
