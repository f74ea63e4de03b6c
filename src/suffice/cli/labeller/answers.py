"""Which keys and words stand for which class, and which for a command."""

from collections.abc import Sequence
from typing import Final

from suffice.errors import InvalidValueError

#: The commands, by their letter.
COMMANDS: Final = {"s": "skip", "u": "undo", "c": "correct", "?": "help", "q": "quit"}
_MOST_KEYS: Final = 9


def direct_keys(classes: Sequence[str]) -> tuple[str, ...]:
    """One key for each class; none where there are too many, and one has to be typed.

    Classes that are digits have themselves as keys: nobody should have to press 1 for 0.

    Examples:
        >>> direct_keys(["ham", "spam"]), direct_keys(["0", "1"]), direct_keys([str(k) for k in range(12)])
        (('1', '2'), ('0', '1'), ())
    """
    if classes and all(len(name) == 1 and name in "0123456789" for name in classes):
        return tuple(classes)
    return tuple(str(k) for k in range(1, len(classes) + 1)) if len(classes) <= _MOST_KEYS else ()


def command_keys(classes: Sequence[str]) -> dict[str, str]:
    """What to press for each command: its letter, or a colon first where a class that is typed begins with it.

    Args:
        classes: The classes that are typed; none where a class has a key, or labels are numbers.

    Examples:
        >>> command_keys([])["skip"], command_keys(["Snake", "cat"])["skip"]
        ('s', ':s')
    """
    taken = {name[:1].casefold() for name in classes}
    return {command: f":{letter}" if letter in taken else letter for letter, command in COMMANDS.items()}


def typed_class(text: str, classes: Sequence[str], *, beginnings: bool = True) -> str:
    """The class that somebody means who typed its name, its number, or the beginning of its name.

    Args:
        text: What was typed.
        classes: All classes.
        beginnings: Whether the beginning of a name is enough.

    Raises:
        InvalidValueError: It may be none of them, or several.

    Examples:
        >>> typed_class("2", ["cat", "dog"]), typed_class("D", ["cat", "dog"]), typed_class("1", ["0", "1"])
        ('dog', 'dog', '1')
    """
    word = text.strip()
    if word in classes:
        return word
    folded = word.casefold()
    same = [name for name in classes if name.casefold() == folded]
    found = same or _numbered(word, classes) or (possible_classes(word, classes) if beginnings and word else [])
    if len(found) == 1:
        return found[0]
    some = ", ".join((found or list(classes))[:8]) + (", ..." if len(found or classes) > 8 else "")
    if found:
        raise InvalidValueError(f"{word[:40]!r} may be {some}; type more of it")
    raise InvalidValueError(f"{word[:40]!r} is none of the classes; they are {some}")


def possible_classes(text: str, classes: Sequence[str]) -> list[str]:
    """Classes whose name begins with what was typed, however it is written."""
    folded = text.strip().casefold()
    return [name for name in classes if name.casefold().startswith(folded)]


def _numbered(word: str, classes: Sequence[str]) -> list[str]:
    """The class of a number; none where some class is a number itself, because it could be meant."""
    if not (word.isascii() and word.isdigit() and len(word) < 9) or any(name.strip().isdigit() for name in classes):
        return []
    return [classes[int(word) - 1]] if 1 <= int(word) <= len(classes) else []
