"""Compressed HTTP bodies: whole, cut at every byte, damaged, with members and with something behind them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest

from connect.kits.http.content_encoding import BodyDecoder, BrokenBodyError, UnknownEncodingError

TEXT = b"".join(b"line %d of the answer\n" % number for number in range(300))


def raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def decoded(encoding: str | None, body: bytes, part: int = 7) -> bytes:
    decoder = BodyDecoder(encoding)
    found = b"".join(b"".join(decoder.decode(body[at : at + part])) for at in range(0, len(body), part))
    decoder.check_end()
    return found


FORMS = [("gzip", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress), ("DEFLATE", raw)]


@pytest.mark.parametrize(("encoding", "pack"), FORMS)
@pytest.mark.parametrize("part", [1, 2, 1000, 100_000])
def test_a_whole_body_is_read(encoding: str, pack: Callable[[bytes], bytes], part: int) -> None:
    assert decoded(encoding, pack(TEXT), part) == TEXT
    assert decoded(encoding, pack(TEXT) + b"\r\n", part) == TEXT
    assert decoded(encoding, pack(b""), part) == b""
    assert decoded(encoding, b"") == b""


@pytest.mark.parametrize(("encoding", "pack"), FORMS)
def test_a_body_cut_anywhere_is_broken(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    whole = pack(TEXT)
    for length in range(1, len(whole)):
        with pytest.raises(BrokenBodyError):
            decoded(encoding, whole[:length], 100_000)


def test_gzip_may_have_members_and_each_has_its_end() -> None:
    first, second = gzip.compress(b"first,"), gzip.compress(b"second")
    for part in (1, 1000):
        assert decoded("gzip", first + second, part) == b"first,second"
        assert decoded("gzip", first + second + b"\0" * 9, part) == b"first,second"
        assert decoded("gzip", first + b"garbage" + second, part) == b"first,"
    for length in range(1, len(second)):
        with pytest.raises(BrokenBodyError):
            decoded("gzip", first + second[:length])


def test_damage_is_noticed() -> None:
    whole = bytearray(gzip.compress(TEXT))
    whole[-5] ^= 1
    with pytest.raises(BrokenBodyError):
        decoded("gzip", bytes(whole))
    with pytest.raises(BrokenBodyError):
        decoded("gzip", b"no gzip at all")


def test_layers_come_off_in_order_and_others_are_refused() -> None:
    assert decoded("deflate, gzip", gzip.compress(zlib.compress(TEXT))) == TEXT
    assert decoded("identity", TEXT) == TEXT
    assert decoded(None, TEXT) == TEXT
    with pytest.raises(BrokenBodyError):
        decoded("deflate, gzip", gzip.compress(zlib.compress(TEXT)[:-1]))
    for unknown in ("br", "zstd", "gzip, br", "compress"):
        with pytest.raises(UnknownEncodingError, match="Content-Encoding"):
            decoded(unknown, TEXT)
    with pytest.raises(UnknownEncodingError, match="compressed 4 times"):
        decoded("gzip,gzip,gzip,gzip", TEXT)


def test_no_part_is_larger_than_a_quarter_of_a_megabyte() -> None:
    decoder = BodyDecoder("gzip")
    parts = list(decoder.decode(gzip.compress(b"0" * 5_000_000)))
    assert max(map(len, parts)) <= 1 << 18
    assert b"".join(parts) == b"0" * 5_000_000
