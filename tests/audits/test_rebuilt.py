"""A build that cannot be made again: what the gate says of it."""

from pathlib import Path

import pytest

from robustbench_tc.audits import provenance
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.provenance import Rebuild, rebuilt
from robustbench_tc.errors import UserError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("a" * 159 + "bc"), "ValueError: " + "a" * 159 + "b"),
        (UserError("a" * 159 + "bc"), "a" * 159 + "bc"),
    ],
    ids=["an error of the code, cut to 160 characters", "a line for the user, whole"],
)
def test_why_the_build_cannot_be_made_again_is_the_checks_reason(
    error: Exception, said: str, training: Path
) -> None:
    def make(build: Path, out: Path) -> None:
        raise error

    found = provenance.audit(Folder(training), Rebuild(make, "its file")).checks
    reasons = {check.reason for check in found if check.id in rebuilt.CHECKS}
    assert reasons == {f"the build cannot be made again: {said}"}
