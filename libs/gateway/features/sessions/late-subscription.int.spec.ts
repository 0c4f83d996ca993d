import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, startNatsServer } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { connectClient } from '@antiphon/testing/client';
import type { SocketClient } from '@antiphon/testing/client';
import { createFaultyLink } from '@antiphon/testing/network';
import type { FaultyLink } from '@antiphon/testing/network';
import { createResumeWorld } from '../testing/resume-world.js';
import type { ResumeGateway, ResumeWorld } from '../testing/resume-world.js';
import { createSessionScript } from '../testing/session-script.js';
import type { SessionScript } from '../testing/session-script.js';

let server: TestNatsServer;
let link: FaultyLink;
let world: ResumeWorld;
let gateway: ResumeGateway;
let client: SocketClient;

beforeAll(async () => {
  server = await startNatsServer();
  link = await createFaultyLink({ targetPort: Number(new URL(server.url).port) });
  world = await createResumeWorld(await createTestDatabase(), server.url);
  gateway = await world.startGateway(undefined, `nats://127.0.0.1:${link.port}`);
  client = await connectClient(gateway.wsUrl);
});
afterAll(async () => {
  await client?.close();
  link?.heal();
  await world?.close();
  await link?.close();
  await server?.remove();
});

const last = (script: SessionScript): number => script.frames().at(-1)?.offset ?? 0;

describe('session.resume with a late NATS subscription', () => {
  it('streams the past at once, and misses no turn between the read of the log and the subscription', async () => {
    const script = createSessionScript();
    await world.commit(script.sessionId, [...script.events, ...script.turn('before')]);
    const known = last(script);
    link.cut();
    const stream = client.stream('session.resume', { sessionId: script.sessionId, after: 0 });
    await stream.waitFor('the past', ({ offset }) => offset === known);
    // A whole turn: no subscription exists yet, and nothing in the past announces the turn.
    await world.commit(script.sessionId, script.turn('between'));
    await world.send(
      script.sessionId,
      script.frames().filter(({ offset }) => offset > known),
    );
    link.heal();
    await stream.waitFor('the turn between', ({ offset }) => offset === last(script));
    expect(stream.frames.map(({ offset }) => offset)).toEqual(script.frames().map(({ offset }) => offset));
  });
});
