"""The terminal labeller: label by keys on the whole screen, or by lines.

The full screen is in :mod:`suffice.cli.labeller.label_app`, which needs Textual; nothing else here does.
"""

from suffice.cli.labeller.labeller import Labeller, opened_labeller
from suffice.cli.labeller.line_mode import label_by_lines

__all__ = ["Labeller", "label_by_lines", "opened_labeller"]
