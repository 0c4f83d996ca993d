import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@antiphon/observability';
import { errors } from '@nats-io/transport-node';
import { connectNats } from './link/nats-link.js';
import type { NatsLink } from './link/nats-link.js';

const url = () => process.env['ANTIPHON_TEST_NATS_URL'] ?? '';
const subject = `cmd.spare-errors.${process.pid}`;

interface Inside {
  readonly protocol: { readonly muxSubscriptions: { readonly reqs: Map<string, unknown> } };
}
const waiting = ({ connection }: NatsLink): number =>
  (connection as unknown as Inside).protocol.muxSubscriptions.reqs.size;

/** Counts the request errors that are made while `work` runs: each sets its name. */
const countErrors = async (work: () => Promise<unknown>): Promise<number> => {
  const { prototype } = errors.RequestError;
  let made = 0;
  Object.defineProperty(prototype, 'name', { configurable: true, set: () => void (made += 1) });
  try {
    await work();
  } finally {
    Reflect.deleteProperty(prototype, 'name');
  }
  return made;
};

let link: NatsLink;
beforeAll(async () => {
  link = await connectNats({ url: url(), service: 'agent', logger: silentLogger });
  link.connection.subscribe(subject, { callback: (_error, message) => void message.respond('yes') });
  await link.connection.flush();
});
afterAll(() => link.drain());

describe('a request', () => {
  it('that is answered makes no error, and is forgotten', async () => {
    const ask = () => link.connection.request(subject, 'well?', { timeout: 5_000 });
    const answers: string[] = [];
    const made = await countErrors(async () => {
      for (let i = 0; i < 20; i++) answers.push((await ask()).string());
    });
    expect(answers).toEqual(Array.from({ length: 20 }, () => 'yes'));
    expect(made).toBe(0);
    expect(waiting(link)).toBe(0);
  });

  it('that nobody answers still fails as it did, and is forgotten', async () => {
    const nobody = link.connection.request(`${subject}.nobody`, '', { timeout: 5_000 });
    await expect(nobody).rejects.toMatchObject({ cause: expect.any(errors.NoRespondersError) });
    const silent = `${subject}.silent`;
    link.connection.subscribe(silent, { callback: () => undefined });
    await expect(link.connection.request(silent, '', { timeout: 50 })).rejects.toBeInstanceOf(
      errors.TimeoutError,
    );
    expect(waiting(link)).toBe(0);
  });
});
