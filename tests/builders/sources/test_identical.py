"""Samples of the whole pools that repeat another one leave with their reason; the paper's stay."""

from pathlib import Path

from robustbench_tc.builders.sources import read
from robustbench_tc.schema import dumps


def test_no_two_samples_of_the_whole_pools_are_the_same_but_the_papers(shared: Path) -> None:
    pool = read(shared / "sources", "full")
    again = [issue for issue in pool.issues if issue.reason == "identical_row"]
    assert len(again) == 10 and {issue.source for issue in again} == {"apibank"}
    paper = {sample.clean_id for sample in read(shared / "sources", "paper").samples}
    kept = {sample.clean_id: sample for sample in pool.samples}
    assert paper <= kept.keys() and not paper & {issue.clean_id for issue in again}
    for issue in again:
        (first,) = (one for one in kept if issue.detail.endswith(f" {one}."))
        assert kept[first].source == issue.source and issue.clean_id not in kept
    shown = [dumps((s.messages, s.tools, s.golden_answers)) for s in pool.samples]
    assert len(set(shown)) == len(shown)
