/** One sample of the Prometheus text format. */
export interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
// A quote without a backslash ends each match, so that none begins within another one.
// eslint-disable-next-line house/linear-regexp
const LABEL = /(?<!\w)([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Reads samples of the Prometheus text format. */
export const parseMetrics = (text: string): readonly Sample[] => {
  const samples: Sample[] = [];
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = LINE.exec(line) ?? [];
    if (name === undefined || line.startsWith('#')) continue;
    const pairs = [...labels.matchAll(LABEL)].map(([, key, text]) => [key ?? '', text ?? ''] as const);
    samples.push({ name, labels: new Map(pairs), value: Number(value) });
  }
  return samples;
};

export interface Histogram {
  readonly name: string;
  readonly labels: string;
  readonly count: number;
  readonly mean: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

interface Buckets {
  readonly name: string;
  readonly labels: string;
  readonly bounds: (readonly [number, number])[];
  sum: number;
  count: number;
}

/** Returns the labels of a sample as text. */
export const labelsOf = ({ labels }: Sample): string =>
  [...labels]
    .filter(([key]) => key !== 'le')
    .map(([key, value]) => `${key}=${value}`)
    .join(' ');

/** Returns the value below which a share of the observations lies, by linear interpolation. */
const quantile = ({ bounds, count }: Buckets, share: number): number => {
  const wanted = count * share;
  let [lower, below] = [0, 0];
  for (const [bound, cumulative] of bounds) {
    if (cumulative >= wanted) {
      if (!Number.isFinite(bound)) return lower;
      const within = cumulative === below ? 1 : (wanted - below) / (cumulative - below);
      return lower + (bound - lower) * within;
    }
    [lower, below] = [bound, cumulative];
  }
  return lower;
};

/** Returns the histograms of the samples with their quantiles. */
export const histogramsOf = (samples: readonly Sample[]): readonly Histogram[] => {
  const found = new Map<string, Buckets>();
  for (const sample of samples) {
    const [, name, part] = /^(.*)_(bucket|sum|count)$/.exec(sample.name) ?? [];
    if (name === undefined) continue;
    const labels = labelsOf(sample);
    const key = `${name} ${labels}`;
    const buckets = found.get(key) ?? { name, labels, bounds: [], sum: 0, count: 0 };
    found.set(key, buckets);
    if (part === 'sum') buckets.sum = sample.value;
    else if (part === 'count') buckets.count = sample.value;
    else
      buckets.bounds.push([
        Number((sample.labels.get('le') ?? '').replace('+Inf', 'Infinity')),
        sample.value,
      ]);
  }
  return [...found.values()]
    .filter(({ bounds, count }) => bounds.length > 0 && count > 0)
    .map((buckets) => ({
      name: buckets.name,
      labels: buckets.labels,
      count: buckets.count,
      mean: buckets.sum / buckets.count,
      p50: quantile(buckets, 0.5),
      p95: quantile(buckets, 0.95),
      p99: quantile(buckets, 0.99),
    }));
};

/** Returns single values: gauges and counters. */
export const valuesOf = (samples: readonly Sample[]): readonly Sample[] =>
  samples.filter(({ name }) => !/_(bucket|sum|count)$/.test(name) && name !== 'target_info');
