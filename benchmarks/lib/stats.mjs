/** The sample at quantile `q` of sorted samples (nearest rank). */
const at = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] ?? NaN;

/** n, p50, p90, p99 and mean of samples in any unit. */
export const summarize = (samples) => {
  const sorted = Float64Array.from(samples).sort();
  const mean = sorted.reduce((sum, one) => sum + one, 0) / sorted.length;
  return { n: sorted.length, p50: at(sorted, 0.5), p90: at(sorted, 0.9), p99: at(sorted, 0.99), mean };
};

export const median = (samples) => summarize(samples).p50;

/**
 * The median of samples and an interval that has the true median with at least 95 %, by their order
 * alone. With fewer than six samples it is the whole range.
 */
export const medianInterval = (samples) => {
  const sorted = samples.toSorted((a, b) => a - b);
  const n = sorted.length;
  // Probability that fewer than k of n samples lie below the median.
  let [skipped, below, chosen] = [0, 0, 1];
  for (let k = 0; k < Math.floor(n / 2); k += 1) {
    below += chosen * 0.5 ** n;
    if (2 * below > 0.05) break;
    skipped = k;
    chosen = (chosen * (n - k)) / (k + 1);
  }
  return { median: median(sorted), low: sorted[skipped] ?? NaN, high: sorted[n - 1 - skipped] ?? NaN };
};

/** A number for people: three significant digits. */
export const show = (value) => {
  if (!Number.isFinite(value)) return '–';
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
};
