import numpy as np
import pymc as pm
import suffice as sf
from suffice.integrations.draws import posterior_draws

rng = np.random.default_rng(0)
x = rng.normal(size=300)
y = 1.5 * x + rng.normal(size=300)


def sampled(n):
    with pm.Model():
        slope, scale = pm.Normal("slope", 0, 5), pm.HalfNormal("scale", 2)
        pm.Normal("y", slope * x[:n], scale, observed=y[:n])
        result = pm.sample(1000, tune=500, chains=2, cores=1, random_seed=n, progressbar=False)
    return posterior_draws(result, log=["scale"])


rule = sf.ErrorStability(threshold=0.5, calibration=2)
old = sampled(10)
for n in (20, 40, 60, 80):
    new = sampled(n)
    verdict = rule.observe(sf.Step.between(old, new, n_labelled=n))
    old = new
print(verdict)
