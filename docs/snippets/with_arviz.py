import arviz as az
import numpy as np
import suffice as sf
from suffice.integrations.draws import posterior_draws

rng = np.random.default_rng(0)
labels = rng.normal(1.0, 2.0, size=500)


def sampled(n):  # replace this by pm.sample(...), or az.from_numpyro(mcmc)
    precision = n / 4.0 + 1.0
    draws = rng.normal(labels[:n].sum() / 4.0 / precision, precision**-0.5, size=(4, 1000))
    return az.from_dict(posterior={"mean": draws})


rule = sf.ErrorStability(threshold=0.2, calibration=3)
old = posterior_draws(sampled(5))
for n in range(10, 500, 5):
    new = posterior_draws(sampled(n))
    verdict = rule.observe(sf.Step.between(old, new, n_labelled=n))
    if verdict.stop:
        break
    old = new
print(verdict, verdict.certificate)
