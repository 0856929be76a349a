"""What a user gets wrong ends in a `UserError` of one line."""

from collections.abc import Callable
from typing import ParamSpec

import pytest

from robustbench_tc.errors import UserError

P = ParamSpec("P")


def refuses(match: str, call: Callable[P, object], *args: P.args, **options: P.kwargs) -> str:
    """The line that this call is refused with; `match` is searched in it, as `pytest.raises` does."""
    with pytest.raises(UserError, match=match) as error:
        call(*args, **options)
    said = str(error.value)
    assert len(said.splitlines()) == 1, said
    return said
