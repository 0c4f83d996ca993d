import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import * as agent from '@antiphon/contracts/agent';
import * as log from '@antiphon/contracts/log';
import * as memory from '@antiphon/contracts/memory';
import * as metering from '@antiphon/contracts/metering';
import { SERVICES, healthContract } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import * as sandbox from '@antiphon/contracts/sandbox';
import { silentLogger } from '@antiphon/observability';
import { startNatsServer, type TestNatsServer } from '@antiphon/testing';
import { connectNats } from './link/nats-link.js';
import { natsPermissions } from './permissions.js';

const PASSWORD = 'test-only';

/** Services that may send each request. A request without a line may be sent by none. */
const SENDERS: readonly (readonly [RegExp, readonly ServiceName[]])[] = [
  [/^cmd\.(agent|sandbox|metering|memory)\.health\.check$/, ['gateway']],
  [/^cmd\.sandbox\.health\.check$/, ['agent']],
  [
    /^(?!cmd\.agent\.secret\.read$)cmd\.agent\.(agent|task|message|session|turn|approval|workflow|run|credential|channel|chat|file|plan|provider|secret)\.[a-z-]+$/,
    ['gateway'],
  ],
  // The process that assigns tasks lets any agent process run their turns.
  [/^cmd\.agent\.turn\.(submit|cancel)$/, ['agent']],
  // The host inserts secrets into requests of tools.
  [/^cmd\.agent\.secret\.read$/, ['sandbox']],
  // The process that made a call permits its first effect.
  [/^cmd\.agent\.call\.begin$/, ['sandbox']],
  [/^cmd\.sandbox\.(plugin|mcp)\.\w+$/, ['gateway']],
  [/^cmd\.sandbox\.remote\.(register|add|remove)$/, ['gateway']],
  // To the gateway whose program serves a tool.
  [/^cmd\.gateway\.tool\.run$/, ['sandbox']],
  [
    /^cmd\.sandbox\.(tool\.list|tool\.call|call\.find|result\.read|result\.release|channel\.[a-z]+)$/,
    ['agent'],
  ],
  [
    /^cmd\.metering\.(budget\.reserve|budget\.settle|limit\.set|reservation\.expire|period\.roll)$/,
    ['agent'],
  ],
  [/^cmd\.metering\.charge\.correct$/, ['agent']],
  [/^cmd\.metering\.usage\.read$/, ['agent', 'gateway']],
  [/^cmd\.metering\.(budget\.read|limit\.set|session\.costs)$/, ['gateway']],
  [/^cmd\.memory\.(context\.assemble|fact\.believed|entry\.turns)$/, ['agent']],
  [/^cmd\.memory\.entry\.(query|recall)$/, ['gateway']],
  [/^cmd\.memory\.log\.[a-z]+$/, ['gateway']],
  [/^cmd\.(agent|memory)\.projection\.replay$/, ['gateway']],
  [/^cmd\.metering\.dead-letter\.(list|replay)$/, ['gateway']],
];
const mayPublish = (service: ServiceName, subject: string): boolean =>
  SENDERS.some(([subjects, services]) => subjects.test(subject) && services.includes(service));

const subjectOf = (value: unknown): string[] =>
  value !== null && typeof value === 'object' && 'subject' in value && 'request' in value
    ? [String(value.subject)]
    : [];
const SUBJECTS = [
  ...[agent, sandbox, metering, memory, log].flatMap((contracts) =>
    Object.values(contracts).flatMap(subjectOf),
  ),
  ...SERVICES.map((service) => healthContract(service).subject),
  ...log.PROJECTION_SERVICES.map((service) => log.replayParkedContract(service).subject),
];

let server: TestNatsServer;
beforeAll(async () => {
  const users = SERVICES.map((user) => {
    const { publish, subscribe, allowResponses } = natsPermissions(user);
    return { user, password: PASSWORD, permissions: { publish, subscribe, allow_responses: allowResponses } };
  });
  server = await startNatsServer({ config: `authorization ${JSON.stringify({ users })}` });
});
afterAll(() => server.remove());

/** Publishes to every subject. Returns those that the server did not refuse. */
const publishedBy = async (service: ServiceName): Promise<string[]> => {
  const options = { url: server.url, user: service, password: PASSWORD, service, logger: silentLogger };
  const { connection } = await connectNats(options);
  const refusals: string[] = [];
  const listening = (async () => {
    for await (const status of connection.status())
      if (status.type === 'error') refusals.push(status.error.message);
  })();
  for (const subject of SUBJECTS) connection.publish(subject);
  // The server responds in order: the refusals arrive before the response to the ping.
  await connection.flush();
  await connection.close();
  await listening;
  return SUBJECTS.filter((subject) => !refusals.some((text) => text.includes(`"${subject}"`)));
};

describe('every subject of a request, for every service', () => {
  it.each(SERVICES)('accepts what %s sends and refuses it all else', async (service) => {
    expect(SUBJECTS.length).toBeGreaterThan(35);
    const expected = SUBJECTS.filter((subject) => mayPublish(service, subject));
    expect((await publishedBy(service)).sort()).toEqual(expected.sort());
  });

  it('refuses a connection without a credential', async () => {
    const options = { url: server.url, service: 'gateway', logger: silentLogger } as const;
    await expect(connectNats(options)).rejects.toThrow();
  });
});
