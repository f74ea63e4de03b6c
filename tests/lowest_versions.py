"""Print the lowest versions that ``pyproject.toml`` allows, one requirement a line, for ``make test-lowest``.

Left out are torch and the packages built on it, which are large, and the tools of developers.
"""

import tomllib
from pathlib import Path

EXTRAS = ("plot", "parquet", "label", "postgres", "web", "research")
#: Packages that only the tests use, together with old versions of the others.
TESTED_WITH = ("httpx", "pandas")


def lowest(project: Path) -> list[str]:
    """The requirements of suffice and of its extras, each fixed to its lower bound."""
    about = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    extras = about["optional-dependencies"]
    listed = [*about["dependencies"], *(each for extra in EXTRAS for each in extras[extra])]
    listed += [each for each in extras["dev"] if each.startswith(TESTED_WITH)]
    return [each.replace(">=", "==") for each in listed if not each.startswith("suffice[")]


if __name__ == "__main__":
    print("\n".join(lowest(Path(__file__).parents[1] / "pyproject.toml")))
