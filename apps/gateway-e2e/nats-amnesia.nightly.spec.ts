import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { connectNats, listDeadLetters, openJetStreamManager } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { connectClient, textOf, type SocketClient } from '@antiphon/testing/client';
import { forgetNats } from '@antiphon/testing/faults';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { runCli, waitForValue, readEvents, startStackWith, twoVendorConfig } from './stack-under-test.js';

jest.setTimeout(300_000);

const SESSIONS = 8;

describe("JetStream's folder, deleted while NATS is stopped", () => {
  let mock: MockModel;
  let stack: TestStack;
  let script: MockScript = ({ user }) => ({ text: ['you said: ', user] });

  beforeAll(async () => {
    mock = await startMockModel((request) => script(request));
    stack = await startStackWith(twoVendorConfig(mock.url));
  });
  afterAll(async () => {
    await stack?.stop();
    await mock?.close();
  });

  const withClient = async <T>(work: (client: SocketClient) => Promise<T>): Promise<T> => {
    const client = await connectClient(stack.wsUrl);
    try {
      return await work(client);
    } finally {
      await client.close();
    }
  };
  const send = (client: SocketClient, peer: number, content: string) =>
    client.stream('chat.send', {
      channel: 'test',
      account: 'nats',
      peer: `p${peer}`,
      content,
      agent: 'claude',
    });
  const sendAll = (client: SocketClient, content: string) =>
    Promise.all(Array.from({ length: SESSIONS }, (_, peer) => send(client, peer, content).done()));
  /**
   * Reads the state of the EVENTS stream, of metering's consumer, and the number of dead letters.
   */
  const readJetStream = async () => {
    const link = await connectNats({ ...stack.nats, service: 'operator', logger: silentLogger });
    try {
      const manager = await openJetStreamManager(link.connection);
      const { state } = await manager.streams.info('EVENTS');
      const { num_pending, num_ack_pending } = await manager.consumers.info(
        'EVENTS',
        'metering-settle-calls',
      );
      const letters = await listDeadLetters(link);
      return { state, waiting: num_pending + num_ack_pending, letters: letters.length };
    } finally {
      await link.drain();
    }
  };
  const waitForRefill = () =>
    waitForValue('the log in JetStream', async () => {
      const head = (await readEvents(stack)).at(-1)?.position ?? 0;
      const { state, waiting, letters } = await readJetStream().catch(() => ({
        state: null,
        waiting: -1,
        letters: -1,
      }));
      const whole = state?.first_seq === 1 && state.messages === head && state.last_seq === head;
      return whole && waiting === 0 ? { head, letters } : undefined;
    });
  const countSettlements = async (): Promise<number> => {
    const events = await readEvents(stack, { type: 'BudgetSettled' });
    expect(new Set(events.map(({ data }) => data['reservationId'])).size).toBe(events.length);
    return events.length;
  };
  const waitForCleanAudit = () =>
    waitForValue(
      'a clean audit',
      async () => {
        const audit = await runCli(stack, ['audit', '--live', '--strict']);
        return audit.code === 0 && /ok +relay-equals-the-log/.test(audit.stdout) ? true : undefined;
      },
      60_000,
    );

  it('is rebuilt from the log at the next start, with its consumers, and repeats have no effect', async () => {
    for (let round = 0; round < 5; round++) await withClient((client) => sendAll(client, `round ${round}`));
    await waitForRefill();
    const before = await countSettlements();
    expect(before).toBe(5 * SESSIONS);
    const folder = join(stack.home, 'nats', 'jetstream');
    stack = await stack.restart(() => {
      expect(existsSync(folder)).toBe(true);
      rmSync(folder, { recursive: true });
    });
    const { letters } = await waitForRefill();
    expect([await countSettlements(), letters]).toEqual([before, 0]);
    await withClient((client) => sendAll(client, 'and on'));
    await waitForRefill();
    expect(await countSettlements()).toBe(before + SESSIONS);
    await waitForCleanAudit();
  });

  it('does not fail open turns', async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    script = ({ user }) => ({
      reply: { text: ['first half, ', `second half of ${user}`] },
      before: (piece) => (piece.includes('second') ? released : undefined),
    });
    await withClient(async (client) => {
      const streams = Array.from({ length: SESSIONS }, (_, peer) => send(client, peer, `held ${peer}`));
      for (const stream of streams) await stream.waitFor('text', ({ event }) => event === 'text');
      const from = performance.now();
      await forgetNats().inflict(stack);
      release();
      const frames = await Promise.all(streams.map((stream) => stream.done()));
      frames.forEach((of, peer) => expect(textOf(of)).toBe(`first half, second half of held ${peer}`));
      await waitForRefill();
      process.stdout.write(`rebuilt ${Math.round(performance.now() - from)} ms after NATS was killed\n`);
    });
    script = ({ user }) => ({ text: [user] });
    // Requests are refused as retryable until the services have reconnected.
    await withClient((client) =>
      waitForValue('an answer', () =>
        send(client, 0, 'after')
          .done()
          .catch(({ rpc }: { rpc?: { code: number } }) => {
            expect(rpc?.code).toBe(-32_053);
            return undefined;
          }),
      ),
    );
    await withClient((client) => sendAll(client, 'and after'));
    await waitForRefill();
    await waitForCleanAudit();
  });
});
