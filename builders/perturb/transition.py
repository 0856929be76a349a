"""Transition: the tool fails at run time. The row is the clean row; the harness injects (benchmark.md §6).

The six texts are protocol constants, letter by letter those of the paper's appendix G.

Repeated errors: the time-out of `transient_timeout`, once, twice, or whatever is tried.

The series of how an agent bears an error that does not go away. The rows equal their clean rows; the harness
answers as many calls as the type says (trait `times`).
"""

import random
from typing import ClassVar

from robustbench_tc.schema import Sample
from robustbench_tc.taxonomy import Rows

from .base import (
    Context,
    Facts,
    NotApplicable,
    Perturbation,
    broken,
    register,
)


class Injected(Perturbation, frozen=True):
    """A call is answered with the type's fixed error text; the reply after it is what is scored."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """The clean row with the type's injected text. Raises NotApplicable where gold calls nothing."""
        if not any(sample.golden_answers):
            raise NotApplicable("no_gold_call")
        return self.row(sample, (), injected_error=self.injected_error)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """The row equals its clean row, and the injected text is the type's."""
        other = row.injected_error != self.injected_error
        return self.beyond(clean, row) + broken({"the injected text is not the protocol's": other})


INJECTED: Facts = {
    "component": "transition",
    "level": "interaction",
    "channel": "tool_result",
    "method": "runtime",
    "may_change": (),
    "ground_truth_changes": False,
    "train_augmentable": False,
    "applies_to": "every source",
    "rows": Rows(paper=199, bundled=73),
}


TRANSIENT: Facts = {
    **INJECTED,
    "pack": "core",
    "how_made": (
        "The row equals its clean row. While a model is evaluated, the first reply that holds a call is"
        " answered with the text below instead of a result, and the second reply is scored."
    ),
    "paper_rows": 199,
}
"""The first call alone is answered so: the six of the core."""


TIMEOUT = (
    "Tool execution timed out after the configured request timeout. "
    "The remote endpoint did not respond within the allotted time."
)


class RepeatedTimeout(Injected, frozen=True, kw_only=True):
    """So many calls are answered with the time-out; the reply after the last one is what is scored."""

    TRAITS: ClassVar[tuple[str, ...]] = ("times", "scored")
    times: int
    """How many calls are answered with the error."""
    scored: bool = True
    """Whether its accuracy says anything; else tries alone are reported."""


REPEATED: Facts = {
    **INJECTED,
    "pack": "severity",
    "rows": Rows(paper=199, bundled=73, full=3080),
    "how_made": (
        "The row equals its clean row. While a model is evaluated, its first calls, as many as the type "
        "says, are answered with the text of `transient_timeout`. The reply after the last error is "
        "scored, or the first reply that calls nothing."
    ),
    "prior_art": (
        "the paper's transient_timeout answers the first call alone; none known that counts the tries"
    ),
    "injected_error": TIMEOUT,
}


register(
    Injected(
        **TRANSIENT,
        code="transient_timeout",
        order=17,
        display_name="Timeout",
        label="tool times out",
        what_is_modified=(
            "The first tool call is answered with a fixed time-out message; a second inference pass follows."
        ),
        injected_error=TIMEOUT,
    ),
    Injected(
        **TRANSIENT,
        code="transient_rate_limit",
        order=18,
        display_name="RateLim",
        label="tool is rate-limited",
        what_is_modified="The first tool call is answered with a fixed HTTP 429 message.",
        injected_error=(
            "HTTP 429 Too Many Requests. The provider rejected the call because the per-minute rate limit "
            "has been exceeded."
        ),
    ),
    Injected(
        **TRANSIENT,
        code="transient_auth_error",
        order=19,
        display_name="AuthErr",
        label="tool rejects credentials",
        what_is_modified=(
            "The first tool call is answered with a fixed authorisation-failure message (Table 1: 401 or "
            "403; Appendix G string: 401)."
        ),
        injected_error=(
            "HTTP 401 Unauthorized. The provider rejected the call because the supplied credentials are "
            "invalid or expired."
        ),
    ),
    Injected(
        **TRANSIENT,
        code="transient_server_error",
        order=20,
        display_name="5xxErr",
        label="tool's server fails",
        what_is_modified=(
            "The first tool call is answered with a fixed server-error message (Table 1: any 5xx; "
            "Appendix G string: 500)."
        ),
        injected_error="HTTP 500 Internal Server Error. The remote endpoint failed to handle the request.",
    ),
    Injected(
        **TRANSIENT,
        code="transient_malformed_response",
        order=21,
        display_name="Malform",
        label="tool returns malformed JSON",
        what_is_modified=(
            "The first tool call is answered as if its body could not be parsed (Table 1 says malformed "
            "JSON is returned; the Appendix G string only describes it)."
        ),
        injected_error="Malformed response from tool execution: the body could not be parsed as JSON.",
    ),
    Injected(
        **TRANSIENT,
        code="transient_schema_drift",
        order=22,
        display_name="SchemaD",
        label="tool's schema drifts",
        what_is_modified=(
            "The first tool call is answered with a schema-mismatch message (Table 1: a parameter is no "
            "longer valid; Appendix G: the output breaks its declared schema)."
        ),
        injected_error=(
            "Schema validation failed: the response did not match the tool's declared output schema "
            "(extra/missing fields)."
        ),
    ),
    RepeatedTimeout(
        **REPEATED,
        code="transient_timeout_x1",
        order=621,
        display_name="Timeout-1",
        label="1 call times out",
        what_is_modified="The first tool call is answered with the time-out message.",
        times=1,
        series="timeouts",
        dose=1,
    ),
    RepeatedTimeout(
        **REPEATED,
        code="transient_timeout_x2",
        order=622,
        display_name="Timeout-2",
        label="2 calls time out",
        what_is_modified="The first two tool calls are answered with the time-out message.",
        times=2,
        series="timeouts",
        dose=2,
    ),
    RepeatedTimeout(
        **REPEATED,
        code="transient_timeout_x9",
        order=623,
        display_name="Timeout-9",
        label="9 calls time out",
        what_is_modified=(
            "The first nine tool calls are answered with the time-out message; tries are counted."
        ),
        times=9,
        scored=False,
    ),
)
