import optuna

from suffice.integrations.optuna import StoppingCallback


def objective(trial):
    x, kind = trial.suggest_float("x", -2.0, 2.0), trial.suggest_categorical("kind", ["plain", "shifted"])
    return (x - 0.5) ** 2 + (0.3 if kind == "shifted" else 0.0)


callback = StoppingCallback()
study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(objective, n_trials=100, callbacks=[callback])
print(callback.verdict, study.best_params)
