"""Submit, check, merge, check: the way of a run, with the real client on the tests' Hub."""

from .conftest import RunOf
from .hubs import Results


def test_a_run_gets_its_answer_and_after_the_merge_its_entry(results: Results, local_run_of: RunOf) -> None:
    sent = results.submit(local_run_of("gives-up-on-error"))
    assert sent.number == 1 and sent.url and sent.url.endswith("/discussions/1") and not sent.again
    report = results.check()
    assert report.pulls == {1: sent.entry} and report.entries == 0 and not report.problems
    [(author, text)] = results.comments(1)
    assert author == "maintainer" and "perturbed" in text
    head = results.hub.pull(f"datasets/{results.name}", 1)
    assert f"Checked: commit `{head}`" in text
    assert results.check().pulls == {} and len(results.comments(1)) == 1

    results.merge(1)
    assert results.read() == ([], {sent.entry.run: "it has no entry yet"})
    report = results.check()
    [entry] = report.new
    assert (entry.submitter, entry.member, entry.commit) == ("ada", True, head)
    assert results.read() == ([entry], {})
    before = results.files
    assert results.check().new == [] and results.files == before and len(results.comments(1)) == 1
