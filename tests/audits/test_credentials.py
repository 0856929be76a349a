"""Credential-like strings are found, never repeated, and allowed in reviewed clean rows alone."""

import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc.audits import credentials
from robustbench_tc.audits.credentials import changed_passage, finds, redact
from robustbench_tc.schema import Message, Sample, Tool

SECRETS = {
    "email": "mara.lind@harbour-mail.org",
    "vendor_key": "sk-proj-a1B2c3D4e5F6g7H8",
    "web_token": "eyJhbGciOiJIUzI.eyJzdWIiOjEyMzQ.s5f0_xQ-1",
    "url_login": "https://mara:tidewater@harbour.org/",
    "private_key": "-----BEGIN RSA PRIVATE KEY-----",
    "bearer": "9f8e7d6c5b4a",
    "assigned": "kelp4river",
    "random": "q7w6e5r4t3y2u1i0",
}
SENTENCES = {
    "bearer": "Authorization: Bearer {}",
    "assigned": "My password is {}, thanks.",
}


@pytest.mark.parametrize("kind", SECRETS)
def test_each_kind_is_found_and_redacted(kind: str) -> None:
    text = SENTENCES.get(kind, "Use {} for it.").format(SECRETS[kind])
    assert kind in {find.kind for find in finds(text, "x")}
    assert SECRETS[kind] not in redact(text)
    assert SECRETS[kind] not in msgspec.json.encode(list(finds(text, "x"))).decode()


@pytest.mark.parametrize(
    "text",
    [
        "The API token is required and the password to be given.",
        "PublicHolidayTranslateNameV3",
        "Pay 12345678901234567890 units at 12:30 on 2027-03-14.",
        "a secret garden, an access key for the door",
        '{"token": {"type": "string"}, "password": "string"}',
        "see https://harbour.org/a:b@c and mutation_type.find",
        "",
    ],
)
def test_prose_and_schemas_are_left_alone(text: str) -> None:
    assert {find.kind for find in finds(text, "x")} <= {"assigned_text"}
    if "password" not in text or "{" not in text:
        assert list(finds(text, "x")) == []


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_the_changed_passage_holds_all_that_is_new(head: str, old: str, new: str, tail: str) -> None:
    before, after = head + old + tail, head + new + tail
    passage = changed_passage(before, after)
    assert passage in after
    start = after.index(passage)
    assert before.startswith(after[:start]) or start == 0
    assert before.endswith(after[start + len(passage) :])


def sample(text: str, type_code: str = "clean", tools: tuple[Tool, ...] = ()) -> Sample:
    return Sample(
        id=f"bfcl_v3__x::{type_code}",
        clean_id="bfcl_v3__x",
        type_code=type_code,
        source="bfcl_v3",
        category="simple",
        messages=(Message("user", text),),
        tools=tools,
        golden_answers=(),
        output_format="python_calls",
    )


def test_a_string_of_the_clean_row_is_no_new_one_and_another_is() -> None:
    clean = sample("My password is kelp4river. Log me in.")
    same = sample("My password is kelp4river. Please log me in.", "query_paraphrase")
    other = sample("My password is dune5river. Please log me in.", "query_paraphrase")
    assert list(credentials.in_new_text(clean, same)) == []
    assert [find.kind for find in credentials.in_new_text(clean, other)] == ["assigned"]


def test_a_new_tool_is_searched_as_a_whole() -> None:
    new = Tool("mail", "Writes to mara.lind@harbour-mail.org.", {"type": "object"})
    found = list(credentials.in_new_text(sample("Hi"), sample("Hi", "redundant", (new,))))
    assert [(find.kind, find.field) for find in found] == [("email", "tools/0")]


def test_the_allow_list_holds_hashes_and_field_names_only() -> None:
    found = json.loads(credentials.ALLOWLIST.read_bytes())
    assert list(found) == ["entries"] and found["entries"] == sorted(set(found["entries"]))
    shape = r"[0-9a-f]{16}:(?:messages/\d+|tools/\d+|golden_answers):[0-9a-f]{16}"
    assert all(re.fullmatch(shape, entry) for entry in found["entries"])


def test_the_allow_list_is_made_from_clean_rows_and_lets_them_pass() -> None:
    row = sample("My password is kelp4river.")
    entries = set(json.loads(credentials.make_allowlist([row]))["entries"])
    assert {credentials.key(row.clean_id, find) for find in credentials.in_clean(row)} == entries
    elsewhere = msgspec.structs.replace(row, clean_id="bfcl_v3__y")
    assert not entries & {credentials.key("bfcl_v3__y", find) for find in credentials.in_clean(elsewhere)}
