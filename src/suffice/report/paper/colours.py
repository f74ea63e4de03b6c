"""The colours of the paper's figures."""

from types import MappingProxyType
from typing import Final

#: The paper's colours of the models, dark enough for a thin line on white.
COLOURS: Final = MappingProxyType({"gpr": "#c0272d", "brr": "#2e7d32", "blr": "#1f5fbf", "bdnn": "#7b2d8e"})
#: Of the paper's thresholds, the largest first.
STOPS: Final = ("#9aa5b1", "#616e7c", "#1f2933")
