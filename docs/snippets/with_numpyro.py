import jax
import numpy as np
import numpyro
import suffice as sf
from numpyro import distributions as dist
from suffice.integrations.draws import posterior_draws

rng = np.random.default_rng(0)
x = rng.normal(size=300)
y = 1.5 * x + rng.normal(size=300)


def model(x, y):
    slope, scale = numpyro.sample("slope", dist.Normal(0, 5)), numpyro.sample("scale", dist.HalfNormal(2))
    numpyro.sample("y", dist.Normal(slope * x, scale), obs=y)


def sampled(n):
    mcmc = numpyro.infer.MCMC(numpyro.infer.NUTS(model), num_warmup=300, num_samples=1000, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(n), x[:n], y[:n])
    return posterior_draws(mcmc, log=["scale"])


rule = sf.ErrorStability(threshold=0.5, calibration=2)
old = sampled(10)
for n in (20, 40, 60, 80):
    new = sampled(n)
    verdict = rule.observe(sf.Step.between(old, new, n_labelled=n))
    old = new
print(verdict)
