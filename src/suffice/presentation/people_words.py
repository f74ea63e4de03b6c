"""Sentences about people: how long their answers take, how often they are right, and answers by chance."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from suffice.presentation.text_format import count, number, percent

#: What counts as right, and how sure the shares are.
TRUTH_NOTE: Final = (
    "Settled items are those that somebody else has corrected or confirmed. They are mostly items on which people "
    "differ, so fewer answers are right than on typical items. On items drawn at random, the settled label counts as "
    "right, or otherwise that of most of the others (at least two): it is agreement, because they may be wrong. The "
    "limits hold with 95 % confidence (Clopper and Pearson)."
)
#: What an alarm about answers by chance means, for two people and for more.
CHANCE_NOTE: Final = (
    "Such answers do not contradict chance, and they contradict an agreement with others of at least 0.3 (0 is chance, "
    "1 is full agreement). If everybody agrees with the others at least that far, this is said in at most 1 % of "
    "projects."
)
TWO_PEOPLE_NOTE: Final = (
    "With two people it cannot be told whose answers are by chance; settle some of their differences in the review."
)


def person_sentences(person: Mapping[str, Any]) -> list[str]:
    r"""What is known about the answers of a person.

    Args:
        person: The result of :meth:`suffice.project.people.PersonRecord.as_dict`.

    Returns:
        The sentences; none about a person who has only corrected labels of others.

    Examples:
        >>> settled = {"items": 20, "right": 18, "share": 0.9, "low": 0.683, "high": 0.9877}
        >>> found = {"name": "Eve", "answers": 80, "seconds": 4.2, "settled": settled, "random": None}
        >>> chance = {"compared": 64, "same": 31, "expected": 30.24, "by_chance": True}
        >>> for sentence in person_sentences({**found, **chance}):
        ...     print(sentence.replace("\u00a0", " "))
        80 answers, 4.2 seconds each.
        18 of 20 answers were right on settled items (68 % to 99 %).
        31 of 64 answers are the same as those of others; 30.2 are expected by chance.
        The answers of Eve agree with those of others no more than by chance.
        >>> single = {"items": 1, "right": 0, "share": 0.0, "low": 0.0, "high": 0.975}
        >>> alone = {"compared": 1, "same": 1, "expected": 0.5, "by_chance": False}
        >>> for sentence in person_sentences({**found, **alone, "settled": single})[1:]:
        ...     print(sentence.replace("\u00a0", " "))
        0 of 1 answer was right on settled items (0 % to 98 %).
        1 of 1 answer is the same as those of others; 0.5 are expected by chance.
    """
    if not person["answers"]:
        return []
    given = count(person["answers"], "answer")
    said = [f"{given}." if person["seconds"] is None else f"{given}, {person['seconds']:.2g} seconds each."]
    for accuracy, where in ((person["settled"], "settled items"), (person["random"], "items drawn at random")):
        if accuracy is not None:
            limits = f"{percent(accuracy['low'])} to {percent(accuracy['high'])}"
            answers = count(accuracy["items"], "answer")
            verb = "was" if accuracy["items"] == 1 else "were"
            said.append(f"{accuracy['right']:,} of {answers} {verb} right on {where} ({limits}).")
    if person["compared"]:
        answers = count(person["compared"], "answer")
        expected = number(round(person["expected"], 1))
        verb = "is" if person["compared"] == 1 else "are"
        said.append(
            f"{person['same']:,} of {answers} {verb} the same as those of others; {expected} are expected by chance."
        )
    if person["by_chance"]:
        said.append(f"The answers of {person['name']} agree with those of others no more than by chance.")
    return said


def people_notes(people: Sequence[Mapping[str, Any]]) -> list[str]:
    """What has to be known to read these sentences; empty if nothing is stated that needs it."""
    notes = []
    if any(each["settled"] is not None or each["random"] is not None for each in people):
        notes.append(TRUTH_NOTE)
    if any(each["by_chance"] for each in people):
        notes.append(CHANCE_NOTE)
        if sum(each["compared"] > 0 for each in people) == 2:
            notes.append(TWO_PEOPLE_NOTE)
    return notes
