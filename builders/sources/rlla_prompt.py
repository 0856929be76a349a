"""An rlla row beside its registry (`rlla_form`): the gold text, the transcript."""

import json
import re
from collections.abc import Mapping, Sequence

from robustbench_tc.eval.prompts.rlla_form import CALL_THOUGHT, REPLY_THOUGHT
from robustbench_tc.schema import Call


def gold_calls(gold: str) -> tuple[Call, ...]:
    """The calls of a gold's first tool-call block, each value as its one accepted value; () without a block.

    Raises ValueError when a line is not a call.
    """
    if "<tool_call>" not in gold:
        return ()
    block = gold.split("<tool_call>", 2)[1].partition("</tool_call>")[0]
    calls = []
    for line in block.strip().split("\n"):
        value = json.loads(line)
        if not isinstance(value, dict) or not isinstance(value.get("parameters"), dict):
            raise ValueError("a line is not a call")
        if not isinstance(value.get("name"), str):
            raise ValueError("a call without a name")
        calls.append(Call(value["name"], {key: [given] for key, given in value["parameters"].items()}))
    return tuple(calls)


def canned(gold: str) -> str:
    """An SFT gold with its distilled thought replaced by the RL files' fixed one."""
    answer = gold.rpartition("</think>")[2].strip()
    return f"{CALL_THOUGHT if '<tool_call>' in answer else REPLY_THOUGHT}\n{answer}"


def gold_text(gold: str, names: Sequence[str]) -> str:
    """The gold with its calls named `names`, in order; every other byte as it was."""
    if "<tool_call>" not in gold:
        return gold
    before, tag, rest = gold.partition("<tool_call>")
    block, end, after = rest.partition("</tool_call>")
    lines = block.split("\n")
    places = [at for at, line in enumerate(lines) if line.strip()]
    for at, name in zip(places, names, strict=True):
        call = json.loads(lines[at])
        if call["name"] != name:
            wanted = call | {"name": name}
            edited = _replace_name(lines[at], call["name"], name)
            lines[at] = edited if json.loads(edited) == wanted else json.dumps(wanted)
    return before + tag + "\n".join(lines) + end + after


def _replace_name(text: str, old: str, new: str) -> str:
    """A call's text with the first occurrence of its name replaced, whether the name is escaped or not."""
    for form in (json.dumps(old), json.dumps(old, ensure_ascii=False)):
        if form in text:
            return text.replace(form, json.dumps(new, ensure_ascii=False), 1)
    return text


# --- transcript ---------------------------------------------------------------------------------------

_PAST = re.compile(r"<tool_call>.*?</tool_call>|<obs>.*?</obs>", re.DOTALL)
_NAMED = re.compile(r'\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")(?=\s*,\s*"(?:parameters|results|arguments)")')


def rename_in_history(transcript: str, names: Mapping[str, str]) -> tuple[str, list[tuple[int, str, str]]]:
    """A transcript with its past calls and results renamed; also (offset before, old, new) of each edit."""
    edits: list[tuple[int, str, str]] = []
    for block in _PAST.finditer(transcript):
        for found in _NAMED.finditer(transcript, *block.span()):
            try:
                old = json.loads(found.group(1))
            except ValueError:  # not the name of a tool
                continue
            if old in names:
                edits.append((found.start(1), found.group(1), json.dumps(names[old], ensure_ascii=False)))
    for at, before, after in reversed(edits):
        transcript = transcript[:at] + after + transcript[at + len(before) :]
    return transcript, edits
