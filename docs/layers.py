"""Draws the layers of suffice, from the import contract and the imports in the code.

From the root of the repository::

    .venv/bin/python docs/layers.py

writes ``docs/images/layers.svg``. Boxes are the layers of the contract in ``pyproject.toml``: a package imports
packages of lower boxes only. Below each package are those that it imports, without those that these import in turn.
"""

import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
FIGURE: Final = ROOT / "docs" / "images" / "layers.svg"
CONTENTS: Final = {
    "cli": "commands, terminal labeller",
    "web": "HTTP server and labelling page",
    "integrations": "adapters to other frameworks",
    "report": "reports and figures",
    "project": "labelling projects: journal, state, export",
    "tables": "files to features and back",
    "testing": "conformance suites for authors",
    "learner": "ActiveLearner, StopMonitor, backends",
    "trace": "recorded runs and their replay",
    "session": "labels in, decisions out, without I/O",
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
    "saved_objects": "objects as JSON and bytes",
    "saved_state": "states with a checksum",
    "numerics": "special functions, Cholesky factors",
    "deprecation": "names of earlier versions",
    "errors": "exceptions",
}
# As wide as a telephone, so that the text can be read there; the layers are below each other.
WIDTH, GAP, MARGIN, PADDING = 400, 8, 6, 10
# Height of a line of each kind, and the most characters of a line.
LINE: Final = {"package": 20, "imports": 17}
LETTERS: Final = 50
STYLE: Final = (
    "text{font-family:system-ui,sans-serif;fill:#1f2933}.package{font-size:14px}"
    ".name{font-weight:600}.imports{font-size:13px;fill:#52606d}"
)


def contract_layers() -> list[list[str]]:
    """Packages of each layer, the highest layer first, as the contract names them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (contract,) = [contract for contract in contracts if contract.get("containers") == ["suffice"]]
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
            packages = {name.split(".")[1] for name in imported if "." in name}
            imports.setdefault(package[0], set()).update(packages - set(package))
    reached: dict[str, set[str]] = {}
    for package in TopologicalSorter(imports).static_order():
        reached[package] = set().union(*({name} | reached[name] for name in imports.get(package, ())))
    return {name: direct - set().union(*(reached[other] for other in direct)) for name, direct in imports.items()}


def _lines(name: str) -> list[tuple[str, str]]:
    """The lines about a package as SVG, each with its kind."""
    used = ", ".join(sorted(direct_imports().get(name, ())))
    imports = wrap(f"imports {used}", LETTERS, subsequent_indent="\u00a0\u00a0") if used else []
    package = f'<tspan class="name">{escape(name)}</tspan>: {escape(CONTENTS[name])}'
    return [("package", package), *(("imports", escape(line)) for line in imports)]


def layers_svg() -> str:
    """The figure."""
    drawn, top = [], MARGIN
    for row in contract_layers():
        texts, y = [], top + PADDING
        for place, name in enumerate(row):
            y += GAP if place else 0
            for kind, text in _lines(name):
                y += LINE[kind]
                texts.append(f'<text class="{kind}" x="{MARGIN + PADDING}" y="{y - 4}">{text}</text>')
        height = y + PADDING - top
        box = f'x="{MARGIN}" y="{top}" width="{WIDTH - 2 * MARGIN}" height="{height}" rx="5"'
        drawn += [f'<rect {box} fill="#eef4f4" stroke="#1b6b62"/>', *texts]
        top += height + GAP
    total = top - GAP + MARGIN
    size = f'viewBox="0 0 {WIDTH} {total}" width="{WIDTH}" height="{total}"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        "<title>Layers of suffice</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{total}" fill="#ffffff"/>',
    ]
    return "\n".join([*head, *drawn, "</svg>", ""])


if __name__ == "__main__":
    FIGURE.write_text(layers_svg(), encoding="utf-8")
