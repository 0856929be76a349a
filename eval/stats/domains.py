"""Whether robustness carries from one domain to another: the drop in each source, of live runs in each world.

A run of a model that was trained without a domain (a recipe's `hold_out`) stands beside the others: one line
of the table train × test. No run knows what its model was trained on, so whoever reads them says it.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from robustbench_tc.io import numbers

from .evidence import Evidence, drops, judged, own_clean
from .outcomes import Outcomes
from .packs import Table
from .runs import Run
from .significance import holm
from .values import codes_of, scored

NOT_SAID = "not said"
"""Stands for the domain that a model was trained without where nobody named it."""


def by_domain(run: Run, outcomes: Outcomes) -> dict[str, Evidence]:
    """Domain → what its perturbed rows say beside their clean ones, p corrected over the domains; those
    without a pair are left out. `why` is empty: its cures are those of a whole run."""
    sources = dict(zip(run.rows["clean_id"].tolist(), run.rows["source"].tolist(), strict=True))
    whole = outcomes.heads[1]
    parts = dict(outcomes.by_group(sources))
    sides = {
        domain: one
        for domain, part in parts.items()
        if (one := own_clean(part, scored(codes_of(whole)))) is not None
    }
    found = {domain: drops([side])[0] for domain, side in sides.items()}
    p_values = holm({domain: drop.p for domain, drop in found.items() if drop.p is not None})
    return {
        domain: msgspec.structs.replace(
            judged(whole, sides[domain], drop, p_values[domain], run, parts[domain]), name=domain, why=""
        )
        for domain, drop in found.items()
    }


def tables(runs: Sequence[tuple[str, str | None, Mapping[str, Evidence]]]) -> Iterator[Table]:
    """Every domain of every run, and of several runs train × test. `runs`: label, the domain that its model
    was trained without, and what its domains say."""
    yield Table(
        name="domains",
        title="By domain",
        columns=("run", "domain", "cases", "clean", "perturbed", "drop", "p (Holm)", "verdict"),
        rows=tuple(
            (
                label,
                f"{name} (held out)" if name == held_out else name,
                one.cases,
                one.before,
                one.after,
                one.drop,
                numbers.p_value(one.p_holm),
                one.word,
            )
            for label, held_out, domains in runs
            for name, one in domains.items()
        ),
        note="A domain is a source; of live runs, a world. Clean, perturbed and drop rest on the same pairs "
        "of rows (Δ matched); p is of the exact paired test, corrected over the domains of the run.",
    )
    if len(runs) > 1:
        names = sorted({name for _, _, domains in runs for name in domains})
        yield Table(
            name="train_test",
            title="Train × test: the drop in each domain",
            columns=("run", "trained without", *names),
            rows=tuple(
                (
                    label,
                    held_out or NOT_SAID,
                    *(domains[name].drop if name in domains else None for name in names),
                )
                for label, held_out, domains in runs
            ),
            note="A line is a run, a column the domain that it was asked in. Where the run that was trained "
            "without a domain drops more in its column than the others, robustness did not carry to it; rbtc "
            "compare tests two runs.",
        )
