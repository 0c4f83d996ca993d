import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startNatsServer } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { checkNatsHealth, payloadOf, writeErrorOf } from './nats-health.js';

describe('the health of NATS', () => {
  let server: TestNatsServer;
  beforeAll(async () => {
    const config = 'accounts: { $SYS: { users: [{ user: system, password: "of-the-spec" }] } }';
    server = await startNatsServer({ config });
  });
  afterAll(() => server.remove());

  const check = (password: string) =>
    checkNatsHealth(Number(new URL(server.url).port), { user: 'system', password }, tmpdir());

  it('is asked by the user of its system account', async () => {
    await check('of-the-spec');
    await expect(check('another')).rejects.toThrow(/Authorization Violation/);
  });

  it('is bad while a stream refuses messages because of an earlier write error', () => {
    const error = "JetStream stream '$G > EVENTS' write error: write 1.blk: no space left on device";
    const answer = (data: object): string => JSON.stringify({ server: { name: 'x' }, data });
    expect(writeErrorOf(answer({ status: 'ok' }))).toBeNull();
    expect(writeErrorOf(answer({ status: 'unavailable', error }))).toBe(error);
    expect(writeErrorOf(answer({ status: 'unavailable', error: 'JetStream is recovering' }))).toBeNull();
  });

  it('is read from a connection once its message is complete', () => {
    expect(payloadOf('INFO {}\r\nMSG _INBOX.a 1 5\r\nhel')).toBeNull();
    expect(payloadOf('INFO {}\r\nMSG _INBOX.a 1  5\r\nhello\r\n')).toBe('hello');
    expect(payloadOf('INFO {}\r\nMSG _INBOX.a 1 _R_.x 5\r\nhello\r\n')).toBe('hello');
  });
});
