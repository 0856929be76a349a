"""Personal data of logs: the same value the same reserved one, which is valid; nothing else is touched."""

import random
import string
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.audits.hygiene.secrets import personal, tokens
from robustbench_tc.eval.score.matchers.patterns import compiled
from robustbench_tc.own.logs.importing import read_patterns
from robustbench_tc.own.logs.redact import Redactor, luhn, mod97

from ..conftest import NIGHTLY
from ..refusals import refuses

SEEDS = range(40)


def hidden(value: Any, redactor: Redactor | None = None) -> Any:
    """A value as an import has it: what is found anywhere in it is known everywhere."""
    redactor = redactor or Redactor()
    redactor.apply(value)
    return redactor.apply(value)


def email(rng: random.Random) -> str:
    parts = ["".join(rng.choices(string.ascii_lowercase + string.digits, k=rng.randint(3, 9))) for _ in "ab"]
    domain = rng.choice(["gmail.com", "acme.com", "mail.northwind.co.uk", "b-fahrt.de", "uni.edu"])
    return rng.choice(".-_+").join(parts) + "@" + domain


def card(rng: random.Random) -> str:
    body = rng.choice("3456") + "".join(rng.choices(string.digits, k=14))
    return body + str((10 - luhn(body + "0")) % 10)


def iban(rng: random.Random) -> str:
    country, length = rng.choice([("DE", 18), ("FR", 23), ("NO", 11)])
    body = "".join(rng.choices(string.digits, k=length))
    return f"{country}{98 - mod97(country + '00' + body):02d}{body}"


def phone(rng: random.Random) -> str:
    return f"+{rng.choice(['1', '44', '49', '353'])} {rng.randint(200, 999)} {rng.randint(1000000, 9999999)}"


def key(rng: random.Random) -> str:
    return rng.choice(["sk-", "ghp_", "hf_"]) + "".join(
        rng.choices(string.ascii_letters + string.digits, k=36)
    )


MAKERS = {"email": email, "card": card, "iban": iban, "phone": phone, "key": key}
RESERVED = {
    "email": "user1@example.com", "card": "4242424242424242", "iban": "GB82WEST12345698765432",
    "phone": "+12125550101", "key": "key1",
}  # fmt: skip


@pytest.mark.parametrize("kind", MAKERS)
def test_equal_in_equal_out_wherever_it_stands(kind: str) -> None:
    for seed in SEEDS:
        original = MAKERS[kind](random.Random(f"{kind} {seed}"))
        value = {"request": f"It is {original}, please.", "arguments": {"to": [original]}, original: original}
        redactor = Redactor()
        found, new = hidden(value, redactor), RESERVED[kind]
        assert found == {"request": f"It is {new}, please.", "arguments": {"to": [new]}, new: new}
        assert redactor.counts == {kind: 1}


@pytest.mark.parametrize("kind", MAKERS)
def test_different_ones_stay_different_and_are_valid(kind: str) -> None:
    rng = random.Random(kind)
    originals = list(dict.fromkeys(MAKERS[kind](rng) for _ in range(250)))
    found = hidden(originals)
    assert len(set(found)) == len(originals)
    assert tokens(" ".join(found)) == ()  # the gate takes none of them for a key
    valid = [match.kind for match in personal(" and ".join(found))]
    assert valid == ([] if kind == "key" else [kind] * len(originals))


@pytest.mark.parametrize(
    "same",
    [
        ["jane.doe@acme.de", "Jane.Doe@ACME.de", "jane.doe%40acme.de", "jane.doe\\u0040acme.de",
         "jane.doe&#64;acme.de", "<jane.doe@acme.de>", "mailto:jane.doe@acme.de."],
        ["+49 170 1234567", "0049 170 1234567", "+49(170)123-4567", "491701234567", "+491701234567"],
        ["(555) 223-4567", "555-223-4567", "5552234567", "555.223.4567", "tel: 555 2234567"],
        ["4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111"],
        ["DE89 3704 0044 0532 0130 00", "de89370400440532013000", "DE89-3704-0044-0532-0130-00 AND more"],
        ["the token is sk-a1b2c3d4e5f6a7b8.", "sk-a1b2c3d4e5f6a7b8", "api_key=sk-a1b2c3d4e5f6a7b8",
         "'sk-a1b2c3d4e5f6a7b8'"],
    ],
)  # fmt: skip
def test_however_it_is_written_it_is_the_same(same: list[str]) -> None:
    redactor = Redactor()
    found = hidden(same, redactor)
    assert redactor.counts.total() == 1
    (kind,) = redactor.counts
    new = RESERVED[kind] if kind != "phone" or same[0][0] == "+" else "2125550101"
    assert all(new.lstrip("+") in one for one in found)


@pytest.mark.parametrize(
    "text",
    [
        "ISBN 978-3-16-148410-0", "9783161484100", "978 0 306 40615 7", "ISBN 0-306-40615-2", "0-306-40615-2",
        "order 1042", "order 4111111111111112", "A-2026-0017", "2026-11-21", "21.11.2026", "11/21/2026",
        "2026-11-21T10:00:00Z", "1732352463000", "192.168.10.100", "550e8400-e29b-41d4-a716-446655440000",
        "3.14159265358979", "version 10.20.300", "SKU-100-200", "10,000,000", "#123456789", "user_42@host",
        "a @ b", "@handle", "x@y", "1-800", "12:30:45", "sk-1", "€ 1.234.567,89", "the secret is out",
        "password reset", "tracking 00340434161094042557", "Grace Hopper, 1 Main Street",
    ],
)  # fmt: skip
def test_what_fits_no_pattern_stays(text: str) -> None:
    redactor = Redactor()
    assert hidden(text, redactor) == text
    assert not redactor.counts


def test_types_stay_and_names_of_parameters_say_what_a_value_is() -> None:
    value = {
        "count": 5552234567, "phone": 5552234567, "mobileNumber": "5559876543", "age": 44, "ok": True,
        "none": None, "rate": 0.5, "password": "hunter2!", "pin": 1234, "card": 4111111111111111,
        "api_key": "plainword", "note": "the password hunter2! for the plainword of 5559876543",
    }  # fmt: skip
    assert hidden(value) == {
        "count": 2125550101, "phone": 2125550101, "mobileNumber": "2125550102", "age": 44, "ok": True,
        "none": None, "rate": 0.5, "password": "key1", "pin": 1234, "card": 4242424242424242,
        "api_key": "key2", "note": "the password key1! for the plainword of 2125550102",
    }  # fmt: skip


def test_what_stands_beside_a_number_is_no_part_of_it() -> None:
    assert hidden("+1 555 223 4567 1042 7") == "+12125550101 1042 7"
    assert hidden(["+49 170 1234567", "order 1042 491701234567 and 7"]) == [
        "+12125550101", "order 1042 12125550101 and 7",
    ]  # fmt: skip


def test_what_a_tools_file_says_stays() -> None:
    redactor = Redactor(keep=['{"enum": ["help@shop.com"]}'])
    assert hidden("Write to help@shop.com and jane@shop.com", redactor) == (
        "Write to help@shop.com and user1@example.com"
    )
    assert redactor.counts == {"email": 1}


def test_patterns_of_ones_own_find_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text("# our people\n\n(?i)jane (doe|roe)\n\\bC-[0-9]+\\b\n")
    redactor = Redactor(read_patterns(path))
    text = "Jane Doe (C-17) wrote JANE DOE; Jane Roe did not. jane@acme.de"
    assert hidden(text, redactor) == (
        "redacted1 (redacted4) wrote redacted2; redacted3 did not. user1@example.com"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"ok\n(?=a)b\n", r":2: the pattern '\(\?=a\)b' uses look-ahead"),
        (b"a*\n", ":1: the pattern 'a\\*' is found in an empty text"),
        (b"# nothing\n", ": holds no pattern"),
        (b"\xff\n", ": not UTF-8"),
    ],
)
def test_a_file_of_patterns_that_cannot_be_used_is_one_line(
    content: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "names.txt"
    path.write_bytes(content)
    refuses(said, read_patterns, path)


def test_hostile_texts_end() -> None:
    for part in (
        "a@b.c ", "4", "+1 ", "@", "\\u0040", "%", "DE89 3704 ", "x" * 75_000 + "@y.com", "0 ", "eyJ",
        "password is ", "+49 170 ", "a.",
    ):  # fmt: skip
        text = part * ((300_000 if NIGHTLY else 75_000) // len(part) + 1)
        assert isinstance(Redactor([compiled("(a+)+$")]).text(text), str)


def test_letters_beyond_ascii_are_found() -> None:
    assert hidden("tänja@exämple.de and 田中@例え.jp") == "user1@example.com and user2@example.com"
