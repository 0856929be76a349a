"""Why an upload is not taken: the step that it failed and one line that says what to do."""

from robustbench_tc.errors import UserError

STEPS = {
    "size": "File sizes",
    "format": "Format",
    "dataset": "Dataset version and fingerprint",
    "ids": "Every row once",
    "record": "Run record",
    "name": "Model name",
    "protocol": "Protocol of the transition types",
    "journal": "Journal of every episode",
    "replay": "Replayed without the model",
    "score": "Parsed and scored",
    "form": "Form",
    "quota": "Quota",
}
"""The checks in their order, as the page names them."""

CORE, LIVE = ("protocol",), ("journal", "replay")
"""Checks of runs over the rows alone, and of live runs alone."""

APART = ("form", "quota")
"""Looked at before the upload is read, and spoken of only where they fail."""


class Refused(UserError):
    """An upload that fails the check `step`. `details` are further lines, such as ids, bounded."""

    def __init__(self, step: str, reason: str, details: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.step = step
        self.details = details
