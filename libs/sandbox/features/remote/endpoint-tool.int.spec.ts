import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { transient } from '@antiphon/kernel';
import type { HostedCall } from '../calls/tool-source.js';
import { EndpointTools } from './endpoint-tool.js';
import type { EndpointToolsDeps } from './endpoint-tool.js';

let server: Server;
let url: string;
let requests = 0;
let answer: (response: ServerResponse) => void;

beforeAll(async () => {
  server = createServer((request, response) => {
    requests += 1;
    request.resume().once('end', () => answer(response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));
beforeEach(() => {
  requests = 0;
});

const run = (
  read: () => Promise<{ secret: string | null }>,
  begin: () => Promise<void> = async () => undefined,
) => {
  const config = { tools: { privateHosts: ['127.0.0.1'] } };
  const deps = {
    requests: { request: read },
    ids: { next: () => 'attempt' },
    clock: { now: Date.now },
    config,
  };
  const request = { workspace: 'default', sessionId: 's', callId: 'c', epoch: 1, idempotencyKey: 'key' };
  return new EndpointTools(deps as unknown as EndpointToolsDeps).run({ url, secret: 'hook' }, 'invoice', {
    ...{ request, input: Buffer.from('{}'), timeoutMs: 500, begin, findObstacle: () => null },
    signal: new AbortController().signal,
  } as unknown as HostedCall);
};
const known = async () => ({ secret: 'a-secret-of-the-endpoint' });
const json = (status: number, body: string) => (response: ServerResponse) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);

describe('the answer of an endpoint', () => {
  it.each([
    [200, '{"content":"paid"}', { outcome: 'completed', content: 'paid', isError: false }],
    [200, '{"content":"no such bill","isError":true}', { outcome: 'completed', isError: true }],
    [200, '{"total":12}', { outcome: 'completed', content: '{"total":12}', isError: false }],
    [302, '', { outcome: 'completed', content: 'HTTP 302:', isError: true }],
    [400, '{"content":"bad"}', { outcome: 'completed', content: 'HTTP 400: bad', isError: true }],
    [500, 'broken', { outcome: 'completed', content: 'HTTP 500: broken', isError: true }],
    [502, '', { outcome: 'failed', code: 'TOOL.WORKER_LOST' }],
    [504, '', { outcome: 'failed', code: 'TOOL.WORKER_LOST' }],
    [200, 'x'.repeat(1_048_577), { outcome: 'failed', code: 'TOOL.OUTPUT' }],
  ])('%s with %.40s becomes an outcome', async (status, body, outcome) => {
    answer = json(status, body);
    expect(await run(known)).toMatchObject({ end: 'outcome', outcome });
    expect(requests).toBe(1);
  });

  it('that does not come in time is a timeout', async () => {
    answer = () => undefined;
    expect(await run(known)).toMatchObject({ end: 'outcome', outcome: { code: 'TOOL.TIMEOUT' } });
  });
});

describe('a call that is not sent', () => {
  it('is one whose secret does not exist, or cannot be read now', async () => {
    expect(await run(async () => ({ secret: null }))).toMatchObject({ outcome: { code: 'TOOL.NO_WORKER' } });
    const down = () => Promise.reject(transient('MESSAGING.NO_RESPONDERS', 'no agent'));
    expect(await run(down)).toMatchObject({ end: 'unavailable' });
    expect(requests).toBe(0);
  });

  it('is one that its caller does not permit', async () => {
    const refuse = () => Promise.reject(transient('TOOL.GIVEN_UP', 'given up'));
    expect(await run(known, refuse)).toMatchObject({ end: 'unavailable' });
    expect(requests).toBe(0);
  });
});
