"""An agent on Anthropic's own SDK behind the door: another base URL, and not a line of glue."""

from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.api.proxy import proxied
from robustbench_tc.proxy import journal
from robustbench_tc.taxonomy import injected_error
from tests.proxy.anthropic_server import THINKING, reply
from tests.proxy.scripted import Script
from tests.proxy.test_dialects import LISTED
from tests.proxy.test_door import GET, PAY
from tests.proxy.wire import serving as server_of

anthropic = pytest.importorskip("anthropic", reason="extra `providers`")


def work(url: str, *, stream: bool) -> list[Any]:
    """Works on a request with the SDK until the model calls no more; the conversation."""
    client = anthropic.Anthropic(base_url=url, api_key="sk-ant-test", max_retries=0)
    talk: list[Any] = [{"role": "user", "content": "Refund order 7."}]
    asked: dict[str, Any] = {"model": "claude-test", "max_tokens": 100, "tools": LISTED}
    for _ in range(5):
        if stream:
            with client.messages.stream(**asked, messages=talk) as events:
                said = events.get_final_message()
        else:
            said = client.messages.create(**asked, messages=talk)
        talk.append({"role": "assistant", "content": [block.model_dump() for block in said.content]})
        uses = [block for block in said.content if block.type == "tool_use"]
        if not uses:
            break
        found = [{"type": "tool_result", "tool_use_id": one.id, "content": "true result"} for one in uses]
        talk.append({"role": "user", "content": found})
    return talk


@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_on_the_sdk(stream: bool, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(
        "version: 1\nseed: 1\ntypes: [CD]\nallow_writes: true\n"
        "faults:\n- {kind: transient_timeout, at: [2]}\n"
    )
    script = Script(
        reply([GET], "Let me see."), reply([("refund_Budget", PAY[1]), PAY], turn=2), reply([], "Done.", 3)
    )
    with (
        server_of(script) as server,
        proxied(tmp_path / "plan.yaml", upstream=server.url, journal=tmp_path / "j") as door,
    ):
        base = door.removesuffix("/v1")
        talk = work(f"{base}/s/case.0", stream=stream)
        client = anthropic.Anthropic(base_url=f"{base}/s/nobody", api_key="sk-ant-test", max_retries=0)
        with pytest.raises(anthropic.BadRequestError, match="session"):
            client.messages.create(model="m", max_tokens=1, messages=talk[:1])
    assert talk[-1]["content"][-1]["text"] == "Done."
    assert [one["name"] for one in talk[3]["content"] if one["type"] == "tool_use"] == ["refund"]
    model = script.bodies[2]["messages"]
    assert model[1]["content"][0] == THINKING
    said = [block["content"] for block in model[4]["content"]]
    assert said == [injected_error("transient_timeout"), '{"status":"ok"}']
    lines = journal.read_exchanges(tmp_path / "j")
    assert [len(line.held) for line in lines] == [0, 1, 0]
    assert api.summary(tmp_path / "j").faults["transient_timeout"]["met"] == 1  # type: ignore[union-attr]
    assert "sk-ant-test" not in (tmp_path / "j").read_text()
