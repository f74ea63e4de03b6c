"""The failure of a conformance check, with an explanation."""


def require(condition: bool, message: str) -> None:
    """Raise ``AssertionError`` with the message unless the condition holds; also where Python drops assertions."""
    if not condition:
        raise AssertionError(message)
