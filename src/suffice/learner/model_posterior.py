"""The posterior of any fitted model, compared with the posterior of an earlier update."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from suffice.errors import SufficeError
from suffice.learner.pool_model import PoolModel
from suffice.posteriors import PosteriorPair
from suffice.posteriors.fitted_models import ModelPrior, model_prior, same_rows


class KnownPosterior(NamedTuple):
    """The posterior of an update, and the data for computing it.

    Attributes:
        value: The posterior.
        prior: Hyper-parameters and transformers; None for a model whose posterior follows from more than that.
        features: Inputs of the labels.
        labels: The labels.
    """

    value: Any
    prior: ModelPrior | None = None
    features: Any = None
    labels: tuple[Any, ...] = ()


class ComparedPosteriors(NamedTuple):
    """The posterior of an update, and the pair of posteriors for its divergences.

    Attributes:
        known: That of this update.
        pair: The posteriors before and after, under the prior of this update; None if the first is not known.
        why: Why it is not known.
    """

    known: KnownPosterior
    pair: PosteriorPair | None
    why: str = ""


class ModelPosterior:
    """The posterior of a fitted model.

    Args:
        source: The model and its pool.
    """

    def __init__(self, source: PoolModel) -> None:
        self._source = source

    @cached_property
    def _prior(self) -> ModelPrior | str | None:
        """The prior of the model, the reason why there is none, or None if the type of the model is unknown."""
        try:
            return model_prior(self._source.model)
        except SufficeError as error:
            return str(error)

    @property
    def exists(self) -> bool:
        """Whether the model has a posterior."""
        return isinstance(self._prior, ModelPrior) or self._own_posterior is not None

    @property
    def why_missing(self) -> str:
        """Reason why the model has no posterior, with the remedy."""
        if isinstance(self._prior, str):
            return self._prior
        return f"suffice knows none of {self._source.name}; use a rule that reads predictions"

    @property
    def _own_posterior(self) -> Any:
        """The posterior of a model of suffice, or None for other models."""
        model = self._source.model
        return getattr(model, "posterior", None) if type(model).__module__.startswith("suffice") else None

    def compared(
        self, labels: Mapping[int, Any], before: Mapping[int, Any] | None, earlier: KnownPosterior | None
    ) -> ComparedPosteriors:
        """The posterior of the model, and the posterior given the earlier labels with the same prior.

        Args:
            labels: All labels by item.
            before: Those of an earlier update, or None.
            earlier: The posterior of that update, which is used again if the prior has not changed.

        Raises:
            InvalidValueError: There is no posterior after these labels.
        """
        prior = self._prior
        if not isinstance(prior, ModelPrior):
            # A network: its weights depend on how it was trained.
            value = self._own_posterior
            return ComparedPosteriors(
                KnownPosterior(value), None if earlier is None else PosteriorPair(earlier.value, value)
            )
        place = {item: row for row, item in enumerate(dict.fromkeys([*(before or ()), *labels]))}
        features = prior.features(self._source.rows(list(place)))
        rows = np.array([place[item] for item in labels], dtype=np.intp)
        now = rows, list(labels.values())
        why = "" if before is None else prior.absent(list(before.values()))
        if before is None or why:
            (new,) = prior.posteriors(features, [now], own=0)
            pair = None
        else:
            old_rows, old_labels = np.array([place[item] for item in before], dtype=np.intp), list(before.values())
            if (
                earlier is not None
                and earlier.prior == prior
                and earlier.labels == tuple(old_labels)
                and not prior.reduced(features.shape[1])
                and same_rows(earlier.features, features[old_rows])
            ):
                old, (new,) = earlier.value, prior.posteriors(features, [now], own=0)
            else:
                old, new = prior.posteriors(features, [(old_rows, old_labels), now], own=1)
            pair = PosteriorPair(old, new)
        return ComparedPosteriors(KnownPosterior(new, prior, features[rows], tuple(now[1])), pair, why)
