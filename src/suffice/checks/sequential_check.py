"""Sequential checks without a model: answers "right" or "wrong" in the drawn order, until a target is proven."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.arguments import distinct, whole
from suffice.checks.guarantee import Guarantee, known_fields
from suffice.checks.random_check import spent_alpha
from suffice.checks.sequential_terms import SequentialTerms
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.presentation.check_words import sequential_words
from suffice.presentation.html_parts import card
from suffice.presentation.text_format import count, is_or_are, percent_at_most

_FORMAT: Final = 1


def sequential(  # noqa: PLR0913 - all but two by keyword
    at_most: float,
    pool: int | ArrayLike,
    *,
    alpha: float = 0.05,
    number: int = 1,
    expected: float | None = None,
    planned: int | None = None,
    corrected: bool = False,
    seed: int | None = None,
) -> "SequentialCheck":
    """Draw a sequential check, which ends as soon as a target is proven.

    Args:
        at_most: The target: the largest acceptable share of wrong items, from 0 to 1.
        pool: Number of items, or the items themselves (whole numbers, each once).
        alpha: Probability with which the proof may be wrong, for all checks of these items together.
        number: Number of this check of these items, from 1. Check number j uses alpha / (j (j + 1)).
        expected: Expected share of wrong items, to plan the check; half of ``at_most`` if left out.
        planned: Planned number of answers, instead of ``expected``.
        corrected: Whether items that are found wrong are corrected. Then the target is about the wrong items that
            remain; otherwise about the predictions as they are.
        seed: For a reproducible draw; drawn from the operating system if left out.

    Raises:
        InvalidTypeError: An argument is of the wrong type.
        InvalidValueError: An argument is out of range, or the target cannot be proven with 100,000 answers.

    Examples:
        >>> check = sequential(at_most=0.05, pool=3000, seed=0)
        >>> check.next(3).tolist()
        [694, 2349, 2198]
        >>> print(check.tell([False, True]))
        Check: 2 answers, 1 wrong prediction. The target is proven if the next 154 predictions are all right.
        >>> print(check.tell([False] * 154))
        At most 5 % of the predictions for the 3,000 items that were unlabelled at the start of the check are wrong \
(95 % confidence).
    """
    if isinstance(pool, bool | int | np.integer):
        size, items = whole(pool, "pool", least=1), None
    else:
        items = np.asarray(pool)
        if items.ndim != 1 or (items.size and items.dtype.kind not in "iu"):
            raise InvalidTypeError(f"pool must be a number of items or a series of indices, not {pool!r}")
        if not items.size or not distinct(items):
            raise InvalidValueError("pool must name at least one item, each once")
        size = len(items)
    spent = spent_alpha(number, alpha)
    terms = SequentialTerms.of_share(
        at_most, pool=size, alpha=spent, planned=planned, expected=expected, corrected=corrected
    )
    terms.require_provable()
    rng = np.random.default_rng(seed)
    drawn = rng.choice(size, size=terms.longest, replace=False, shuffle=True)
    return SequentialCheck(terms, drawn if items is None else items[drawn], number=number, alpha=alpha)


class SequentialCheck:
    """A sequential check of predictions that were made before; :func:`sequential` draws one.

    The answers are given in the drawn order, in any number of calls. A pause costs nothing. A check that is given up
    proves nothing, and its part of the error probability is spent.

    Args:
        terms: The part that is fixed before the first answer.
        items: The items in random order.
        number: Number of the check of these items.
        alpha: Error probability of all checks of these items.

    Attributes:
        terms: As given.
        items: The items in the order in which they are answered; at most 100,000.
        number: As given.
        alpha: As given.
        wrong: Whether each answered item is wrong; None for one that cannot be labelled, which counts as wrong.
        first_answers: The first answers of items whose answer was corrected, by their place among the answers.
        given_up: Whether the check was given up.

    Examples:
        >>> from suffice.checks import SequentialCheck, sequential
        >>> check = sequential(at_most=0.1, pool=500, seed=0)
        >>> isinstance(check, SequentialCheck), check.given_up, len(check.items)
        (True, False, 500)
    """

    def __init__(self, terms: SequentialTerms, items: ArrayLike, *, number: int = 1, alpha: float = 0.05) -> None:
        self.terms, self.number, self.alpha = terms, number, alpha
        self.items: NDArray[np.int64] = np.asarray(items, dtype=np.int64)
        self.wrong: list[bool | None] = []
        self.first_answers: dict[int, bool | None] = {}
        self.given_up = False

    def __repr__(self) -> str:
        return f"SequentialCheck({count(self.answered, 'answer')} of {count(self.terms.pool, 'item')}, {self.state})"

    @property
    def answered(self) -> int:
        """Number of answers."""
        return len(self.wrong)

    @property
    def n_wrong(self) -> int:
        """Number of wrong answers, with the items that could not be labelled."""
        return sum(answer is None or answer for answer in self.wrong)

    @property
    def needed(self) -> int | None:
        """Number of next answers that prove the target if none of them is wrong; 0 if it is proven.

        None if so many are wrong that the check cannot prove its target any more.
        """
        proof = self.terms.proof(self._faults)
        return None if proof is None else max(0, proof - self.answered)

    @property
    def proven(self) -> bool:
        """Whether the target is proven."""
        return not self.given_up and self.needed == 0

    @property
    def state(self) -> str:
        """``"open"``, ``"proven"``, ``"failed"`` (the target cannot be proven any more), or ``"given up"``."""
        if self.given_up:
            return "given up"
        needed = self.needed
        return "failed" if needed is None else "open" if needed else "proven"

    @property
    def _faults(self) -> list[bool]:
        return [answer is None or answer for answer in self.wrong]

    def next(self, number: int = 1) -> NDArray[np.int64]:
        """The next items to answer, in order."""
        return self.items[self.answered : self.answered + whole(number, "number", least=1)].copy()

    def tell(self, wrong: bool | Iterable[bool | None] | None) -> "SequentialCheck":
        """Record the next answers, in the drawn order. Answers after the proof are not taken.

        Args:
            wrong: Whether the next item is wrong, or several of these; None for an item that cannot be labelled, which
                counts as wrong.

        Returns:
            The check itself.

        Raises:
            InvalidTypeError: An answer is not True, False or None.
            InvalidValueError: The check is not open, or there are more answers than items.
        """
        if self.state != "open":
            raise InvalidValueError(f"the check is {self.state} and takes no more answers; draw the next one")
        single = wrong is None or isinstance(wrong, bool | np.bool_ | int | np.integer)
        answers = [_answer(each) for each in (wrong if isinstance(wrong, Iterable) and not single else [wrong])]
        left = len(self.items) - self.answered
        if len(answers) > left:
            raise InvalidValueError(f"only {count(left, 'item')} {is_or_are(left)} left to answer")
        self.wrong += answers
        proof = self.terms.proof(self._faults)
        if proof is not None and proof < self.answered:
            del self.wrong[proof:]
        return self

    def correct(self, position: int, wrong: bool | None) -> "SequentialCheck":
        """Change an answer; the whole check is evaluated again.

        Args:
            position: Its place among the answers, from 0.
            wrong: The new answer.

        Raises:
            InvalidTypeError: The answer is not True, False or None.
            InvalidValueError: There is no such answer.
        """
        if whole(position, "position", least=0) >= self.answered:
            raise InvalidValueError(f"position must be below the {self.answered} answers, not {position!r}")
        answer = _answer(wrong)
        first = self.first_answers.setdefault(position, self.wrong[position])
        if first == answer:
            del self.first_answers[position]
        self.wrong[position] = answer
        return self

    def give_up(self) -> "SequentialCheck":
        """End the check without a proof; its part of the error probability stays spent.

        Raises:
            InvalidValueError: The check is not open.
        """
        if self.state != "open":
            raise InvalidValueError(f"the check is {self.state} already")
        self.given_up = True
        return self

    @property
    def guarantee(self) -> Guarantee | None:
        """What the check has proven; None if it has not."""
        if not self.proven:
            return None
        # After a correction, the target may be proven by fewer answers than were given.
        proof = self.terms.proof(self._faults) or 0
        counted = self.wrong[:proof]
        first = [self.first_answers.get(place, answer) for place, answer in enumerate(self.wrong)]
        at_first = [answer is None or answer for answer in first]
        proof_at_first = self.terms.proof(at_first)
        proven_at_first = proof_at_first is not None and proof_at_first <= self.answered
        return Guarantee.of_proof(
            self.terms,
            sum(answer is True for answer in counted),
            proof,
            confidence=1.0 - self.alpha,
            unlabelable=sum(answer is None for answer in counted),
            corrections=len(self.first_answers),
            wrong_at_first=None if proven_at_first else sum(at_first[:proof]),
            number=self.number,
        )

    def __str__(self) -> str:
        guarantee = self.guarantee
        return sequential_words(self.progress()) if guarantee is None else str(guarantee)

    def _repr_html_(self) -> str:
        """The progress of the check, or what it has proven, for notebooks."""
        guarantee = self.guarantee
        if guarantee is not None:
            return guarantee._repr_html_()
        target = percent_at_most(self.terms.allowed / self.terms.pool)
        rows = [("target", f"at most {target} of {self.terms.pool:,}"), ("planned answers", f"{self.terms.planned:,}")]
        return card(str(self), rows, tone="go on" if self.state == "open" else "undecided")

    def progress(self) -> dict[str, Any]:
        """The progress as JSON values, as for :func:`suffice.presentation.check_words.sequential_words`."""
        return {
            "state": self.state,
            "answered": self.answered,
            "wrong": self.n_wrong,
            "needed": self.needed,
            "allowed": self.terms.allowed,
        }

    def state_dict(self) -> dict[str, Any]:
        """The check as JSON values."""
        return {
            "format": _FORMAT,
            "terms": self.terms.state_dict(),
            "items": self.items.tolist(),
            "number": self.number,
            "alpha": self.alpha,
            "wrong": list(self.wrong),
            "first_answers": [[place, answer] for place, answer in self.first_answers.items()],
            "given_up": self.given_up,
        }

    @staticmethod
    def from_state(saved: Mapping[str, Any]) -> "SequentialCheck":
        """Restore :meth:`state_dict`.

        Args:
            saved: The result of :meth:`state_dict`.

        Raises:
            InvalidValueError: A field is missing or cannot be used.
        """
        if not isinstance(saved, Mapping) or saved.get("format") != _FORMAT:
            raise InvalidValueError(f"a saved SequentialCheck must be a mapping of format {_FORMAT}")
        try:
            terms = SequentialTerms(**known_fields(SequentialTerms, saved["terms"]))
            items = np.asarray(saved["items"])
            if items.ndim != 1 or items.dtype.kind not in "iu":
                raise InvalidValueError("items must be a series of whole numbers")
            check = SequentialCheck(terms, items, number=saved["number"], alpha=saved["alpha"])
            check.wrong = [_answer(each) for each in saved["wrong"]]
            first = {whole(place, "first_answers", least=0): _answer(each) for place, each in saved["first_answers"]}
            given_up = saved["given_up"]
            spent = spent_alpha(check.number, check.alpha)
        except KeyError as error:
            raise InvalidValueError(f"a saved SequentialCheck lacks the field {error.args[0]}") from None
        except (TypeError, ValueError) as error:
            raise InvalidValueError(f"a saved SequentialCheck cannot be used: {error}") from None
        if len(items) != terms.longest or not distinct(items) or check.answered > len(items):
            raise InvalidValueError("a saved SequentialCheck must have the items of its random order, each once")
        if not math.isclose(terms.alpha, spent):
            raise InvalidValueError("the terms of a saved SequentialCheck must have its error probability")
        if not isinstance(given_up, bool) or any(place >= check.answered for place in first):
            raise InvalidValueError("a saved SequentialCheck has a wrong field first_answers or given_up")
        check.first_answers, check.given_up = first, given_up
        return check


def _answer(value: Any) -> bool | None:
    if value is None:
        return None
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | np.integer) and value in (0, 1)):
        return bool(value)
    raise InvalidTypeError(f"an answer must be True (wrong), False (right) or None (cannot be labelled), not {value!r}")
