"""The terminal labeller: label by keys on the whole screen, or by lines."""

from suffice.cli.labeller.key_handler import label_by_keys
from suffice.cli.labeller.labeller import Labeller, opened_labeller
from suffice.cli.labeller.line_mode import label_by_lines

__all__ = ["Labeller", "label_by_keys", "label_by_lines", "opened_labeller"]
