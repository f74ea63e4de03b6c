"""A benchmark's result as a Markdown table, printed or put where the documentation shows it."""

import argparse
from collections.abc import Sequence
from pathlib import Path

MEASURED = Path(__file__).parent.parent / "docs" / "measured"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def publish(name: str, text: str, argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help=f"write docs/measured/{name}.md")
    if parser.parse_known_args(argv)[0].write:
        MEASURED.mkdir(parents=True, exist_ok=True)
        (MEASURED / f"{name}.md").write_text(text + "\n")
    print(text)
