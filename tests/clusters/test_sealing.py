"""Sealed boxes: who can close one can't open it, and nobody opens one that was tampered with."""

import base64
import os
from io import StringIO

import pytest
from django.core.management import call_command

from clusters.sealing import (
    SMALLEST,
    PrivateKey,
    PublicKey,
    Unopened,
    key_id,
    open_sealed,
    seal,
)

KEY, OTHER = PrivateKey.fresh(), PrivateKey.fresh()
SECRET = b"canary-token-0123456789"
HERE = b"table:1:credential"


def refusal(box: bytes, *keys: PrivateKey, context: bytes = HERE) -> str:
    with pytest.raises(Unopened) as raised:
        open_sealed(keys or [KEY], box, context=context)
    assert "canary" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("plain", [b"", SECRET, os.urandom(64 * 1024)])
def test_what_was_sealed_is_opened_by_its_key_among_others(plain: bytes) -> None:
    box = seal(KEY.public, plain, context=HERE)
    assert open_sealed([OTHER, KEY], box, context=HERE) == plain
    assert key_id(box) == KEY.public.id
    assert len(box) == SMALLEST + len(plain)
    assert not plain or plain not in box


def test_no_two_boxes_are_alike() -> None:
    boxes = [seal(KEY.public, SECRET, context=HERE) for _ in range(50)]
    assert len({box[17:49] for box in boxes}) == 50
    assert len({box[49:] for box in boxes}) == 50


def test_who_lacks_the_key_is_told_which() -> None:
    box = seal(KEY.public, SECRET, context=HERE)
    assert refusal(box, OTHER) == f"this process has no key {KEY.public.id.hex()}"
    with pytest.raises(Unopened):
        open_sealed([], box, context=HERE)


def test_a_box_opens_only_where_it_was_put() -> None:
    box = seal(KEY.public, SECRET, context=HERE)
    assert "sealed for another place" in refusal(box, context=b"table:2:credential")


def test_one_changed_bit_anywhere_is_seen() -> None:
    box = seal(KEY.public, SECRET, context=HERE)
    for place in range(len(box)):
        changed = bytearray(box)
        changed[place] ^= 1
        refusal(bytes(changed))


def test_a_box_of_one_key_under_the_id_of_another_is_not_opened() -> None:
    box = seal(OTHER.public, SECRET, context=HERE)
    assert "it was changed" in refusal(box[:1] + KEY.public.id + box[17:])


@pytest.mark.parametrize("box", [b"", b"\x01", SECRET, b"\x02" + bytes(100), bytes(100)])
def test_what_is_no_box_is_said_to_be_none(box: bytes) -> None:
    assert refusal(box) == "it is no sealed box of version 1"


def test_a_key_that_shares_nothing_with_any_other_opens_nothing() -> None:
    """The points of low order, of which X25519 makes zeros with every key."""
    box = seal(KEY.public, SECRET, context=HERE)
    assert "it was changed" in refusal(box[:17] + bytes(32) + box[49:])


@pytest.mark.parametrize("kind", [PublicKey, PrivateKey])
def test_a_key_of_another_length_is_refused_and_not_quoted(kind: type) -> None:
    with pytest.raises(ValueError, match="a key of 32 bytes is wanted, not 23") as raised:
        kind(SECRET)
    assert "canary" not in str(raised.value)


def test_a_private_key_is_never_shown() -> None:
    assert repr(KEY) == "PrivateKey()"


def test_the_command_prints_a_pair_that_fits() -> None:
    out = StringIO()
    call_command("sealing_key", stdout=out)
    lines = dict(line.split("=", 1) for line in out.getvalue().split())
    private = PrivateKey(base64.b64decode(lines["BERTH_OPEN_KEYS"]))
    assert private.public == PublicKey(base64.b64decode(lines["BERTH_SEAL_KEY"]))
    assert set(lines) == {"BERTH_SEAL_KEY", "BERTH_OPEN_KEYS"}
