"""Sentence embeddings by the real library, with a tiny model made on the spot: nothing is downloaded."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

MAKE = """
import sys
from pathlib import Path
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

folder = Path(sys.argv[1])
torch.manual_seed(0)
words = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the a was great awful".split()
(folder / "vocab.txt").write_text("\\n".join(words))
BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
sizes = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
BertModel(BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder)
"""

READ = """
import sys
from pathlib import Path
import numpy as np
from suffice.errors import SufficeError
from suffice.project.read_items import ReadingOptions, read_items

options = dict(text="review", classes=("good", "bad"))
items = read_items(Path(sys.argv[2]), ReadingOptions(embed=sys.argv[1], **options))
texts = [cells[0] for cells in items.cells]
same = [k for k, text in enumerate(texts) if text == texts[0]]
assert len(same) > 1 and np.allclose(items.X[same], items.X[0])
assert items.X.shape[1] > 1 and not np.allclose(items.X[0], items.X[1])
assert any("embeddings by" in note for note in items.notes), items.notes
try:
    read_items(Path(sys.argv[2]), ReadingOptions(embed="no-such/model", **options))
except SufficeError as error:
    assert "no-such/model" in str(error) and "the folder of one" in str(error), error
else:
    raise SystemExit("a model that is not there was taken")
print("read", len(items))
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="sentence-transformers is not installed")
def test_texts_become_embeddings_of_a_real_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model, data = tmp_path / "model", tmp_path / "reviews.csv"
    model.mkdir()
    reviews = ["the film was good", "bad film", "great", "awful film was the", "a good film"] * 6
    data.write_text("review,stars\n" + "".join(f"{review},{k % 5}\n" for k, review in enumerate(reviews)))
    # In a process of its own: these libraries warn in ways that are not ours to forbid.
    command = [sys.executable, "-c", MAKE + READ, str(model), str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "read 30"
