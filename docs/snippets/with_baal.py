import torch
from baal import ActiveLearningDataset, ModelWrapper
from baal.active.heuristics import BALD
from baal.bayesian.dropout import patch_module
from baal.experiments.base import ActiveLearningExperiment
from baal.modelwrapper import TrainingArgs
from sklearn.datasets import load_digits
from suffice.integrations.baal import BaalCriterion

X, y = load_digits(return_X_y=True)
images, classes = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
data = ActiveLearningDataset(torch.utils.data.TensorDataset(images[:1000], classes[:1000]), random_state=0)
data.label_randomly(50)
test = torch.utils.data.TensorDataset(images[1000:], classes[1000:])
torch.manual_seed(0)
layers = [torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(64, 10)]
network = patch_module(torch.nn.Sequential(*layers))
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
args = TrainingArgs(optimizer, epoch=30, criterion=torch.nn.CrossEntropyLoss(), workers=0, use_cuda=False)
model = ModelWrapper(network, args)

criterion = BaalCriterion(data, model, label_cost=1.0, mistake_cost=1.0)
ActiveLearningExperiment(model, data, test, BALD(), query_size=50, criterion=criterion).start()
print(criterion.verdict)
