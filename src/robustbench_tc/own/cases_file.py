"""A cases file as cases: `read_cases`. Every error names file and line, and what to do."""

import unicodedata
from collections.abc import Sequence
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Call, Json, dumps, loads

from ..eval.score import matchers
from . import gold, openapi, yaml
from .cases import (
    PROBLEM,
    PROPOSED_BY,
    Answer,
    Case,
    CaseFile,
    CaseTurn,
    ChatMessage,
    LeftOut,
    OwnTool,
    fingerprint,
    read_reviews,
)
from .files import read_bytes
from .tools import Names, read_tools
from .yaml import Fields, Node

TOP = ("version", "tools", "read_only", "idempotent", "system", "cases")
CASE = ("id", "turns", PROPOSED_BY, PROBLEM)
TURN = ("request", "messages", "expect", "any_of", "ordered", "extra", "results", "system")
LIVE = "a live server"
ID = 64
"""Characters of a case's id."""


def read_cases(path: Path, more: Sequence[OwnTool] = ()) -> CaseFile:
    """The cases of a file and its tools. `more`: tools of live servers, after those of `tools:`."""
    root = yaml.load(read_bytes(path, "a cases file"), str(path))
    return _Cases(path, root, more).read_file()


def tool_files(path: Path) -> list[Path]:
    """The tools files that a cases file names."""
    fields, data = Fields(str(path)), read_bytes(path, "a cases file")
    openapi.refuse_yaml(data, str(path))
    node = fields.mapping(yaml.load(data, str(path)), "the file", TOP).get("tools")
    listed = node.value if node is not None and isinstance(node.value, list) else []
    return [path.parent / fields.text(item, "tools") for item in listed]


class Checker:
    """Whether cases that are not in a file yet could be read from one."""

    def __init__(self, tools: Sequence[OwnTool], where: Path) -> None:
        """`tools` of the file. Raises UserError where they cannot stand beside each other."""
        self._cases = _Cases(where, Node({"version": Node(1, 1)}, 1), tools)

    @property
    def tools(self) -> tuple[OwnTool, ...]:
        """The tools as cases name them."""
        return self._cases.names.tools

    def problem(self, case: dict[str, Json]) -> str | None:
        """Why a case cannot be read; None where it can."""
        try:
            self._cases.case(yaml.node(case))
        except UserError as error:
            return str(error).removeprefix(f"{self._cases.path}:").partition(": ")[2]
        return None


class _Cases(Fields):
    def __init__(self, path: Path, root: Node, more: Sequence[OwnTool]) -> None:
        super().__init__(str(path))
        self.path = path
        self.root = root
        self.top = self.mapping(root, "the file", TOP)
        self.version(self.top, 1)
        self.files: list[Path] = []
        self.names = self.read_tools(more)
        self.system = self.stated_system(self.top)

    def read_file(self) -> CaseFile:
        entries = self.items(self.top.get("cases"), "cases", self.root.line)
        cases, rows = [], dict[str, int]()
        left_out = list[LeftOut]()
        reviews = read_reviews(self.path)
        for entry in entries:
            sha256 = fingerprint(entry.data()) if self.is_proposed(entry) else ""
            decided = reviews.get((str(entry.value["id"].value), sha256)) if sha256 else None
            dropped = decided is not None and decided.decision == "drop"
            if sha256 and (PROBLEM in entry.value or dropped):
                left_out.append(
                    LeftOut(
                        self.name(entry.value["id"]), entry.line, "dropped" if dropped else "not_buildable"
                    )
                )
                continue
            accepted = decided is not None and decided.decision == "accept"
            case = msgspec.structs.replace(self.case(entry), reviewed=accepted or not sha256)
            several = range(1, len(case.turns) + 1) if len(case.turns) > 1 else ()
            for name in (case.id, *(f"{case.id}.{n}" for n in several)):
                if (key := unicodedata.normalize("NFC", name)) in rows:
                    self.fail(case.line, f"the id {name!r} is taken on line {rows[key]}; choose another")
                rows[key] = case.line
            cases.append(case)
        return CaseFile(
            tools=self.marked(),
            cases=tuple(cases),
            files=(self.path, *self.files),
            notes=tuple(
                f"{name!r} is a tool of several files: listed with their prefixes"
                for name in self.names.shared()
            ),
            left_out=tuple(left_out),
        )

    def items(self, node: Node | None, what: str, line: int) -> list[Node]:
        if node is None or not isinstance(node.value, list) or not node.value:
            self.fail(node.line if node else line, f"{what!r} must be a list that is not empty")
        return node.value

    def stated_system(self, found: dict[str, Node]) -> str | None:
        return self.text(found["system"], "system") if "system" in found else None

    # Tools

    def read_tools(self, more: Sequence[OwnTool]) -> Names:
        tools: list[OwnTool] = []
        stems = {tool.prefix: LIVE for tool in more}
        node = self.top.get("tools")
        for item in self.items(node, "tools", self.root.line) if node is not None or not more else ():
            name = self.text(item, "tools")
            self.require("\0" not in name, item.line, "a path cannot hold a null character")
            file = self.path.parent / name
            is_live = stems.get(file.stem) == LIVE
            self.require(
                is_live or file.stem not in stems,
                item.line,
                f"two files with the stem {file.stem!r}, their prefix; rename one",
            )
            stems[file.stem] = name
            self.files.append(file)
            try:
                found = read_tools(file)
            except UserError as error:
                self.fail(item.line, str(error))
            if is_live:
                if found != tuple(one for one in more if one.prefix == file.stem):
                    self.fail(
                        item.line,
                        f"the live server {file.stem!r} lists other tools than {name}, or other hints: "
                        "take the file out of tools: and move it away, or leave the server out",
                    )
                more = [one for one in more if one.prefix != file.stem]  # the file was made of its list
            tools += found
        try:
            return Names([*tools, *more])
        except UserError as error:
            self.fail(self.root.line, str(error))

    def tool(self, node: Node, what: str) -> int:
        name = self.text(node, what)
        try:
            return self.names.index(name)
        except UserError as error:
            self.fail(node.line, str(error))

    def marked(self) -> tuple[OwnTool, ...]:
        """The tools, with the marks of `read_only:` and `idempotent:`."""
        tools = list(self.names.tools)
        for key in ("read_only", "idempotent"):
            node = self.top.get(key)
            if node is not None and not isinstance(node.value, list):
                self.fail(node.line, f"{key!r} must be a list of tools")
            for item in node.value if node is not None else ():
                place = self.tool(item, key)
                tools[place] = msgspec.structs.replace(tools[place], **{key: True})
        return tuple(tools)

    # Cases

    def is_proposed(self, node: Node) -> bool:
        """Whether a case was proposed; then it has an id."""
        if not isinstance(node.value, dict) or PROPOSED_BY not in node.value:
            return False
        self.mapping(node, "a case", (*CASE, *TURN))
        self.text(node.value[PROPOSED_BY], PROPOSED_BY)
        self.require("id" in node.value, node.line, "a case has no 'id'")
        return True

    def name(self, node: Node) -> str:
        name = self.text(node, "id")
        letters = all(char in "-_." or unicodedata.category(char)[0] in "LMN" for char in name)
        self.require(
            len(name) <= ID and letters and bool(name.strip(".")),
            node.line,
            f"an id is up to {ID} letters, digits and -_. ; this one is {name[:80]!r}",
        )
        return name

    def case(self, node: Node) -> Case:
        found = self.mapping(node, "a case", (*CASE, *TURN))
        self.require("id" in found, node.line, "a case has no 'id'")
        name = self.name(found["id"])
        self.require(
            PROBLEM not in found,
            node.keys.get(PROBLEM, node.line),
            f"{PROBLEM!r} is for proposed cases; correct the case and remove the key",
        )
        system = self.stated_system(found)
        if "turns" not in found:
            return Case(id=name, turns=(self.turn(found, node, system, True),), line=node.line)
        if beside := [key for key in found if key not in (*CASE, "system")]:
            self.fail(node.keys[beside[0]], f"{beside[0]!r} belongs into the turns of this case")
        turns = []
        for number, item in enumerate(self.items(found["turns"], "turns", node.line)):
            inner = self.mapping(item, "a turn", TURN)
            if "system" in inner and (number or system is not None):
                self.fail(item.keys["system"], "a case has one 'system', beside its 'id'")
            turns.append(self.turn(inner, item, self.stated_system(inner) or system, number == 0))
        return Case(id=name, turns=tuple(turns), line=node.line)

    def turn(self, found: dict[str, Node], node: Node, system: str | None, first: bool) -> CaseTurn:
        messages = self.messages(found, node)
        stated = bool(messages) and messages[0]["role"] == "system"
        if stated and (system is not None or not first):
            self.fail(found["messages"].line, "a case has one system message; drop 'system' or the message")
        if first and not stated and (system := system if system is not None else self.system) is not None:
            messages.insert(0, {"role": "system", "content": system})
        extra = found.get("extra")
        if extra is not None and extra.value != "allow":
            self.fail(extra.line, "'extra' can only be allow; leave it out otherwise")
        self.require(
            ("expect" in found) != ("any_of" in found), node.line, "a case has either 'expect' or 'any_of'"
        )
        wanted = [found["expect"]] if "expect" in found else self.items(found["any_of"], "any_of", node.line)
        return CaseTurn(
            messages=tuple(messages),
            answers=tuple(self.answer(one, extra is not None) for one in wanted),
            ordered=self.flag(found.get("ordered"), "ordered"),
            extra=extra is not None,
            results=self.results(found.get("results")),
            line=node.line,
        )

    def answer(self, node: Node, extra: bool) -> Answer:
        if node.value == "no_call" or node.value == "ask":
            return Answer(kind=node.value)
        self.require(
            isinstance(node.value, list) and node.value,
            node.line,
            "an answer is a list of calls ([{call: NAME, arguments: {…}}]), no_call or ask",
        )
        calls, places = [], []
        for item in node.value:
            found = self.mapping(item, "a call", ("call", "arguments"))
            self.require("call" in found, item.line, "a call has no 'call': the tool's name")
            place = self.tool(found["call"], "call")
            given = found.get("arguments", Node({}, item.line))
            self.require(
                isinstance(given.value, dict),
                given.line,
                "'arguments' must be a mapping of parameter names to values",
            )
            arguments = given.data()
            tool = self.names.tools[place].tool
            for key, expected in arguments.items():
                if why := matchers.problem(expected):
                    self.fail(given.keys[key], f"{tool.name[:60]}: {key[:60]!r}: {why}")
            if wrong := gold.problem(arguments, tool.parameters, extra):
                line = given.keys.get(wrong[0], found["call"].line)
                self.fail(line, f"{tool.name[:60]}: {wrong[0][:60]!r} {wrong[1]}")
            calls.append(Call(tool.name, arguments))
            places.append(place)
        return Answer(calls=tuple(calls), places=tuple(places))

    def results(self, node: Node | None) -> dict[str, tuple[Json, ...]]:
        if node is None:
            return {}
        self.require(
            isinstance(node.value, dict),
            node.line,
            "'results' must be a mapping of tools to what they answer",
        )
        found: dict[str, tuple[Json, ...]] = {}
        for key, value in node.value.items():
            name = self.names.tools[self.tool(Node(key, node.keys[key]), "results")].tool.name
            self.require(name not in found, node.keys[key], f"results of {name[:60]!r} stand there twice")
            self.require(value.value != [], value.line, "a list of results must not be empty")
            data = value.data()
            found[name] = tuple(data) if isinstance(data, list) else (data,)
        return found

    # Messages

    def messages(self, found: dict[str, Node], node: Node) -> list[ChatMessage]:
        self.require(
            ("request" in found) != ("messages" in found),
            node.line,
            "a case has either 'request' or 'messages'",
        )
        if "request" in found:
            return [{"role": "user", "content": self.text(found["request"], "request")}]
        messages: list[ChatMessage] = []
        waiting: list[str] = []
        entries = self.items(found["messages"], "messages", node.line)
        for place, entry in enumerate(entries):
            known = self.mapping(
                entry, "a message", ("role", "content", "name", "tool_calls", "tool_call_id")
            )
            message: ChatMessage = entry.data()
            role, content = message.get("role"), message.get("content")
            self.require(
                role in ("user", "assistant", "tool") or (role == "system" and place == 0),
                entry.line,
                "'role' is user, assistant or tool, or system in the first message",
            )
            if role == "tool":
                if (answers := message.get("tool_call_id")) not in waiting:
                    self.fail(entry.line, "'tool_call_id' must be the id of a call just before, once each")
                waiting.remove(answers)
            elif waiting:
                self.fail(entry.line, f"the call {waiting[0][:60]!r} has no message of role tool")
            if "tool_calls" in known:
                self.require(role == "assistant", entry.line, "only an assistant's message has 'tool_calls'")
                calls = self.items(known["tool_calls"], "tool_calls", entry.line)
                message["tool_calls"] = [self.earlier(one) for one in calls]
                waiting = [one["id"] for one in message["tool_calls"]]
                self.require(
                    len(set(waiting)) == len(waiting), known["tool_calls"].line, "two calls have the same id"
                )
            self.require(
                isinstance(content, str) or (content is None and "tool_calls" in known),
                entry.line,
                "'content' must be a text",
            )
            messages.append(message)
        if (
            messages[-1]["role"] == "tool" and PROPOSED_BY in found
        ):  # an agent's next calls, after their answers
            if waiting:
                self.fail(entries[-1].line, f"the call {waiting[0][:60]!r} has no message of role tool")
        elif messages[-1]["role"] != "user":
            self.fail(entries[-1].line, "messages end with the user's message")
        return messages

    def earlier(self, node: Node) -> dict[str, Json]:
        """A call of an earlier turn, as OpenAI writes it, with the tool's name as rows list it."""
        found = self.mapping(node, "a tool call", ("id", "type", "function"))
        self.require("id" in found and "function" in found, node.line, "a tool call has 'id' and 'function'")
        function = self.mapping(found["function"], "a function", ("name", "arguments"))
        self.require("name" in function, found["function"].line, "a function has a 'name'")
        tool = self.names.tools[self.tool(function["name"], "name")].tool
        given = function["arguments"].data() if "arguments" in function else {}
        line = function["arguments"].line if "arguments" in function else node.line
        try:
            arguments = loads(given) if isinstance(given, str) else given
        except (ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict):
            self.fail(line, "'arguments' must be an object, or its JSON text")
        if wrong := gold.problem(arguments, tool.parameters, False):
            self.fail(line, f"{tool.name[:60]}: {wrong[0][:60]!r} {wrong[1]}")
        text = given if isinstance(given, str) else dumps(given)
        body = {"name": tool.name, "arguments": text}
        return {"id": self.text(found["id"], "id"), "type": "function", "function": body}
