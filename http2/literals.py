"""Text in header blocks as it is, without Huffman's code.

Source: https://www.rfc-editor.org/rfc/rfc7541#section-5
"""

from __future__ import annotations


def literal(text: bytes) -> bytes:
    """Return a length of seven bits and more, and the text."""
    size = len(text)
    if size < 127:
        return bytes((size,)) + text
    more = bytearray((127,))
    size -= 127
    while size >= 128:
        more.append(size & 127 | 128)
        size >>= 7
    more.append(size)
    return bytes(more) + text
