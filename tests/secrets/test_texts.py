"""The texts of new events: for any two versions, in any layout, every event that only the new one has is read."""

from __future__ import annotations

import json
import random

from hypothesis import given
from hypothesis import strategies as st

from reconcile.secrets.detection import find_secrets
from reconcile.secrets.texts import new_texts
from tests.support.planted import KINDS

KEY = b"k"
SECRETS = [KINDS["GitHub classic token"](random.Random(seed)) for seed in range(4)]
EVENT = st.fixed_dictionaries(
    {"content": st.sampled_from([*SECRETS, "hello", 'a "quoted\n  {" text', "[", "\u2028é"])},
    optional={"inner": st.lists(st.fixed_dictionaries({"a": st.just({"b": 1})}), max_size=2)},
)
LAYOUTS = st.sampled_from([None, 0, 1, 2, 4])


@given(st.lists(EVENT, max_size=5), st.lists(EVENT, max_size=5), st.integers(0, 5), LAYOUTS, LAYOUTS)
def test_every_new_event_is_read_with_its_number(
    before: list[dict[str, object]], more: list[dict[str, object]], kept: int, old: int | None, new: int | None
) -> None:
    after = [*before[:kept], *more]
    contents = [json.dumps(events, indent=indent).encode() for events, indent in ((before, old), (after, new))]
    found = find_secrets(contents[1], KEY, [contents[0]])
    expected = {str(event["content"]) for event in after if event not in before} & set(SECRETS)
    whole = {finding.fingerprint: finding.event for finding in find_secrets(contents[1], KEY)}
    assert len(found) >= len(expected)
    for finding in found:
        assert finding.event is not None
        assert after[finding.event - 1]["content"] in SECRETS
        assert finding.fingerprint in whole


@given(st.binary(max_size=300), st.lists(st.binary(max_size=300), max_size=2))
def test_no_content_is_an_error(content: bytes, before: list[bytes]) -> None:
    find_secrets(content, KEY, before)
    assert new_texts(content, [content]).pieces == []


@given(st.text(max_size=200))
def test_a_secret_is_found_after_any_text_and_before_a_space(text: str) -> None:
    content = json.dumps([{"content": f"{text}\n{SECRETS[0]} "}], indent=2).encode()
    assert SECRETS[0][:4] in {finding.masked[:4] for finding in find_secrets(content, KEY)}
