"""What a session's server has answered: the answers of calls that are not carried out, and of stale reads."""

import json
from collections.abc import Mapping, Sequence

from robustbench_tc.schema import Json, dumps

from ..scene import inside
from . import jsonrpc

MOST = 1_000
"""Results that are kept."""

OK = '{"status": "ok"}'
"""The answer of a tool of which nothing is known."""


class Memory:
    """Results of one session that were not errors."""

    def __init__(self, results: Mapping[str, Sequence[Json]]) -> None:
        """`results`: what tools of the session's case answer, in turn."""
        self._results = results
        self._writes = 0
        self._last: dict[str, dict[str, Json]] = {}
        self._reads: dict[str, tuple[dict[str, Json] | None, int]] = {}
        """Tool and arguments → the last result, and how many writes stood before it; the oldest first."""

    def keep(self, tool: str, arguments: Json, result: Json, *, reads: bool) -> None:
        """A result that the server gave."""
        if not reads:
            self._writes += 1
        if not isinstance(inside(result, "content"), list) or result.get("isError"):
            return
        kept = {name: value for name, value in result.items() if name not in ("_meta", "resultType")}
        self._last[tool] = kept
        if reads:
            key = _key(tool, arguments)
            self._reads.pop(key, None)
            self._reads[key] = kept, self._writes
            if len(self._reads) > MOST:
                del self._reads[next(iter(self._reads))]

    def stale(self, tool: str, arguments: Json) -> dict[str, Json] | None:
        """What a read showed before the last write; None where it was not made then, or again since."""
        shown, writes = self._reads.get(_key(tool, arguments), (None, 0))
        return shown if writes < self._writes else None

    def done(self, tool: str, text: str | None, *, structured: bool) -> dict[str, Json] | None:
        """What a call that is not carried out is answered with: `text`, else the tool's last result, else the
        case's, else OK. None where the tool's answers have a schema that none of these is known to fit."""
        if text is None and tool in self._last:
            return self._last[tool]
        if structured:
            return None
        if text is None:
            known = [OK, *self._results.get(tool, ())][-1]
            text = known if isinstance(known, str) else dumps(known)
        return jsonrpc.text_result(text)


def _key(tool: str, arguments: Json) -> str:
    return json.dumps([tool, arguments or {}], sort_keys=True)
