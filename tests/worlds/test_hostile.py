"""What a model can write into a call, and what a careless world can do: an error, bounded, without effect."""

import json
from typing import Annotated, Any, Literal

import pytest

from robustbench_tc.worlds.base import (
    MAX_ERROR_CHARACTERS,
    MAX_RESULT_CHARACTERS,
    Failure,
    World,
    read,
    write,
)
from robustbench_tc.worlds.same_state import state_hash

LOOPED: list[Any] = []
LOOPED.append(LOOPED)


class Box(World):
    """Takes anything in."""

    name = "box"

    @read
    def show(self, key: str = "") -> Any:
        """Shows what is in the box."""
        return self.data.get(key, self.data)

    @write()
    def put(
        self,
        text: Annotated[str, "A text."] = "",
        number: int | None = None,
        share: float = 0.5,
        things: list[dict] | None = None,  # type: ignore[type-arg]
        options: dict[str, Any] | None = None,
        size: Literal["small", "large"] = "small",
    ) -> str:
        """Puts something into the box."""
        self.data.setdefault("things", []).append([text, number, share, things, options, size])
        return f"in: {text}"

    @write()
    def misuse(self, how: str) -> Any:
        """Does what a world should not do, after it has changed something."""
        self.data["touched"] = [self.new_id("B-"), self.random.random()]
        if how == "failure":
            raise Failure()
        if how == "long failure":
            raise Failure("x" * 10**6)
        if how == "exit":
            raise SystemExit(3)
        if how == "recursion":
            return self.misuse(how)
        if how == "deep":
            self.data["deep"] = deep(50_000)
        if how == "huge number":
            self.data["number"] = 10**5000
        return {"cycle": LOOPED, "nan": float("nan"), "set": {1}, "surrogate": "\ud800"}[how]

    @read
    def peep(self, how: str) -> int:
        """Is declared as a read and is not one."""
        if how == "changes":
            self.data["seen"] = True
        elif how == "draws":
            return self.random.randrange(10)
        return len(self.new_id("B-"))

    @read
    def pad(self, length: int) -> str:
        """A long text."""
        return "x" * length


def deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


def refused(world: World, name: Any, arguments: Any) -> str:
    before = (json.dumps(world.data), world.generated(), world.random.getstate())
    outcome = world.attempt(name, arguments)
    assert outcome.failed and outcome.text == world.call(name, arguments)
    assert (json.dumps(world.data), world.generated(), world.random.getstate()) == before
    assert len(outcome.text.encode()) < 2 * MAX_ERROR_CHARACTERS
    (said,) = json.loads(outcome.text).values()
    assert isinstance(said, str) and said
    return said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"text": "x" * 100_001}, "parameter 'text' is longer than 100000 characters"),
        ({"options": {"x" * 60_000: "y" * 60_000}}, "parameter 'options' is longer than"),
        ({"things": [{}] * 100_001}, "parameter 'things' is longer than"),
        ({"options": {"a": deep(50_000)}}, "parameter 'options' is nested deeper than 32 levels"),
        ({"options": {"a": LOOPED}}, "parameter 'options' is nested deeper than 32 levels"),
        ({"options": {1: 2}}, "parameter 'options' has a key that is not a text"),
        ({"options": {"\ud800": 2}}, "parameter 'options' has characters that are not valid Unicode"),
        ({"text": "a\udfffb"}, "parameter 'text' has characters that are not valid Unicode"),
        ({"share": float("nan")}, "parameter 'share' has a number that is not finite"),
        ({"share": float("-inf")}, "parameter 'share' has a number that is not finite"),
        ({"number": 10**5000}, "parameter 'number' has a number beyond 64 bits"),
        ({"share": -(2**63) - 1}, "parameter 'share' has a number beyond 64 bits"),
        ({"options": {"a": {1, 2}}}, "parameter 'options' is not JSON"),
        ({"number": 1.0}, "parameter 'number' must be of type integer"),
        ({"number": True}, "parameter 'number' must be of type integer"),
        ({"share": False}, "parameter 'share' must be of type number"),
        ({"text": None}, "parameter 'text' must be of type string"),
        ({"things": [1]}, "parameter 'things' must be a list of items of type object"),
        ({"size": "LARGE"}, "parameter 'size' must be one of ['small', 'large']"),
        ({"self": 1}, "unknown parameter 'self'"),
        ({"\ud800" * 10**6: 1}, "unknown parameter '\\ud800"),
        ({3: 1}, "unknown parameter '3'"),
        (["text"], "the arguments must be an object"),
        (None, "the arguments must be an object"),
        ("{}", "the arguments must be an object"),
    ],
)
def test_arguments_are_bounded_before_the_tool_sees_them(arguments: Any, said: str) -> None:
    assert refused(Box({}), "put", arguments).startswith(said)


@pytest.mark.parametrize(
    "name", ["__class__", "call", "data", "x" * 10**6, "\ud800", "", None, 3, ["put"], {}]
)
def test_only_tools_can_be_called(name: Any) -> None:
    assert refused(Box({}), name, {}).startswith("there is no tool ")


@pytest.mark.parametrize(
    "how",
    [
        "failure",
        "long failure",
        "exit",
        "recursion",
        "deep",
        "huge number",
        "cycle",
        "nan",
        "set",
        "surrogate",
    ],
)
def test_what_a_careless_world_does_is_taken_back(how: str) -> None:
    world = Box({"a": 1})
    refused(world, "misuse", {"how": how})
    assert world.state() == {"a": 1}


@pytest.mark.parametrize("how", ["changes", "draws", "makes an id"])
def test_a_read_that_changes_something_is_an_error(how: str) -> None:
    assert "declared as a read" in refused(Box({}), "peep", {"how": how})


def test_what_is_allowed_at_the_bounds_arrives() -> None:
    world = Box({})
    options = {"a": deep(28), "ä": "😀"}
    assert world.call("put", {"text": "x" * 99_999, "number": 2**63 - 1, "options": options}).startswith(
        "in: x"
    )
    assert world.call("put", {"share": 1, "number": None, "things": [{}]}) == "in: "
    assert [one[1:] for one in world.data["things"]] == [
        [2**63 - 1, 0.5, None, options, "small"],
        [None, 1, [{}], None, "small"],
    ]
    state_hash(world.state())


class LaxBox(Box):
    """Takes numbers and booleans as text, too."""

    lax_types = True

    @read
    def say(self, number: int = 0, share: float | None = None, flag: bool = False, text: str = "") -> Any:
        """Says what it was called with."""
        return [number, share, flag, text]


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"number": "-12", "share": "0.50", "flag": "True", "text": "7"}, [-12, 0.5, True, "7"]),
        ({"number": 3, "share": "4", "flag": "false"}, [3, 4, False, ""]),
    ],
)
def test_a_lax_world_reads_numbers_and_booleans_from_text(given: dict[str, Any], taken: list[Any]) -> None:
    assert json.loads(LaxBox({}).call("say", given)) == taken


@pytest.mark.parametrize(
    "given",
    [
        *(
            {"number": text}
            for text in ("1.0", "1e3", " 1", "1_0", "٣", "", "x", "9" * 5000, "--1", "0x1", "true")
        ),
        *({"share": text} for text in ("nan", "inf", ".5", "1e9", "9" * 5000)),
        *({"flag": value} for value in ("yes", "1", 1)),
    ],
)
def test_a_lax_world_takes_nothing_that_is_doubtful(given: dict[str, Any]) -> None:
    assert "must be of type" in refused(LaxBox({}), "say", given)


def test_a_long_result_is_cut_with_a_note() -> None:
    text = Box({}).call("pad", {"length": 250_000})
    assert text.startswith("x" * MAX_RESULT_CHARACTERS + "\n[cut: the result has 250000 characters]")
    assert len(text) < MAX_RESULT_CHARACTERS + 100
    assert Box({}).call("pad", {"length": MAX_RESULT_CHARACTERS}) == "x" * MAX_RESULT_CHARACTERS


def test_neither_the_caller_nor_two_places_of_the_state_share_an_object() -> None:
    given: dict[str, Any] = {"options": {"a": []}}
    world = Box({"shared": (one := [1]), "again": one})
    world.call("put", given)
    given["options"]["a"].append(1)
    world.data["shared"].append(2)
    assert world.data["again"] == [1] and one == [1]
    assert world.data["things"][0][4] == {"a": []}


def test_a_state_that_is_not_json_is_refused_at_the_start() -> None:
    for wrong in ({"a": {1}}, {"a": float("nan")}):
        with pytest.raises((TypeError, ValueError)):
            Box(wrong)


def test_ids_never_run_out() -> None:
    world = Box({"taken": [f"B-{number}" for number in range(10)]})
    made = [world.new_id("B-", digits=1) for _ in range(200)]
    assert len(set(made)) == 200 and not set(made) & set(world.data["taken"])


class Lamp(Box):
    """Inherits tools; one is replaced, one is not offered any more."""

    peep = None  # type: ignore[assignment]

    @read
    def show(self, key: str = "") -> str:
        """Shows less."""
        return "less"


def test_a_subclass_replaces_and_withdraws_tools() -> None:
    assert [tool["name"] for tool in Lamp.tools()] == ["show", "put", "misuse", "pad"]
    assert Lamp({}).call("show", {}) == "less"
    assert refused(Lamp({}), "peep", {"how": "draws"}) == "there is no tool 'peep'"
