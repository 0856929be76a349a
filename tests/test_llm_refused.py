"""Which parameter a server refuses, in the words of many servers; and what else a refusal may be about."""

from typing import Any

import pytest

from robustbench_tc.llm.errors import from_status
from robustbench_tc.llm.refused import refused, refused_value

from .loopback import error_body

BODY = (
    "model", "messages", "tools", "temperature", "max_tokens", "top_p", "top_k", "stop", "seed", "logprobs",
    "presence_penalty", "reasoning_effort", "chat_template_kwargs", "min_p",
)  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "name"),
    [
        (400, error_body("Unrecognized request argument supplied: top_k"), "top_k"),
        (400, error_body("Unknown parameter: 'min_p'.", "unknown_parameter", "min_p"), "min_p"),
        (400, error_body("Unsupported parameter: 'top_p' is not supported with this model."), "top_p"),
        (403, error_body("You are not allowed to request logprobs from this model"), "logprobs"),
        (400, error_body("property 'logprobs' is unsupported"), "logprobs"),
        (400, error_body("`logprobs` is not supported with this model"), "logprobs"),
        (400, "top_k: Extra inputs are not permitted", "top_k"),
        (
            422,
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs"}]},
            "seed",
        ),
        (400, 'Invalid JSON payload received. Unknown name "top_k": Cannot find field.', "top_k"),
        (400, "Logprobs is not enabled for models/tiny", "logprobs"),
        (400, {"error": "Argument not supported on this model: presencePenalty"}, "presence_penalty"),
        (400, {"error": "Model tiny does not support parameter reasoningEffort."}, "reasoning_effort"),
        (400, {"error": "Argument not supported on this model: stop"}, "stop"),
        (400, error_body("Unsupported value: 'temperature' does not support 0"), "temperature"),
        (400, error_body("Unexpected keyword argument 'chat_template_kwargs'"), "chat_template_kwargs"),
        # About something else, or about a value.
        (400, error_body("Unsupported value: 'reasoning_effort' does not support 'x'"), None),
        (400, error_body("top_k must be at least 1, got -5; -5 is not supported"), None),
        (400, error_body("It is not permitted to stop here"), None),
        (400, error_body("The model does not support images in messages"), None),
        (400, error_body("model: not supported", None, "model"), None),
        (401, error_body("top_k is not permitted for this key"), None),
        (500, error_body("top_k is not supported"), None),
    ],
)  # fmt: skip
def test_a_refused_parameter_is_known_by_the_words(status: int, body: Any, name: str | None) -> None:
    assert refused(from_status(status, body, {}, with_tools=True, now=0.0), BODY) == name


def test_a_refused_value_is_not_a_refused_parameter() -> None:
    said = "Unsupported value: 'reasoning_effort' does not support 'x'. Supported values are: 'low'."
    error = from_status(400, error_body(said), {}, with_tools=False, now=0.0)
    assert (refused(error, BODY), refused_value(error, BODY)) == (None, "reasoning_effort")
    other = from_status(400, error_body("messages must be a list"), {}, with_tools=False, now=0.0)
    assert refused_value(other, BODY) is None


def test_a_long_hostile_message_takes_no_time() -> None:
    hostile = "unsupported " + "model " * 50_000 + "'" * 50_000
    assert refused(from_status(400, hostile, {}, with_tools=False, now=0.0), BODY) is None
