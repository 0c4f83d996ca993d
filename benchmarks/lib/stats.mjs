/** The sample at quantile `q` of sorted samples (nearest rank). */
const at = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] ?? NaN;

/** n, p50, p90, p99 and mean of samples in any unit. */
export const summarize = (samples) => {
  const sorted = Float64Array.from(samples).sort();
  const mean = sorted.reduce((sum, one) => sum + one, 0) / sorted.length;
  return { n: sorted.length, p50: at(sorted, 0.5), p90: at(sorted, 0.9), p99: at(sorted, 0.99), mean };
};

export const median = (samples) => summarize(samples).p50;

/** A number for people: three significant digits. */
export const show = (value) => {
  if (!Number.isFinite(value)) return '–';
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
};
