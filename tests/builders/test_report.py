"""What a build counts while rows pass, and what `rbtc build` prints of it."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from robustbench_tc.builders.report import Tally
from robustbench_tc.schema import Change

from ..conftest import Done
from .perturb import cases


@pytest.mark.parametrize(
    ("change", "measured"),
    [
        (Change("/messages/0/content", "four", "fo"), [0.5]),
        (Change("/messages/0/content", "", "an addition", 4), None),
        (Change("/messages/0", None, {"role": "user", "content": "Hello."}), None),
        (Change("/messages/0", {"role": "user", "content": "Hello."}, None), None),
        (Change("/tools", ["a", "b"], ["b", "a"]), None),
    ],
)
def test_lengths_are_those_of_rewritten_texts(change: Change, measured: list[float] | None) -> None:
    row = msgspec.structs.replace(
        cases.CLEAN["table"], type_code="query_paraphrase", component="observation", changes=(change,)
    )
    tally = Tally()
    tally.add(row)
    assert tally.ratios.get("query_paraphrase") == measured
    assert tally.rows == {"query_paraphrase": {"bfcl_v3": 1}}


def test_a_build_says_what_it_left_out_and_how_to_load_a_config(
    rbtc: Callable[..., Done], tmp_path: Path
) -> None:
    out = tmp_path / "one"
    done = rbtc("build", "--profile", "bundled", "--types", "transient_timeout", "--out", str(out))
    assert 'load_dataset("one", "transient_timeout", split="test")' in done.err
    assert "records left out: no_label 1 (each one in known_issues)" in done.out
