import type { EngineEntry, StackJson } from './stack-json.js';

type Row = readonly [name: string, pid: string, port: string, url: string];

const HEADER: Row = ['what', 'pid', 'port', 'where'];
const shown = (value: number | null): string => (value === null ? '-' : String(value));

const engineRow = (name: string, engine: EngineEntry, url = engine.address): Row => [
  engine.version === null ? name : `${name} ${engine.version}`,
  shown(engine.pid),
  shown(engine.port),
  engine.external ? `${url} (not ours)` : url,
];

const serviceRows = ({ services, urls }: StackJson): Row[] =>
  Object.entries(services).flatMap(([name, entries]) =>
    entries.map((entry, index): Row => {
      const url = name === 'gateway' ? (urls.gateways[index] ?? '') : '';
      const where =
        url === ''
          ? `http://127.0.0.1:${shown(entry.port)}/readyz`
          : `${url}  ${url.replace(/^http/, 'ws')}/ws`;
      return [entry.id, shown(entry.pid), shown(entry.port), where];
    }),
  );

/** The one table of services and engines, with their pids, ports and URLs, that a start prints. */
export const renderTable = (stack: StackJson): string => {
  const { engines, urls } = stack;
  const rows = [
    HEADER,
    ...serviceRows(stack),
    engineRow('PostgreSQL', engines.postgres),
    engineRow('NATS', engines.nats),
    engineRow('Temporal', engines.temporal, urls.temporalUi ?? engines.temporal.address),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: Row): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return rows.map(line).join('\n');
};
