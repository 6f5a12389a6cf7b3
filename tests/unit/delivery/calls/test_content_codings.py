"""Answers in a coding that nobody requested are decoded as common clients do."""

import gzip
import zlib

import pytest

from delivery.calls.content_codings import UndecodableError, codings_of, decoded

PLAIN = bytes(range(256)) * 500
MOST = 1_000_000


def raw_deflate(body: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflater.compress(body) + deflater.flush()


@pytest.mark.parametrize(
    ("content_encoding", "codings"),
    [
        ("", []),
        ("identity", []),
        ("GZip", ["gzip"]),
        ("deflate, x-gzip", ["deflate", "x-gzip"]),
        ("gzip,,identity", ["gzip"]),
        ("br", None),
        ("gzip, zstd", None),
    ],
)
def test_a_header_names_codings_in_their_order(
    content_encoding: str, codings: list[str] | None
) -> None:
    assert codings_of(content_encoding) == codings


@pytest.mark.parametrize(
    ("codings", "body"),
    [
        ([], PLAIN),
        (["gzip"], gzip.compress(PLAIN)),
        (["x-gzip"], gzip.compress(PLAIN)),
        (["deflate"], zlib.compress(PLAIN)),
        (["deflate"], raw_deflate(PLAIN)),
        (["deflate", "gzip"], gzip.compress(zlib.compress(PLAIN))),
        (["gzip"], gzip.compress(PLAIN[:1000]) + gzip.compress(PLAIN[1000:])),
        (["gzip"], gzip.compress(PLAIN) + b"\0" * 100),
    ],
    ids=["none", "gzip", "x-gzip", "zlib", "raw", "both", "two members", "padded"],
)
def test_a_body_is_decoded(codings: list[str], body: bytes) -> None:
    assert decoded(body, codings, most=MOST) == PLAIN


@pytest.mark.parametrize("codings", [["gzip"], ["deflate"], ["gzip", "deflate"]])
def test_an_empty_body_has_no_coding(codings: list[str]) -> None:
    assert decoded(b"", codings, most=MOST) == b""


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", b"plain"),
        ("gzip", gzip.compress(PLAIN)[:-9]),
        ("deflate", zlib.compress(PLAIN)[:100]),
        ("gzip", gzip.compress(PLAIN)[:-8] + b"\0" * 8),
    ],
    ids=["not gzip", "cut", "cut zlib", "wrong checksum"],
)
def test_a_body_that_does_not_match_is_undecodable_and_its_beginning_kept(
    coding: str, body: bytes
) -> None:
    with pytest.raises(UndecodableError) as error:
        decoded(body, [coding], most=MOST)
    assert PLAIN.startswith(error.value.begun)


def test_a_bomb_is_cut() -> None:
    assert decoded(gzip.compress(b"0" * 10 * MOST), ["gzip"], most=MOST) == b"0" * MOST


def test_many_members_take_no_quadratic_time() -> None:
    """Each member of nearly half a million would leave a copy of the 10 MB after it."""
    members = gzip.compress(b"") * 480_000
    assert decoded(members, ["gzip"], most=MOST) == b""
