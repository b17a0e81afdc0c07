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
    """Methods, seeds and strengths of a comparison.

    Attributes:
        methods: names of methods, including plain fine-tuning.
        seeds: number of repetitions of each method at its best setting.
        strengths: strengths to try instead of the defaults, by method.
    """

    methods: tuple[str, ...]
    seeds: int
    strengths: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def sweep_arms(self, recipe: LabRecipe) -> list[Arm]:
        """Return each method at each strength and rate; plain fine-tuning at low rates too."""
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
        """Return the best setting of each method, and plain fine-tuning at every rate, per seed.

        Any rate of plain fine-tuning may be the baseline of equal compute.
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
        """Return all seeds except the development seed."""
        return reported_seeds(self.seeds)

    def count_arms(self, recipe: LabRecipe) -> int:
        """Return the number of training runs."""
        sweep = self.sweep_arms(recipe)
        plain = sum(arm.method == BASELINE for arm in sweep)
        return len(sweep) + self.seeds * (plain + len(self.methods) - 1)


def plan_comparison(
    methods: Sequence[str] | None = None,
    *,
    seeds: int = 3,
    strengths: Mapping[str, Sequence[float]] | None = None,
) -> LabPlan:
    """Check methods, seeds and strengths before anything is trained.

    Args:
        methods: names of methods; by default all that are not slow. Plain fine-tuning is always
            included.
        seeds: number of repetitions of each method at its best setting; at least 2 for an interval.
        strengths: strengths to try instead of the defaults, by method.

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

    Settings are chosen on a development seed that is not reported. Runs that are finished in `out`
    are not repeated.

    Args:
        recipe: start model, data and settings.
        out: folder of all runs.
        methods: names of methods; by default all that are not slow. Plain fine-tuning is always
            included.
        seeds: number of repetitions of each method at its best setting; at least 2 for an interval.
        strengths: strengths to try instead of the defaults, by method.
        workers: number of processes that train in parallel.
        capabilities: also measure drift on the suite `capabilities`, for one seed of each method.
        on_arm: called after each run.

    Raises:
        UsageError: a method is unknown, or there are fewer than 2 seeds.
        OutputError: `out` has runs of another recipe, or another process uses it.
        ConvergenceError: plain fine-tuning diverged at every rate.
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
    """Add capability drift, measured on the first reported seed."""
    from forgetmap.lab.capability_drift import measure_capabilities

    chosen = {
        method.method: run
        for method in result.methods
        for run in result.runs
        if (run.method, run.strength, run.rate, run.seed)
        == (method.method, method.strength, method.rate, result.seeds[0])
    }
    return result.model_copy(update={"capabilities": measure_capabilities(recipe, out, chosen)})
