import { show } from './stats.mjs';

/** A table in Markdown. */
export const table = (head, rows) => {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
};

/** The cells of a distribution: its number of samples and its percentiles. */
export const spread = ({ n, p50, p90, p99 }) => [n, show(p50), show(p90), show(p99)];
