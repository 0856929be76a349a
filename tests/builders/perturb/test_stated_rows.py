"""The rows of whole pools are those that every type states, and what has none has a stated reason."""

from collections import Counter
from pathlib import Path

import pytest

from robustbench_tc import taxonomy
from robustbench_tc.builders.build import BuildSpec, prepare
from robustbench_tc.builders.perturb import REGISTRY
from robustbench_tc.builders.plan import Skip
from robustbench_tc.builders.sources import Profile
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import Sample

from ...conftest import nightly
from . import cases

REASONS = cases.read("reasons.yaml", dict[str, dict[str, dict[str, int]]])


BY_NIGHT = [pytest.param(profile, marks=nightly) for profile in ("paper", "full")]


@pytest.mark.parametrize("profile", ["bundled", *BY_NIGHT])
def test_types_have_the_rows_that_they_state_and_reasons_for_others(profile: Profile, shared: Path) -> None:
    """Of the whole pools those of the packs whose pages explain the numbers."""
    explained = {"abstention", "registry", "offers"}
    codes = tuple(code for code in REGISTRY if profile != "full" or REGISTRY[code].pack in explained)
    plan = prepare(BuildSpec(profile=profile, sources=shared / "sources", codes=codes)).plan
    context = plan.context()
    for code in codes:
        unit, kind = REGISTRY[code], taxonomy.get(code)
        found = list(zip(plan.samples, plan.rows(code, context), strict=True))
        rows = [(clean, row) for clean, row in found if isinstance(row, Sample)]
        assert (code, len(rows)) == (code, getattr(unit.rows, profile))
        skips = Counter(row.reason for _, row in found if isinstance(row, Skip))
        stated = REASONS[profile].get(code, {})
        assert "" not in skips and {reason: skips[reason] for reason in stated} == stated, code
        sources = {row.source for _, row in rows}
        # Not every sample of a source holds words that other languages have a form of their own for.
        assert sources <= set(kind.sources), code
        assert sources == set(kind.sources) or profile != "paper" or kind.pack == "language" or not rows, code
        judged = profile == "bundled" or (profile == "paper" and kind.pack == "core")
        for clean, row in rows if judged else ():
            assert row.id == f"{clean.clean_id}::{code}" and unit.problems(clean, row) == []
            assert self_check(row, clean) is None and not any("**Think" in tool.name for tool in row.tools)
            assert kind.channel == "result" or row.injected_error == kind.injected_error
