"""An answer of the API that is not the one asked for: a status and one line, as JSON."""

from typing import Any

from robustbench_tc.errors import UserError


class Problem(UserError):
    """`status` is HTTP's. `extra` are further fields of the answer, `wait_s` when another try may help."""

    def __init__(self, status: int, line: str, *, wait_s: float | None = None, **extra: Any) -> None:
        super().__init__(line)
        self.status = status
        self.wait_s = wait_s
        self.extra = extra
