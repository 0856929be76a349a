"""A text's key is asked for often and hashed once; where nobody writes, it is not asked for at all."""

import pytest

from robustbench_tc.builders.build import BuildSpec, prepare
from robustbench_tc.builders.perturb import REGISTRY, NotApplicable, TextRequest, base
from robustbench_tc.builders.sources import BUNDLED
from robustbench_tc.builders.sources import read as read_samples
from robustbench_tc.seeding import rng


def test_a_key_depends_on_kind_place_and_normalised_text_alone() -> None:
    one = TextRequest(kind="redundant", input="Books  a table. ", tool="reserve")
    same = TextRequest(kind="redundant", input="Books a table", tool="reserve", keep=("x",), context={"a": 1})
    assert one.key == same.key and len(one.key) == 32
    others = [
        TextRequest(kind="redundant", input="Books a table", tool="reserve", parameter="seats"),
        TextRequest(kind="query_paraphrase", input="Books a table", tool="reserve"),
        TextRequest(kind="redundant", input="Books a table"),
        TextRequest(kind="redundant", input="Books a table", tool="reserve", sample="a"),
        TextRequest(kind="redundant", input="Books a table", tool="reserve", sample="b"),
    ]
    assert len({one.key, *(other.key for other in others)}) == 6


def test_no_key_is_made_where_nobody_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*parts: str | None) -> str:
        raise AssertionError(f"a key was made for {parts}")

    pool = read_samples(BUNDLED, "bundled")
    codes = tuple(code for code, unit in REGISTRY.items() if unit.method == "llm")
    monkeypatch.setattr(base, "_key", refused)
    plan = prepare(BuildSpec(profile="bundled", codes=codes, generators=("none",)), pool=pool).plan
    context = plan.context()
    for code in codes:
        for sample in pool.samples:
            with pytest.raises(NotApplicable):
                REGISTRY[code].perturb(sample, rng(0, code, sample.clean_id), context)
