import { medianInterval, show } from './stats.mjs';
import { spread, table } from './tables.mjs';

export const TURN_NAMES = {
  'antiphon-turn': 'Antiphon',
  'antiphon-compact': 'Antiphon, compact form',
  restate: 'Restate',
  'dbos-lean': 'DBOS, lean',
  dbos: 'DBOS, as documented',
  'dbos-queue': 'DBOS, lean, in order by a queue',
  langgraph: 'LangGraph.js + PostgreSQL',
  'langgraph-sync': 'LangGraph.js, durability sync',
  langchain: 'LangChain createAgent + PostgreSQL',
  'langchain-sync': 'LangChain createAgent, durability sync',
  mastra: 'Mastra + PostgreSQL',
  'ai-sdk': 'AI SDK, messages in PostgreSQL',
  'bare-provider': 'provider calls alone',
};

/**
 * Returns our figure divided by that of a peer, for each round. It is the rate, or the time added
 * to the provider calls. Both were measured one after the other, so a slow minute slows both.
 * `subject` names another form of ours.
 */
export const ratiosOfRounds = (rows, scenario, peer, what, subject = 'antiphon-turn') => {
  const roundsOf = (name) => rows.find((row) => row.subject === name && row.name === scenario)?.rounds ?? [];
  const bare = roundsOf('bare-provider');
  const theirs = roundsOf(peer);
  return roundsOf(subject).flatMap((ours, round) => {
    if (!theirs[round] || !bare[round]) return [];
    if (what === 'rate') return [ours.rate / theirs[round].rate];
    return [(ours.p50 - bare[round].p50) / (theirs[round].p50 - bare[round].p50)];
  });
};

const showInterval = (ratios) => {
  const { median, low, high } = medianInterval(ratios);
  return `${show(median)} × (${show(low)} to ${show(high)})`;
};

const ratioTable = (rows) =>
  table(
    ['scenario', 'compared with', 'rounds', 'added time', 'turns/s'],
    rows
      .filter(({ subject }) => subject !== 'antiphon-turn' && subject !== 'bare-provider')
      .map(({ name, subject, rounds }) => [
        ...[name, TURN_NAMES[subject], rounds.length],
        showInterval(ratiosOfRounds(rows, name, subject, 'added')),
        showInterval(ratiosOfRounds(rows, name, subject, 'rate')),
      ]),
  );

const firstTurns = (rows) =>
  table(
    ['scenario', 'subject', 'first: n', 'p50', 'p90', 'p99', 'later: n', 'p50', 'p90', 'p99'],
    rows.map(({ name, subject, first, later }) => [
      ...[name, TURN_NAMES[subject], ...spread(first), ...spread(later)],
    ]),
  );

const processorTime = (rows) =>
  table(
    ['scenario', 'subject', 'own processes', 'PostgreSQL', 'together', 'WAL of PostgreSQL, KiB'],
    rows
      .filter(({ subject }) => subject !== 'bare-provider')
      .map(({ name, subject, ownMs, databaseMs, walKiB }) => [
        ...[name, TURN_NAMES[subject], show(ownMs), show(databaseMs), show(ownMs + databaseMs)],
        // Restate stores its log in its own process.
        subject === 'restate' ? '–' : show(walKiB),
      ]),
  );

/** Stages and processor time of our turns, one column for each scenario. */
const turnCosts = (rows) => {
  const measured = rows.filter(({ costs, subject }) => costs !== undefined && subject === 'antiphon-turn');
  const names = measured.map(({ name }) => name);
  const [first] = measured;
  const cellsOf = (list, key, name, render) =>
    measured.map(({ costs }) => render(costs[list].find((row) => row[key] === name)));
  return [
    'Stages of our turns: mean milliseconds, and how often in a turn (docs/observability.md)',
    table(
      ['service', 'stage', ...names],
      first.costs.stages.map(({ service, stage }) => [
        service,
        stage,
        ...cellsOf('stages', 'stage', stage, ({ ms, perTurn }) => `${show(ms)} · ${show(perTurn)}`),
      ]),
    ),
    'Processor time of our turns: milliseconds, and voluntary context switches',
    table(
      ['process', ...names],
      first.costs.processors.map(({ name }) => [
        name,
        ...cellsOf('processors', 'name', name, ({ cpuMs, switches }) => `${show(cpuMs)} · ${show(switches)}`),
      ]),
    ),
  ];
};

/** The section about turns. */
export const renderTurns = (rows) => [
  'A turn, in milliseconds',
  [
    table(
      ['scenario', 'subject', 'n', 'p50', 'p90', 'p99', 'turns/s'],
      rows.map((row) => [row.name, TURN_NAMES[row.subject], ...spread(row.ms), show(row.turnsPerSecond)]),
    ),
    'Ours divided by theirs, in the same round: the median, and an interval that has it with 95 %',
    ratioTable(rows),
    'The first turn of a session, and the later ones',
    firstTurns(rows),
    'Processor time of a turn, in milliseconds, and what PostgreSQL writes: a peer runs in the process of its caller',
    processorTime(rows),
    ...turnCosts(rows),
  ].join('\n\n'),
];
