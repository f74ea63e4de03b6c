"""Twenty people label 100,000 rows through the page's server for a minute: how long do they wait, is anything lost?

The server is the command itself, in a process of its own; the people are in another. Everything stays on this machine.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import asyncio
import csv
import json
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np

from suffice.project import open_project
from suffice.project.events import EventKind
from tables import publish, table

PEOPLE, SECONDS, ROWS, COLUMNS = 20, 60.0, 100_000, 10


@dataclass
class Seen:
    """What the people saw: seconds waited for each kind of answer, and the labels that were acknowledged."""

    next: list[float] = field(default_factory=list)
    label: list[float] = field(default_factory=list)
    acknowledged: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def write_rows(path: Path) -> None:
    """Made-up rows whose class a line through two of the columns tells, nearly."""
    X = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"x{k}" for k in range(COLUMNS)])
        writer.writerows(np.round(X, 4).tolist())


def answer(item: dict[str, Any]) -> str:
    """What a person says of an item, wrong now and then."""
    values = {cell["name"]: float(cell["value"]) for cell in item["cells"]}
    return "yes" if values["x0"] + 0.5 * values["x1"] + 0.3 * np.sin(7.0 * values["x2"]) > 0.0 else "no"


async def person(client: httpx.AsyncClient, name: str, until: float, thinking: float, seen: Seen) -> None:
    rng = np.random.default_rng([int(name.rsplit(maxsplit=1)[-1]), 1])
    while time.monotonic() < until:
        start = time.perf_counter()
        reply = await client.post("/api/next", json={"person": name})
        seen.next.append(time.perf_counter() - start)
        if reply.status_code != 200 or not reply.json()["items"]:
            seen.failures.append(f"next: {reply.status_code} {reply.text[:200]}")
            continue
        item = reply.json()["items"][0]
        if thinking:
            await asyncio.sleep(rng.exponential(thinking))
        request = str(uuid.uuid4())
        start = time.perf_counter()
        sent = {"person": name, "item": item["item"], "label": answer(item), "request": request}
        reply = await client.post("/api/labels", json=sent)
        seen.label.append(time.perf_counter() - start)
        if reply.status_code == 200:
            seen.acknowledged[request] = item["item"]
        else:
            seen.failures.append(f"label: {reply.status_code} {reply.text[:200]}")


async def everybody(url: str, token: str, thinking: float, seconds: float) -> tuple[Seen, dict[str, Any]]:
    seen = Seen()
    limits = httpx.Limits(max_connections=PEOPLE + 2, max_keepalive_connections=PEOPLE + 2)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=60.0) as client:
        until = time.monotonic() + seconds
        await asyncio.gather(*(person(client, f"person {k}", until, thinking, seen) for k in range(PEOPLE)))
        status = (await client.get("/api/status")).json()
    return seen, status


def measured(folder: Path, data: Path, thinking: float, seconds: float) -> list[str]:
    place = folder / f"thinking-{thinking}.suffice"
    options = ["--classes", "no,yes", "--project", str(place), "--port", "0", "--json"]
    command = [str(Path(sys.executable).with_name("suffice")), "serve", str(data), *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        ready = json.loads(server.stdout.readline())
        url = ready["url"].partition("?")[0]
        seen, status = asyncio.run(everybody(url, ready["token"], thinking, seconds))
    finally:
        server.terminate()
        server.wait(timeout=60)
    with open_project(place) as project:
        written = [event for event in project.events() if event.kind is EventKind.labelled]
    requests = [event.request for event in written]
    items = [event.item for event in written]
    lost = [request for request in seen.acknowledged if request not in set(requests)]
    doubled = len(requests) - len(set(requests)) + len(items) - len(set(items))
    for failure in seen.failures[:3]:
        print(failure, file=sys.stderr)
    waits = np.array(seen.next) * 1e3
    labels = np.array(seen.label) * 1e3
    return [
        f"{thinking:g} s" if thinking else "none",
        f"{len(seen.acknowledged)}",
        f"{np.median(waits):.0f} / {np.quantile(waits, 0.95):.0f} / {waits.max():.0f}",
        f"{np.median(labels):.0f} / {np.quantile(labels, 0.95):.0f} / {labels.max():.0f}",
        f"{len(lost)} / {doubled}",
        f"{len(seen.failures)}",
        f"{status['behind']}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_known_args()[0]
    with TemporaryDirectory() as folder:
        data = Path(folder) / "rows.csv"
        write_rows(data)
        rows = [measured(Path(folder), data, thinking, options.seconds) for thinking in (1.0, 0.0)]
    names = ["thinking", "labels", "next: median / 95 % / longest, ms", "label: the same, ms", "lost / doubled"]
    publish("labelling-load", table([*names, "refused", "not learned at the end"], rows))


if __name__ == "__main__":
    main()
