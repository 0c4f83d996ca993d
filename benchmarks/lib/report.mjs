import { show } from './stats.mjs';
import { spread, table } from './tables.mjs';
import { renderTurns, TURN_NAMES } from './turn-report.mjs';

/**
 * Of the processors, used by others while we measure: with more than that, figures do not count.
 */
export const TOO_BUSY = 0.3;

const verdictSection = (verdicts) =>
  table(
    ['what', 'measured', 'must', 'goal'],
    verdicts.map(({ what, value, must, goal }) => [what, value, must, goal]),
  );

const NAMES = {
  ...TURN_NAMES,
  litellm: 'LiteLLM',
  antiphon: 'Antiphon',
  raw: 'raw SQL',
  emmett: 'Emmett',
};

const sections = {
  turn: renderTurns,
  'first-frame': ({ rows, unmeasured }) => [
    'From a request to the first of its text, in milliseconds',
    [
      ...(unmeasured ? [`**LiteLLM was not measured: ${unmeasured}.**`] : []),
      table(
        ['subject', 'n', 'p50', 'p90', 'p99'],
        rows.map(({ subject, ms }) => [NAMES[subject], ...spread(ms)]),
      ),
    ].join('\n\n'),
  ],
  events: ({ subscribers, events, ms }) => [
    `An event to ${subscribers} subscribers of one gateway, in milliseconds (${show(events)} events)`,
    table(['n', 'p50', 'p90', 'p99'], [spread(ms)]),
  ],
  tasks: ({ workers, claimsPerSecond, ms }) => [
    `A claim of a task, in milliseconds (${workers} workers, ${show(claimsPerSecond)} claims/s)`,
    table(['n', 'p50', 'p90', 'p99'], [spread(ms)]),
  ],
  agents: ({ modelMs, rows }) => [
    `A turn with a model of ${show(modelMs)} ms, in milliseconds, by the number of working agents`,
    table(
      ['agents', 'n', 'p50', 'p90', 'p99'],
      rows.map(({ agents, ms }) => [agents, ...spread(ms)]),
    ),
  ],
  identity: ({ tables, rows }) => [
    `A turn with and without identity, in milliseconds (row-level security of ${tables} tables)`,
    table(
      ['variant', 'n', 'p50', 'p90', 'p99'],
      rows.map(({ variant, ms }) => [variant, ...spread(ms)]),
    ),
  ],
  files: ({ calls, search, chat }) => [
    "Files: tool calls from the model's answer to its next call, and reads of a chat, in milliseconds",
    [
      table(
        ['tool, 100 KB file', 'n', 'p50', 'p90', 'p99'],
        calls.map(({ tool, ms }) => [tool === 'echo' ? 'echo (WebAssembly)' : tool, ...spread(ms)]),
      ),
      table(
        ['search', 'files', 'n', 'p50', 'p90', 'p99'],
        search.map(({ what, files, ms }) => [what, files, ...spread(ms)]),
      ),
      table(['`.chat`, turns', 'n', 'p50', 'p90', 'p99'], [[chat.turns, ...spread(chat.ms)]]),
    ].join('\n\n'),
  ],
  append: (rows) => [
    'Appending, in milliseconds an append',
    table(
      ['scenario', 'contender', 'n', 'p50', 'p90', 'p99', 'events/s'],
      rows.map((row) => [row.scenario, NAMES[row.contender], ...spread(row.ms), show(row.eventsPerSecond)]),
    ),
  ],
  projections: ({ eventsPerSecond, lag, rebuild }) => [
    `Projections, behind a log that grows by ${show(eventsPerSecond)} events/s, and rebuilt`,
    [
      table(
        ['projection', 'n', 'lag p50, ms', 'p90', 'p99'],
        lag.map(({ name, ms }) => [name, ...spread(ms)]),
      ),
      table(
        ['projection', 'events', 'rebuild, events/s', 'held, ms', 'compare, events/s', 'rows', 'differ'],
        rebuild.map(({ name, events, ms, compareMs, heldMs, rows, differing }) => [
          ...[name, show(events), show((events / ms) * 1_000), show(heldMs)],
          ...[show((events / compareMs) * 1_000), show(rows), differing],
        ]),
      ),
    ].join('\n\n'),
  ],
  route: (rows) => [
    'Routing, in microseconds a route (samples are means of 1,000)',
    table(
      ['bindings', 'n', 'p50', 'p90', 'p99'],
      rows.map(({ bindings, us }) => [show(bindings), ...spread(us)]),
    ),
  ],
  provider: (rows) => [
    'A streamed provider call of twenty deltas, in milliseconds',
    table(
      ['format', 'subject', 'n', 'p50', 'p90', 'p99'],
      rows.flatMap(({ format, bare, ours }) => [
        [format, 'node:http alone', ...spread(bare)],
        [format, 'our adapter', ...spread(ours)],
      ]),
    ),
  ],
  sandbox: ({ layers, rows }) => [
    `A tool in a fresh WebAssembly instance, in milliseconds (layers: ${layers.join(', ')})`,
    table(
      ['tool', 'what', 'n', 'p50', 'p90', 'p99'],
      rows.map(({ tool, what, ms }) => [tool, what, ...spread(ms)]),
    ),
  ],
  'remote-tools': ({ rounds, perSecond, concurrency }) => [
    'A call of a remote tool by a request to the sandbox, in milliseconds, next to the plug-in `echo`',
    [
      table(
        ['tool', 'round', 'n', 'p50', 'p90', 'p99'],
        rounds.flatMap(({ echo, remote }, round) => [
          ['echo, a plug-in', show(round + 1), ...spread(echo)],
          ['remote, in Node', show(round + 1), ...spread(remote)],
        ]),
      ),
      `Calls a second, ${concurrency} at a time, three rounds: ${perSecond.map(show).join(', ')}.`,
    ].join('\n\n'),
  ],
  cli: (rows) => [
    'A command of the CLI, in milliseconds a process',
    table(
      ['command', 'n', 'p50', 'p90', 'p99'],
      rows.map(({ subject, ms }) => [subject, ...spread(ms)]),
    ),
  ],
  growth: (rows) => [
    'A log that grows by sessions of one turn: p50 in milliseconds, memory in MiB, start in seconds',
    [
      table(
        ['sessions', 'events', 'busy after it, s', 'turn', ...Object.keys(rows[0].reads), 'start'],
        rows.map(({ sessions, head, busyS, turn, reads, startMs }) => [
          ...[show(sessions), show(head), show(busyS), show(turn.p50)],
          ...Object.values(reads).map(({ p50 }) => show(p50)),
          show(startMs / 1_000),
        ]),
      ),
      table(
        ['sessions', 'data, MiB', 'WAL, MiB', 'data of a session, KiB', ...Object.keys(rows[0].memory)],
        rows.map(({ sessions, data, wal, memory }) => [
          ...[show(sessions), show(data / 2 ** 20), show(wal / 2 ** 20), show(data / sessions / 1_024)],
          ...Object.values(memory).map(show),
        ]),
      ),
    ].join('\n\n'),
  ],
  start: ({ startsMs, idleMiB }) => [
    'Start and memory',
    table(
      ['what', 'measured'],
      [
        [
          '`npm start -- --detach`, everything cached',
          startsMs.map((ms) => `${show(ms / 1_000)} s`).join(', '),
        ],
        ['idle stack (services, engines, supervisor), shared pages counted once', `${show(idleMiB)} MiB`],
      ],
    ),
  ],
};

const pairs = (record) =>
  Object.entries(record)
    .map(([name, value]) => `${name} ${value}`)
    .join(' · ');

const percent = (share) => `${Math.round(share * 100)} %`;

/** How busy others kept the machine, and what of it spoils the figures. */
const othersLines = (others) => {
  const known = Object.entries(others).filter(([, share]) => share !== undefined);
  if (known.length === 0) return [];
  const spoilt = known.filter(([, share]) => share > TOO_BUSY).map(([part]) => part);
  return [
    `- Processor share of other work: \`${known.map(([part, share]) => `${part} ${percent(share)}`).join(' · ')}\``,
    ...(spoilt.length > 0
      ? [
          `- **The machine was busy: the figures of ${spoilt.join(', ')} do not count. Run it again with nothing else running.**`,
        ]
      : []),
  ];
};

/** The whole report in Markdown. */
export const renderReport = ({ machine, peers, settings, results, verdicts, others }) => {
  const parts = Object.entries(sections).filter(([name]) => results[name] !== undefined);
  return [
    '# Results',
    'Written by `npm run bench`; both sides of every comparison ran in turn, in one run, on one machine and one PostgreSQL server.',
    `- Machine: ${pairs(machine)}`,
    ...(Object.keys(peers).length > 0 ? [`- Peers: \`${pairs(peers)}\``] : []),
    ...(settings ? [`- PostgreSQL: ${pairs(settings)}`] : []),
    ...othersLines(others),
    '',
    verdictSection(verdicts),
    ...parts.flatMap(([name, render]) => {
      const [title, body] = render(results[name]);
      return ['', `## ${title}`, body];
    }),
    '',
  ].join('\n');
};
