// Events as the services write them, from the golden payloads of the contracts, with ids of their
// own.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const GOLDEN = fileURLToPath(new URL('../../libs/contracts/events/golden', import.meta.url));
const read = (file) => JSON.parse(readFileSync(`${GOLDEN}/${file}.v1.json`, 'utf8'));
const golden = Object.fromEntries(
  [
    'session/SessionStarted',
    'session/TurnRequested',
    'session/ModelCallStarted',
    'session/ModelCallCompleted',
    'session/TurnCompleted',
    'budget/BudgetReserved',
    'budget/BudgetSettled',
    'run/RunStarted',
    'run/RunCompleted',
  ].map((file) => [file.split('/')[1], read(file)]),
);

const event = (type, data) => ({
  eventId: randomUUID(),
  type,
  schemaVersion: 1,
  data: { ...golden[type].data, ...data },
  metadata: { correlationId: 'bench', service: 'bench' },
});

const TOLD = ['my name is Ada', 'what is 2 + 2?', 'I live in Oslo', 'tell me a story', 'hello', 'and then?'];
const stream = (streamId, ...events) => ({ streamId, expectedVersion: 'any', events });

export const newSession = () => {
  const sessionId = randomUUID();
  return { sessionId, turns: 0, key: `main:bench:${sessionId}` };
};

/** The two appends of a turn, three events each; before a session's first one, a third. */
export const turnAppends = (session) => {
  const { sessionId, key } = session;
  const [turnId, reservationId] = [randomUUID(), randomUUID()];
  const number = session.turns++;
  const ids = { sessionId, turnId, reservationId, attempt: number + 1 };
  const own = (...events) => stream(`session-${sessionId}`, ...events);
  const budget = (one) => stream(`budget-${reservationId}`, one);
  const begin = event('SessionStarted', { sessionId, sessionKey: key, previousSessionId: undefined });
  const asked = event('TurnRequested', { turnId, content: TOLD[number % TOLD.length] });
  const scopes = [{ kind: 'session', key: `session/${sessionId}`, limitTokens: 1e9, limitMicroUsd: 1e9 }];
  return [
    ...(number === 0 ? [[own(begin)]] : []),
    [own(asked, event('ModelCallStarted', ids)), budget(event('BudgetReserved', { ...ids, scopes }))],
    [
      own(event('ModelCallCompleted', ids), event('TurnCompleted', { turnId })),
      budget(event('BudgetSettled', { reservationId })),
    ],
  ];
};

export const runAppends = () => {
  const runId = randomUUID();
  const own = (one) => [stream(`run-${runId}`, one)];
  return [
    own(event('RunStarted', { runId, workflowId: randomUUID() })),
    own(event('RunCompleted', { runId })),
  ];
};
