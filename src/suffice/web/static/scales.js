// From numbers to places on a drawing, and the numbers worth writing beside an axis.

/**
 * A scale over some values.
 * @param {number[]} values - What it must hold.
 * @param {[number, number]} range - Places of the smallest and the largest.
 * @param {{log?: boolean, zero?: boolean, air?: number}} options - log: where all values are positive; zero: start
 *   there; air: share of the range that is left free beyond the values.
 * @returns A function from value to place, with its domain and whether it is logarithmic.
 */
export function scaleFor(values, range, { log = false, zero = false, air = 0 } = {}) {
  const finite = values.filter(Number.isFinite);
  let [low, high] = [Math.min(...finite), Math.max(...finite)];
  if (!finite.length) [low, high] = [0, 1];
  const logarithmic = log && low > 0;
  if (zero) low = Math.min(0, low);
  if (low === high) [low, high] = logarithmic ? [low / 2, high * 2] : [low - (zero ? 0 : 1), high + 1];
  const bend = logarithmic ? Math.log10 : (value) => value;
  const room = (bend(high) - bend(low)) * air;
  const [from, to] = [bend(low) - (zero && low === 0 ? 0 : room), bend(high) + room];
  const scale = (value) => range[0] + ((bend(value) - from) / (to - from)) * (range[1] - range[0]);
  return Object.assign(scale, { domain: logarithmic ? [10 ** from, 10 ** to] : [from, to], logarithmic });
}

/** Round numbers within a scale's domain, about so many. */
export function ticksOf(scale, about = 5, { whole = false } = {}) {
  const [low, high] = scale.domain;
  return scale.logarithmic ? logTicks(low, high, about) : evenTicks(low, high, about, whole);
}

function evenTicks(low, high, about, whole) {
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
  if (whole) step = Math.max(1, Math.round(step));
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) {
    ticks.push(Number((at * step).toPrecision(12)));
  }
  return ticks;
}

function logTicks(low, high, about) {
  const all = (factors, every = 1) => {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      if (power % every) continue;
      for (const factor of factors) {
        const tick = Number(`${factor}e${power}`);
        if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
      }
    }
    return ticks;
  };
  const choices = [all([1, 2, 3, 4, 5, 6, 7, 8, 9]), all([1, 2, 5]), all([1, 3]), all([1]), all([1], 2), all([1], 5)];
  return choices.find((ticks) => ticks.length <= about + 2) ?? all([1], 50);
}
