"""YAML 1.2 with lines: what a scalar is, and what is refused."""

import pytest

from robustbench_tc.own.yaml import load

from ..refusals import refuses


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"), ("on", "on"), ("NO", "NO"), ("True", True), ("false", False),
        ("2026-11-21", "2026-11-21"),
        ("012", 12), ("0o14", 12), ("0x1F", 31), ("1:30", "1:30"), ("1_000", "1_000"), ("1e3", 1000.0),
        (".5", 0.5), ("1.", 1.0), ("~", None), ("", None), ("'12'", "12"), ("!!str 12", "12"),
        ("!!float 3", 3.0),
        ("-0x1", "-0x1"), ("+7", 7), ("=", "="), ("0b1", "0b1"),
    ],
)  # fmt: skip
def test_scalars_are_those_of_the_core_schema(text: str, value: object) -> None:
    found = load(f"a: {text}\n".encode(), "c.yaml").data()["a"]
    assert found == value and type(found) is type(value)


def test_every_key_and_item_has_its_line() -> None:
    node = load(b"# first\na:\n  - 1\n  - {b: 2}\nc: x\n", "c.yaml")
    assert node.keys == {"a": 2, "c": 5}
    assert [item.line for item in node.value["a"].value] == [3, 4]
    assert node.data() == {"a": [1, {"b": 2}], "c": "x"}


def test_json_and_aliases_are_read() -> None:
    assert load(b'{"a": [1, null, "\\u00e9"]}', "c").data() == {"a": [1, None, "\u00e9"]}
    assert load(b"a: &x [1]\nb: *x\n", "c").data() == {"a": [1], "b": [1]}


@pytest.mark.parametrize(
    ("data", "line", "said"),
    [
        (b"a: 1\nb: 2\na: 3\n", 3, "given twice; first on line 1"),
        (b"a: 1\n---\nb: 2\n", 2, "a second document"),
        (b"a: !!python/object/apply:os.system [x]\n", 1, "is not read"),
        (b"a: 1\nb: !mine x\n", 2, "is not read"),
        (b"a: &x [*x]\n", 1, "within its own anchor"),
        (b"a: *gone\n", 1, "no anchor"),
        (b"a: &x 1\nb: [" + b"*x, " * 1001 + b"]\n", 2, "more than 1,000 aliases"),
        (b"a: 1\n1: 2\n", 2, "must be a text"),
        (b"a: 1\n? [b]\n: 2\n", 2, "must be a text"),
        (b"a: .inf\n", 1, "cannot be sent as JSON"),
        (b"a: 1e999\n", 1, "beyond what"),
        (b"a: {<<: {b: 1}}\n", 1, "not YAML 1.2"),
        (b"a: 1\n\tb: 2\n", 2, "not YAML"),
        (b"a: 1\nb: \xff\n", 2, "not UTF-8"),
        (b"a: 1\nb: \x00\n", 2, "does not allow"),
        (b"", 1, "empty"),
        (b"[" * 20_000 + b"]" * 20_000, 1, "deeper than 200"),
        (b"- " * 20_000, 1, "deeper than 200"),
        (b'a: "\\ud800"\n', 1, "not YAML|surrogate"),
        (b"a: !!int x\n", 1, "is tagged int"),
    ],
)
def test_what_is_refused_names_its_line(data: bytes, line: int, said: str) -> None:
    caught = refuses(said, load, data, "c.yaml")
    assert caught.startswith(f"c.yaml:{line}: ")


def test_aliases_of_aliases_are_bounded() -> None:
    lines = [b"a0: &a0 [1,1,1,1,1,1,1,1,1,1]"]
    lines += [b"a%d: &a%d [%s]" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 10)]
    refuses("more than 5,000,000 values", load, b"\n".join(lines), "c.yaml")
    refuses("at most 8,000,000", load, b" " * 8_000_001, "c.yaml")


def test_a_hostile_escape_is_one_line() -> None:
    refuses("not YAML", load, b'a: "\\UFFFFFFFF"', "c.yaml")
