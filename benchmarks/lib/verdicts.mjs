import { median, show } from './stats.mjs';
import { ratiosOfRounds } from './turn-report.mjs';

/**
 * One line of the design's table: what was measured, against what "must" be (it closes an issue)
 * and what the "goal" is. `atMost` false means more is better.
 */
const verdict = (what, value, { must, goal, atMost = true, unit = '×' }) => {
  const holds = (limit) => (atMost ? value <= limit : value >= limit);
  const sign = atMost ? '≤' : '≥';
  const say = (limit) =>
    limit === undefined ? '–' : `${holds(limit) ? 'yes' : 'NO'} (${sign} ${show(limit)})`;
  return {
    what,
    value: `${show(value)} ${unit}`,
    must: say(must),
    goal: say(goal),
    holds: must === undefined || holds(must),
  };
};

const find = (rows, scenario, key, name) =>
  rows.find((row) => row[key] === name && (row.scenario ?? row.name) === scenario);

const PLAIN = 'no tools, one after another';
const WITH_TOOLS = 'two tool calls, one after another';
const IN_LANES = 'no tools, 32 sessions';

/** Figures compared with the fastest peers. They have no bound: they show where we are behind. */
const fastestPeerVerdicts = (rows) => {
  const added = (scenario, peer) => median(ratiosOfRounds(rows, scenario, peer, 'added'));
  const rate = (scenario, peer) => median(ratiosOfRounds(rows, scenario, peer, 'rate'));
  return [
    ['restate', 'Restate'],
    ['dbos-lean', 'DBOS, lean'],
  ].flatMap(([peer, name]) => [
    verdict(`turn without tools: added time, compared with ${name}`, added(PLAIN, peer), { goal: 1 }),
    verdict(`turn with two tool calls: added time, compared with ${name}`, added(WITH_TOOLS, peer), {
      goal: 1,
    }),
    verdict(`turns a second, 32 sessions, no tools, compared with ${name}`, rate(IN_LANES, peer), {
      ...{ goal: peer === 'restate' ? 0.8 : 1, atMost: false },
    }),
  ]);
};

/** Ratios are medians of the rounds; the report has their intervals. */
const turnVerdicts = (rows) => {
  const added = (scenario, peer) => median(ratiosOfRounds(rows, scenario, peer, 'added'));
  const ours = find(rows, PLAIN, 'subject', 'antiphon-turn');
  return [
    verdict(
      'turn without tools: time added to the provider call, p50, compared with LangGraph.js',
      added(PLAIN, 'langgraph'),
      { must: 1, goal: 3 / 4 },
    ),
    verdict(
      'the same, in the compact form (`--compact`)',
      median(ratiosOfRounds(rows, PLAIN, 'langgraph', 'added', 'antiphon-compact')),
      { must: 1, goal: 3 / 4 },
    ),
    verdict(
      "turn without tools, compared with LangGraph.js that saves before each step (durability 'sync')",
      added(PLAIN, 'langgraph-sync'),
      { must: 1, goal: 3 / 4 },
    ),
    verdict(
      'turn with two tool calls: added time, compared with LangGraph.js',
      added(WITH_TOOLS, 'langgraph'),
      { must: 1, goal: 0.8 },
    ),
    verdict(
      'turns a second, 32 sessions, no tools, compared with LangGraph.js',
      median(ratiosOfRounds(rows, IN_LANES, 'langgraph', 'rate')),
      { must: 2.5, goal: 3, atMost: false },
    ),
    verdict('processor time of a turn without tools, all processes', ours.ownMs + ours.databaseMs, {
      ...{ must: 9, goal: 7, unit: 'ms' },
    }),
    ...fastestPeerVerdicts(rows),
  ];
};

/** Returns a failed verdict for a figure that was not measured. */
const unmeasured = (what, { must, goal, sign = '≤' }) => ({
  what,
  value: 'not measured',
  must: `– (${sign} ${show(must)})`,
  goal: `– (${sign} ${show(goal)})`,
  holds: false,
});

const firstFrameVerdicts = ({ rows, unmeasured: why }) =>
  ['p50', 'p99'].map((quantile) => {
    const what = `first text after the request, less the provider's own, ${quantile}, compared with LiteLLM`;
    const limits = quantile === 'p50' ? { must: 0.45, goal: 1 / 3 } : { must: 1, goal: 0.45 };
    if (why !== undefined) return unmeasured(what, limits);
    const at = (name) => rows.find(({ subject }) => subject === name).ms[quantile];
    const bare = at('bare-provider');
    return verdict(what, (at('antiphon-turn') - bare) / (at('litellm') - bare), limits);
  });

const appendRatio = (rows, scenario, peer) => {
  const rate = (name) => find(rows, scenario, 'contender', name).eventsPerSecond;
  return rate('antiphon') / rate(peer);
};

const appendVerdicts = (rows) => [
  verdict(
    'append, 32 writers, compared with Emmett',
    appendRatio(rows, '32 writers, one event each', 'emmett'),
    {
      must: 4,
      goal: 6,
      atMost: false,
    },
  ),
  verdict(
    'append, 32 writers, compared with raw inserts',
    appendRatio(rows, '32 writers, one event each', 'raw'),
    {
      goal: 2,
      atMost: false,
    },
  ),
  verdict(
    'append, one writer, compared with raw inserts',
    appendRatio(rows, 'one writer, one event', 'raw'),
    {
      must: 0.55,
      goal: 0.7,
      atMost: false,
    },
  ),
  verdict(
    'append, 500 events at once, compared with raw unnest',
    appendRatio(rows, 'one writer, 500 events', 'raw'),
    { must: 0.5, goal: 0.6, atMost: false },
  ),
];

const routeVerdicts = (rows) =>
  rows
    .filter(({ bindings }) => bindings === 10_000)
    .map(({ us }) => verdict('route among 10,000 bindings, p50', us.p50, { must: 2, goal: 1, unit: 'µs' }));

const sandboxVerdicts = ({ rows }) => {
  const worst = (what, quantile) =>
    Math.max(...rows.filter((row) => row.what === what).map(({ ms }) => ms[quantile]));
  const call = 'call, whole round trip';
  return [
    verdict('sandbox call, fresh instance, whole round trip, p50', worst(call, 'p50'), {
      must: 0.5,
      unit: 'ms',
    }),
    verdict('the same, p99', worst(call, 'p99'), { must: 2, goal: 1, unit: 'ms' }),
    verdict('instantiation alone, p99', worst('instance in a cell', 'p99'), { must: 1, unit: 'ms' }),
  ];
};

const remoteToolVerdicts = ({ rounds, perSecond }) => [
  verdict(
    'remote tool, time added to a call of the plug-in `echo`, p50',
    median(rounds.map(({ echo, remote }) => remote.p50 - echo.p50)),
    { must: 2, unit: 'ms' },
  ),
  verdict('calls of a remote tool a second', median(perSecond), {
    ...{ must: 2_000, atMost: false, unit: 'calls/s' },
  }),
];

/** Behind a log that grows more slowly than it should, no lag would show anything. */
const lagVerdict = ({ wantedPerSecond, eventsPerSecond, lag }) => {
  const what = `projection lag at ${wantedPerSecond} events/s, p99, the slowest`;
  const limits = { must: 100, goal: 30 };
  if (eventsPerSecond < 0.95 * wantedPerSecond)
    return unmeasured(`${what} (the log grew by ${show(eventsPerSecond)} only)`, limits);
  return verdict(what, Math.max(...lag.map(({ ms }) => ms.p99)), { ...limits, unit: 'ms' });
};

const projectionVerdicts = ({ rebuild, ...behind }) => [
  lagVerdict(behind),
  verdict(
    'rebuild of a projection, the slowest',
    Math.min(...rebuild.map(({ events, ms }) => (events / ms) * 1_000)),
    { must: 20_000, goal: 20_000, atMost: false, unit: 'events/s' },
  ),
  verdict(
    'rows that a comparison finds different',
    rebuild.reduce((sum, { differing }) => sum + differing, 0),
    { must: 0, unit: 'rows' },
  ),
];

/** A read of some tenths of a millisecond may double by noise. */
const FLAT_MS = 5;

const growthVerdicts = (rows) => {
  const [first, last] = [rows[0], rows.at(-1)];
  const flat = (what, of) =>
    verdict(
      `${what} at ${show(last.sessions)} sessions, p50, compared with ${show(first.sessions)}`,
      Math.max(of(last), FLAT_MS) / Math.max(of(first), FLAT_MS),
      { must: 1.5, goal: 1.2 },
    );
  const service = (name) => last.memory[name] / first.memory[name];
  return [
    flat('a turn', ({ turn }) => turn.p50),
    ...['sessions', 'usage', 'budgets', 'agents', 'events', 'memory'].map((name) =>
      flat(`GET ${name}`, ({ reads }) => reads[name].p50),
    ),
    verdict('memory of the gateway, the same sizes', service('gateway'), { goal: 1.5 }),
    verdict('memory of the agent, the same sizes', service('agent'), { goal: 1.5 }),
    verdict('start, the same sizes', last.startMs / first.startMs, { goal: 1.5 }),
  ];
};

const startVerdicts = ({ startMs, idleMiB }) => [
  verdict('`npm start`, everything cached, to ready', startMs / 1_000, { must: 5, unit: 's' }),
  verdict('memory of the whole idle stack', idleMiB / 1_024, { must: 1.1, goal: 1, unit: 'GiB' }),
];

const cliVerdicts = (rows) => {
  const p50 = (name) => rows.find(({ subject }) => subject === name).ms.p50;
  const bare = p50('`node -e 0`');
  return [
    verdict('`antiphon --help`, p50, compared with `node -e 0`', p50('`antiphon --help`') / bare, {
      must: 4,
    }),
    verdict('`antiphon status`, p50', p50('`antiphon status`') / 1_000, { must: 0.5, unit: 's' }),
    verdict('the same, compared with `node -e 0`', p50('`antiphon status`') / bare, {}),
  ];
};

const eventVerdicts = ({ subscribers, ms, missed }) => [
  verdict(`an event to ${subscribers} subscribers, p99`, ms.p99, { must: 100, goal: 50, unit: 'ms' }),
  verdict('events that a subscriber missed', missed, { must: 0, unit: 'events' }),
];

const taskVerdicts = ({ claimsPerSecond }) => [
  verdict('claims of tasks a second, 64 workers, one process', claimsPerSecond, {
    must: 500,
    atMost: false,
    unit: 'claims/s',
  }),
];

const agentVerdicts = ({ modelMs, rows: [one, ten] }) => [
  verdict(
    `${ten.agents} agents at once with a model of ${modelMs} ms, p50, compared with one agent`,
    ten.ms.p50 / one.ms.p50,
    { must: 1.2, goal: 1.05 },
  ),
];

const identityVerdicts = ({ rows: [guarded, open] }) => [
  verdict(
    'a turn with an API key and row-level security, p50, compared with neither',
    guarded.ms.p50 / open.ms.p50,
    { must: 1.05 },
  ),
];

const fileVerdicts = ({ calls, search: [own, reference], chat }) => {
  const p50 = (name) => calls.find(({ tool }) => tool === name).ms.p50;
  const calling = ['read', 'edit'].map((tool) =>
    verdict(`tool ${tool} of a 100 KB file, p50, compared with a WebAssembly tool`, p50(tool) / p50('echo'), {
      must: 1.5,
    }),
  );
  const searching = `search over ${own.files} files, p50, compared with ${reference.what}`;
  return [
    ...calling,
    verdict(searching, own.ms.p50 / reference.ms.p50, { must: 1.2 }),
    verdict(`a .chat of ${chat.turns} turns, p50`, chat.ms.p50, { must: 50, unit: 'ms' }),
  ];
};

/** All verdicts that the measured parts allow. */
export const verdictsOf = (results) => [
  ...(results.turn ? turnVerdicts(results.turn) : []),
  ...(results['first-frame'] ? firstFrameVerdicts(results['first-frame']) : []),
  ...(results.append ? appendVerdicts(results.append) : []),
  ...(results.projections ? projectionVerdicts(results.projections) : []),
  ...(results.route ? routeVerdicts(results.route) : []),
  ...(results.sandbox ? sandboxVerdicts(results.sandbox) : []),
  ...(results['remote-tools'] ? remoteToolVerdicts(results['remote-tools']) : []),
  ...(results.events ? eventVerdicts(results.events) : []),
  ...(results.tasks ? taskVerdicts(results.tasks) : []),
  ...(results.agents ? agentVerdicts(results.agents) : []),
  ...(results.identity ? identityVerdicts(results.identity) : []),
  ...(results.files ? fileVerdicts(results.files) : []),
  ...(results.cli ? cliVerdicts(results.cli) : []),
  ...(results.growth ? growthVerdicts(results.growth) : []),
  ...(results.start ? startVerdicts(results.start) : []),
];
