"""Pseudonyms: equal for equal, valid, of the same shape; nothing else is touched."""

import random
import re
import string
from typing import Any

import pytest

from robustbench_tc.own.logs.finds import bare, is_card, is_iban, luhn, mod97
from robustbench_tc.own.logs.permute import changed, step
from robustbench_tc.own.logs.pseudonyms import KEPT_DOMAINS, Pseudonyms

KEY = bytes(range(32))
SEEDS = range(40)


def hide(*values: Any, key: bytes = KEY) -> Pseudonyms:
    made = Pseudonyms(key)
    for value in values:
        made.learn(value)
    return made


def email(rng: random.Random) -> str:
    letters = string.ascii_lowercase
    local = "".join(rng.choices(letters, k=rng.randint(3, 9)))
    if rng.random() < 0.5:
        local += rng.choice(".-_+") + "".join(rng.choices(letters + string.digits, k=4))
    domain = rng.choice(["gmail.com", "acme.com", "mail.northwind.co.uk", "b-fahrt.de", "uni.edu"])
    return f"{local}@{domain}"


def card(rng: random.Random) -> str:
    body = rng.choice("3456") + "".join(rng.choices(string.digits, k=14))
    return body + str((10 - luhn(body + "0")) % 10)


def iban(rng: random.Random) -> str:
    country, length = rng.choice([("DE", 18), ("FR", 23), ("NO", 11)])
    body = "".join(rng.choices(string.digits, k=length))
    return f"{country}{98 - mod97(country + '00' + body):02d}{body}"


def phone(rng: random.Random) -> str:
    return f"+{rng.choice(['1', '44', '49', '353'])} {rng.randint(100, 999)} {rng.randint(1000000, 9999999)}"


def key(rng: random.Random) -> str:
    return rng.choice(["sk-", "ghp_", "hf_"]) + "".join(
        rng.choices(string.ascii_letters + string.digits, k=36)
    )


MAKERS = {"email": email, "card": card, "iban": iban, "phone": phone, "key": key}


@pytest.mark.parametrize("size", [2, 3, 10, 26, 97, 676])
def test_the_permutation_has_no_fixed_point_and_is_one(size: int) -> None:
    found = [step(b"seed", number, size) for number in range(size)]
    assert sorted(found) == list(range(size))
    assert all(one != number for number, one in enumerate(found))


def test_different_texts_stay_different() -> None:
    texts = [f"{a}{b}7" for a in string.ascii_lowercase for b in string.ascii_lowercase]
    found = [changed(KEY, "x", one) for one in texts]
    assert len(set(found)) == len(texts)
    assert all(re.fullmatch(r"[a-z]{2}[0-9]", one) for one in found)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_equal_in_equal_out_wherever_it_stands(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    original = MAKERS[kind](rng)
    value = {"request": f"It is {original}, please.", "arguments": {"to": [original]}, original: original}
    made = hide(value)
    found = made.apply(value)
    new = found["arguments"]["to"][0]
    assert found == {"request": f"It is {new}, please.", "arguments": {"to": [new]}, new: new}
    assert original not in str(found)
    assert made.counts == {kind: 1}
    assert len(new) == len(original)
    assert [char.isdigit() for char in new] == [char.isdigit() for char in original]
    again = hide({"x": f"Other words, {original}"})
    assert again.text(original) == new  # by the secret alone: equal across imports
    assert hide(value, key=b"other" * 6).text(original) != new


@pytest.mark.parametrize("seed", SEEDS)
def test_check_digits_stay_valid(seed: int) -> None:
    rng = random.Random(seed)
    one, other = card(rng), iban(rng)
    made = hide([one, other])
    assert is_card(made.text(one))
    assert made.text(one)[:6] == one[:6]
    assert is_iban(made.text(other))
    assert made.text(other)[:2] == other[:2]
    grouped = " ".join(one[at : at + 4] for at in range(0, 16, 4))
    assert made.text(grouped).replace(" ", "") == made.text(one)
    assert made.apply({"card": int(one)}) == {"card": int(made.text(one))}


@pytest.mark.parametrize("seed", SEEDS)
def test_an_email_keeps_the_class_of_its_domain(seed: int) -> None:
    original = email(random.Random(seed))
    found = hide(original).text(original)
    domain, new = original.partition("@")[2], found.partition("@")[2]
    if domain in KEPT_DOMAINS:
        assert new == domain
    else:
        assert new != domain
        assert new.rpartition(".")[2] == domain.rpartition(".")[2]
        assert new.endswith(".co.uk") == domain.endswith(".co.uk")


@pytest.mark.parametrize(
    "same",
    [
        ["jane.doe@acme.de", "Jane.Doe@ACME.de", "jane.doe%40acme.de", "jane.doe\\u0040acme.de",
         "jane.doe%2540acme.de", "jane.doe&#64;acme.de", "\\njane.doe@acme.de", "?to=jane.doe@acme.de&x=1",
         "<jane.doe@acme.de>", "mailto:jane.doe@acme.de."],
        ["+49 170 1234567", "0049 170 1234567", "+49(170)123-4567", "491701234567", "+491701234567"],
        ["(555) 223-4567", "555-223-4567", "5552234567", "555.223.4567"],
        ["4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111"],
        ["DE89 3704 0044 0532 0130 00", "de89370400440532013000", "DE89-3704-0044-0532-0130-00"],
    ],
)  # fmt: skip
def test_however_it_is_written_it_is_the_same(same: list[str]) -> None:
    made = hide(*same)
    found = [made.text(one) for one in same]
    whole = bare(same[0])
    assert made.counts.total() == 1
    for one, new in zip(same, found, strict=True):
        assert len(new) == len(one)
        assert whole not in bare(new.replace("%40", "").replace("%2540", "").replace("\\u0040", ""))
        assert re.sub(r"[A-Za-z0-9]", "", new) == re.sub(r"[A-Za-z0-9]", "", one)


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
    made = hide(text)
    assert made.text(text) == text
    assert not made.counts


def test_types_stay_and_names_of_parameters_say_what_a_value_is() -> None:
    value = {
        "phone": 5552234567, "mobileNumber": "5559876543", "count": 5552234567, "age": 44, "ok": True,
        "none": None, "rate": 0.5, "password": "hunter2!", "pin": 1234, "account_number": "12345678",
        "api_key": "plainword", "note": "the password hunter2! and account 12345678",
    }  # fmt: skip
    found = hide(value).apply(value)
    assert {key: type(one) for key, one in found.items()} == {key: type(one) for key, one in value.items()}
    same = {"age", "ok", "none", "rate", "pin"}
    assert {key for key in value if found[key] == value[key]} == same
    assert found["count"] == found["phone"]
    assert str(found["phone"])[:2] == "55"
    assert found["password"] in found["note"]
    assert found["account_number"] in found["note"]


def test_a_number_is_found_beside_another_and_as_a_figure_with_a_point() -> None:
    value = {"phone": "+49 170 1234567", "note": "order 1042 491701234567 and 7", "card": 4111111111111111.0}
    found = hide(value).apply(value)
    new = bare(found["phone"])
    assert found["note"] == f"order 1042 {new} and 7"
    assert isinstance(found["card"], float)
    assert found["card"] != value["card"]
    assert is_card(str(int(found["card"])))


def test_what_follows_a_number_is_no_part_of_it() -> None:
    made = hide("+1 555 223 4567")
    known = made.text("+1 555 223 4567")
    assert made.text("+1 555 223 4567 1042 7") == f"{known} 1042 7"


def test_a_word_that_is_a_password_is_no_reason_to_change_sentences() -> None:
    value = {"password": "monkey", "note": "the monkey is here"}
    found = hide(value).apply(value)
    assert found["password"] != "monkey"
    assert found["note"] == value["note"]


def test_what_a_tools_file_says_stays() -> None:
    made = Pseudonyms(KEY, keep=['{"enum": ["help@shop.com"]}'])
    made.learn("Write to help@shop.com and jane@shop.com")
    found = made.text("Write to help@shop.com and jane@shop.com")
    assert "help@shop.com" in found
    assert "jane@shop.com" not in found


@pytest.mark.parametrize(
    "text",
    ["a@b.c " * 50_000, "4" * 200_000, "+1 " * 100_000, "@" * 200_000, "\\u0040" * 50_000, "%" * 200_000,
     "DE89 3704 " * 30_000, "x" * 300_000 + "@y.com", "0 " * 200_000, "eyJ" * 50_000,
     "password is " * 20_000],
    ids=range(11),
)  # fmt: skip
def test_hostile_texts_end(text: str) -> None:
    made = hide(text)
    assert isinstance(made.text(text), str)


def test_letters_beyond_ascii_do_not_stay() -> None:
    text = "tänja@exämple.de and 田中@例え.jp"
    found = hide(text).text(text)
    assert "tänja" not in found
    assert "田中" not in found
    assert found.endswith(".jp")
