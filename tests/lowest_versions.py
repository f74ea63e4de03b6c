"""Print the lowest versions that suffice and suffice-research allow, one requirement a line, for ``make test-lowest``.

Left out are torch and the packages built on it, which are large, and the tools of developers.
"""

import tomllib
from pathlib import Path

EXTRAS = ("plot", "parquet", "excel", "label", "postgres", "web")
#: Packages that only the tests use, together with old versions of the others.
TESTED_WITH = ("httpx", "pandas")


def lowest(root: Path) -> list[str]:
    """The requirements of suffice, of its extras and of suffice-research, each fixed to its lower bound."""
    suffice, research = (
        tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in (root, root / "research")
    )
    extras = suffice["optional-dependencies"]
    listed = [*suffice["dependencies"], *(requirement for extra in EXTRAS for requirement in extras[extra])]
    listed += [requirement for requirement in extras["dev"] if requirement.startswith(TESTED_WITH)]
    listed += research["dependencies"]
    return [requirement.replace(">=", "==") for requirement in listed if not requirement.startswith("suffice[")]


if __name__ == "__main__":
    print("\n".join(lowest(Path(__file__).parents[1])))
