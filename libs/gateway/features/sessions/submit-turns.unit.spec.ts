import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { transient } from '@antiphon/kernel';
import type { RequestOptions } from '@antiphon/messaging';
import type { GatewayRequests } from '../gateway.ports.js';
import { SubmitTurns } from './submit-turns.js';

const turn = {
  ...{ sessionId: randomUUID(), turnId: randomUUID(), agentId: 'main', version: 2 },
  ...{ acceptedOffset: null, joined: false },
};

const given = (...replies: readonly (string | null | Error)[]) => {
  const asked: (string | undefined)[] = [];
  const left = [...replies];
  const request = async (_contract: unknown, _message: unknown, options?: RequestOptions) => {
    asked.push(options?.processId);
    const driver = left.shift() ?? null;
    if (driver instanceof Error) throw driver;
    return { ...turn, driver };
  };
  return { turns: new SubmitTurns({ request } as GatewayRequests), asked };
};
const to = (peer: string, idempotencyKey?: string) => ({
  ...{ workspace: 'default', caller: 'spec', content: 'hi', idempotencyKey },
  target: { address: { agentId: 'main', channel: 'api', account: 'a', peer } },
});

describe('the submission of a turn', () => {
  it('goes to the process that drives the session, as the last reply named it', async () => {
    const { turns, asked } = given('one', 'one', 'two', 'two');
    await turns.submit(to('ada'));
    await turns.submit(to('ada'));
    await turns.submit(to('bob'));
    await turns.submit(to('ada'));
    expect(asked).toEqual([undefined, 'one', undefined, 'one']);
    await turns.submit(to('bob'));
    expect(asked.at(-1)).toBe('two');
  });

  it('goes to any process after a failure, or if no process drives the session', async () => {
    const lost = transient('MESSAGING.TIMEOUT', 'the service did not answer in time');
    const { turns, asked } = given('one', lost, 'two', null);
    await turns.submit(to('ada'));
    await expect(turns.submit(to('ada'))).rejects.toBe(lost);
    await turns.submit(to('ada'));
    await turns.submit(to('ada'));
    await turns.submit(to('ada'));
    expect(asked).toEqual([undefined, 'one', undefined, 'two', undefined]);
  });

  it('is sent again to any process after a timeout, with an idempotency key', async () => {
    const lost = transient('MESSAGING.TIMEOUT', 'the service did not answer in time');
    const { turns, asked } = given('one', lost, 'two');
    await turns.submit(to('ada'));
    expect(await turns.submit(to('ada', 'key'))).toMatchObject({ turnId: turn.turnId, driver: 'two' });
    expect(asked).toEqual([undefined, 'one', undefined]);
  });
});
