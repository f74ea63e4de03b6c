"""Draws the layers of the package, from the import contract and the imports in the code.

From the root of the repository::

    .venv/bin/python docs/layers.py

writes ``docs/images/layers.svg``. Rows are the layers of the contract in ``pyproject.toml``: a package imports packages
of lower rows only. Each box names the packages that it imports, without those that these import in turn.
"""

import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from html import escape
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
FIGURE: Final = ROOT / "docs" / "images" / "layers.svg"
CONTENTS: Final = {
    "cli": "commands, terminal labeller",
    "web": "HTTP server and labelling page",
    "integrations": "adapters to other frameworks",
    "research": "paper, comparison of rules, data sets",
    "report": "reports and figures",
    "project": "labelling projects: journal, state, export",
    "tables": "files to features and back",
    "recommendation": "costs to a stopping rule",
    "testing": "conformance suites for authors",
    "learner": "ActiveLearner, StopMonitor, backends",
    "trace": "recorded runs and their replay",
    "decision": "keep labelling, stop, or change the model",
    "acquisition": "which item to label next",
    "engines": "pools: memory, disk, GPU, workers",
    "criteria": "stopping rules: a Step in, a Verdict out",
    "models": "Bayesian models for scikit-learn",
    "divergence": "kl(p, q) and its registry",
    "posteriors": "frozen posteriors",
    "bounds": "KL divergence to error bound",
    "checks": "random check to guarantee",
    "forecast": "curve to number of labels left",
    "presentation": "sentences, numbers, charts",
    "arguments": "argument validation",
    "files": "files written completely or not at all",
    "numerics": "special functions, Cholesky factors",
    "errors": "exceptions",
}
WIDTH, GAP, HEIGHT, MARGIN = 900, 10, 56, 10
STYLE: Final = (
    "text{font-family:system-ui,sans-serif;fill:#1f2933}.name{font-size:14px;font-weight:600}"
    ".contents{font-size:12px}.imports{font-size:11px;fill:#52606d}"
)


def contract_layers() -> list[list[str]]:
    """Packages of each layer, the highest layer first, as the contract names them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [each for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    rows = [
        "".join(letter if letter.isalnum() or letter == "_" else " " for letter in row) for row in contract["layers"]
    ]
    return [row.split() for row in rows if row != "__main__"]


@cache
def direct_imports() -> dict[str, set[str]]:
    """The packages that each package imports and that none of its other imports imports, directly or not."""
    sys.path.insert(0, str(ROOT))
    from tests.structure import read_structure  # noqa: PLC0415 - found from here on

    imports: dict[str, set[str]] = {}
    for module, imported in read_structure(ROOT / "src").imports.items():
        if package := module.split(".")[1:2]:
            found = {name.split(".")[1] for name in imported if "." in name}
            imports.setdefault(package[0], set()).update(found - set(package))
    reached: dict[str, set[str]] = {}
    for package in TopologicalSorter(imports).static_order():
        reached[package] = set().union(*({name} | reached[name] for name in imports.get(package, ())))
    return {name: found - set().union(*(reached[other] for other in found)) for name, found in imports.items()}


def layers_svg() -> str:
    """The figure."""
    rows, imports = contract_layers(), direct_imports()
    total = MARGIN * 2 + len(rows) * (HEIGHT + GAP) - GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" role="img">',
        "<title>Layers of suffice</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{total}" fill="#ffffff"/>',
    ]
    for place, row in enumerate(rows):
        width = (WIDTH - 2 * MARGIN - GAP * (len(row) - 1)) / len(row)
        top = MARGIN + place * (HEIGHT + GAP)
        for column, name in enumerate(row):
            left = MARGIN + column * (width + GAP)
            used = ", ".join(sorted(imports.get(name, ())))
            texts = [("name", name), ("contents", CONTENTS[name]), ("imports", f"imports {used}" if used else "")]
            box = f'x="{left:.0f}" y="{top}" width="{width:.0f}" height="{HEIGHT}" rx="5"'
            lines.append(f'<rect {box} fill="#eef4f4" stroke="#1b6b62"/>')
            lines += [
                f'<text class="{kind}" x="{left + 10:.0f}" y="{top + 17 + 16 * line}">{escape(text)}</text>'
                for line, (kind, text) in enumerate(texts)
                if text
            ]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    FIGURE.write_text(layers_svg(), encoding="utf-8")
