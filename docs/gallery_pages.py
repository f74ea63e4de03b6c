"""The gallery: pages and notebooks from ``docs/examples``, and the runs that make their output and figures.

An example is a Python file of cells: ``# %% [markdown]`` begins text in comments, ``# %%`` code. As a Sphinx extension,
this module writes a page and a notebook of each before the build, to ``docs/gallery``. As a program, it runs examples::

    .venv/bin/python docs/gallery_pages.py --write [NAME ...]

``--write`` stores what they print as ``docs/examples/NAME.txt`` and the figure as ``docs/images/gallery-NAME.png``.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import Any, Final, NamedTuple

from generated_pages import asked_names, before_build, write_changed

DOCS: Final = Path(__file__).parent
#: The examples in the order of the gallery.
NAMES: Final = (
    "texts",
    "images",
    "measurements",
    "whole_data_set",
    "check_predictions",
    "screening",
    "network",
    "framework",
    "optimisation",
    "large_pool",
)
# Python looks for modules in the working directory first, as it does for a file that is run from its own folder.
_PROGRAM: Final = """
import runpy, sys

runpy.run_path(sys.argv[1], run_name="__main__")
from matplotlib import pyplot as plt

plt.gcf().axes or sys.exit("it draws no figure")
plt.savefig(sys.argv[2], dpi=110, metadata={"Software": None})
"""


class Cell(NamedTuple):
    """A part of an example: text in Markdown, or code."""

    is_text: bool
    source: str


def cells(name: str) -> list[Cell]:
    """Read an example."""
    found = []
    for part in re.split(r"^# %%", (DOCS / "examples" / f"{name}.py").read_text(encoding="utf-8"), flags=re.M)[1:]:
        kind, _, source = part.partition("\n")
        is_text = "[markdown]" in kind
        found.append(Cell(is_text, (re.sub(r"^# ?", "", source, flags=re.M) if is_text else source).strip()))
    return found


def run(name: str, picture: Path) -> str:
    """Run a copy of an example as a program from the folder of all examples.

    Args:
        name: The example.
        picture: Where to store its figure.

    Returns:
        What it prints.

    Raises:
        RuntimeError: It failed, or it drew nothing.
    """
    with TemporaryDirectory() as place:
        folder = Path(place, "examples")
        shutil.copytree(DOCS / "examples", folder)
        command = [sys.executable, "-c", _PROGRAM, f"{name}.py", str(picture.absolute())]
        variables = {**os.environ, "MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError(f"the example {name} failed:\n{done.stderr}")
    return done.stdout


def page(name: str) -> str:
    """Return the page of an example, in Markdown: text and code, then what is printed, and the figure."""
    title, *rest = [cell.source if cell.is_text else f"```python\n{cell.source}\n```" for cell in cells(name)]
    links = f"Download: {{download}}`notebook <{name}.ipynb>`,\n{{download}}`Python file <../examples/{name}.py>`"
    printed = (DOCS / "examples" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    output = "\n".join(fill(line, 88, subsequent_indent="  ") for line in printed)
    figure = f"![Figure of the example: see the labels of its axes](../images/gallery-{name}.png)"
    return "\n\n".join([title, links, *rest, "It prints:", f"```text\n{output}\n```", figure]) + "\n"


def notebook(name: str) -> str:
    """Return the notebook of an example; the last cell has the output of all."""
    printed = (DOCS / "examples" / f"{name}.txt").read_text(encoding="utf-8")
    picture = b64encode((DOCS / "images" / f"gallery-{name}.png").read_bytes()).decode()
    made: list[dict[str, Any]] = []
    for k, cell in enumerate(cells(name)):
        kind = "markdown" if cell.is_text else "code"
        made.append({"cell_type": kind, "id": f"{name}-{k}", "metadata": {}, "source": cell.source})
        if not cell.is_text:
            made[-1] |= {"execution_count": None, "outputs": []}
    made[-1]["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": printed},
        {"output_type": "display_data", "data": {"image/png": picture}, "metadata": {}},
    ]
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def write_pages(_: Any = None) -> None:
    """Write pages and notebooks where they changed."""
    for name in NAMES:
        write_changed(DOCS / "gallery", {f"{name}.md": page(name).encode(), f"{name}.ipynb": notebook(name).encode()})


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before the build."""
    return before_build(app, write_pages)


def main() -> None:
    """Run the examples that are asked for."""
    names, write = asked_names(__doc__, NAMES)
    for name in names:
        with TemporaryDirectory() as folder:
            picture = Path(folder, "figure.png")
            printed = run(name, picture)
            print(f"{name}\n{printed}", flush=True)
            if write:
                (DOCS / "examples" / f"{name}.txt").write_text(printed, encoding="utf-8")
                shutil.copy(picture, DOCS / "images" / f"gallery-{name}.png")


if __name__ == "__main__":
    main()
