import suffice as sf
import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

texts = [f"{'good' if k % 3 else 'bad'} text {k % 40}" for k in range(300)]
labels = torch.tensor([int(k % 3 > 0) for k in range(300)])  # replace these by the annotator
torch.manual_seed(0)
# A tiny model without a download. For your texts, the tokenizer and the model come from_pretrained(...).
tokenizer = BertTokenizer(
    {word: k for k, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad"])}
)
size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
model = BertForSequenceClassification(BertConfig(vocab_size=len(tokenizer), **size))


@torch.no_grad()
def predict(model, part):
    return model.eval()(**tokenizer(list(part), padding=True, return_tensors="pt")).logits.softmax(dim=1).numpy()


monitor = sf.StopMonitor(texts, predict=predict)
for n in range(20, 300, 20):
    optimiser, inputs = (
        torch.optim.AdamW(model.train().parameters(), 0.01),
        tokenizer(texts[:n], padding=True, return_tensors="pt"),
    )
    for _ in range(20):
        optimiser.zero_grad()
        model(**inputs, labels=labels[:n]).loss.backward()
        optimiser.step()
    if monitor.update(model, range(n), labels[:n].numpy(), random=range(n)).stop:
        break
print(monitor.decision())
