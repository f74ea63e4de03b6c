"""Items and features as they lie in the database."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from suffice.session.database import features_table, items_table
from suffice.session.items import Item, Items
from suffice.session.places import Connection, sa
from suffice.session.settings import Settings
from suffice.special import Floats

# Bytes of features in one value: SQLite takes up to a gigabyte, PostgreSQL too, and both want it in memory whole.
_BLOCK = 2**24
# Names in one question; SQLite takes no more than 32,766.
_AT_ONCE = 5000


def write_contents(connection: Connection, items: Items) -> None:
    """Write items and their features."""
    rows = [
        {"position": k, "id": name, "cells": json.dumps(cells, ensure_ascii=False)}
        for k, (name, cells) in enumerate(zip(items.ids, items.cells, strict=True))
    ]
    connection.execute(sa.insert(items_table), rows)
    X = np.ascontiguousarray(items.X, dtype="<f8")
    rows_at_once = max(1, _BLOCK // (8 * X.shape[1]))
    for k, start in enumerate(range(0, len(X), rows_at_once)):
        block = {"block": k, "width": X.shape[1], "numbers": X[start : start + rows_at_once].tobytes()}
        connection.execute(sa.insert(features_table), block)


def read_features(connection: Connection, size: int) -> Floats:
    """Features of all items, ``n x D``.

    Raises:
        ValueError: They are not of so many items.
    """
    found = connection.execute(sa.select(features_table).order_by(features_table.c.block))
    blocks = [np.frombuffer(row.numbers, dtype="<f8").reshape(-1, int(row.width)) for row in found]
    X = np.concatenate(blocks).astype(np.float64)
    if len(X) != size:
        raise ValueError(f"features of {len(X)} items, and there are {size}")
    return X


def read_items_at(connection: Connection, positions: Sequence[int], settings: Settings) -> list[Item]:
    """Items at some positions, in that order."""
    found: dict[int, Any] = {}
    wanted = list(dict.fromkeys(positions))
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        rows = connection.execute(sa.select(items_table).where(items_table.c.position.in_(part)))
        found.update((int(row.position), row) for row in rows)
    return [_item(found[position], settings) for position in positions]


def count_items(connection: Connection) -> int:
    """Number of items."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(items_table)).scalar_one())


def _item(row: Any, settings: Settings) -> Item:
    cells = tuple(zip(settings.columns, json.loads(row.cells), strict=True))
    image = dict(cells).get(settings.main or "") if settings.shown == "image" else None
    return Item(int(row.position), row.id, cells, image)
