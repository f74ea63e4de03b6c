"""Keyed digests of texts, and their comparison in constant time."""

import hashlib
import hmac


def keyed_digest(key: str, purpose: str) -> str:
    """A text from which the key cannot be computed: the HMAC-SHA256 of a purpose under the key, in hexadecimal digits.

    Args:
        key: The secret.
        purpose: What the text is for. Texts for different purposes are independent of each other.

    Examples:
        >>> keyed_digest("key", "a") == keyed_digest("key", "b"), len(keyed_digest("key", "a"))
        (False, 64)
    """
    return hmac.new(_bytes(key), _bytes(f"suffice {purpose}"), hashlib.sha256).hexdigest()


def same_text(given: str, right: str) -> bool:
    """Whether two texts are the same; the comparison takes constant time."""
    return hmac.compare_digest(_bytes(given), _bytes(right))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
