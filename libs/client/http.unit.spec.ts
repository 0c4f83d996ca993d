import { describe, expect, it } from '@jest/globals';
import { createClient, ClientError, type Client } from './index.js';

interface SentRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}
type Respond = (request: SentRequest, count: number) => Response;

const json = (value: unknown, init?: ResponseInit): Response => new Response(JSON.stringify(value), init);
const unreachable = (): Response => {
  throw new TypeError('fetch failed');
};

const clientFor = (respond: Respond, token?: string): { client: Client; sent: SentRequest[] } => {
  const sent: SentRequest[] = [];
  const send = (url: string, init: SentRequest): Promise<Response> => {
    sent.push({ ...init, url });
    return new Promise((resolve) => resolve(respond({ ...init, url }, sent.length)));
  };
  const url = ['http://one/', 'http://two'];
  return { client: createClient({ url, token, fetch: send as unknown as typeof fetch }), sent };
};
const pathsOf = (sent: readonly SentRequest[]): string[] => sent.map(({ url }) => url);

describe('a route of the HTTP client', () => {
  it('gets its path, query and credential', async () => {
    const { client, sent } = clientFor(() => json({ id: 'a/b' }), 'ak_1');
    await client.http.getAgent({ params: { id: 'a/b' } });
    await client.http.readEvents({ query: { type: 'TurnFailed', limit: 5 } });
    expect(pathsOf(sent)).toEqual([
      'http://one/api/v1/agents/a%2Fb',
      'http://one/api/v1/events?type=TurnFailed&limit=5',
    ]);
    expect(sent[0]).toMatchObject({ method: 'GET', headers: { authorization: 'Bearer ak_1' } });
  });

  it('sends JSON with an idempotency key of its own where the route has one', async () => {
    const { client, sent } = clientFor(() => json({ runId: 'r' }));
    await client.http.startRun({ body: { workflow: 'name: w' } });
    await client.http.startRun({ body: { workflow: 'name: w' }, idempotencyKey: 'mine' });
    expect(sent[0]).toMatchObject({ method: 'POST', body: '{"workflow":"name: w"}' });
    expect(sent[0]?.headers['idempotency-key']).toMatch(/^[0-9a-f]{32}$/);
    expect(sent[1]?.headers['idempotency-key']).toBe('mine');
  });

  it('goes to the next gateway with the same key, if it may be repeated', async () => {
    const { client, sent } = clientFor((_, count) => (count === 1 ? unreachable() : json({ runId: 'r' })));
    await client.http.startRun({ body: { workflow: 'name: w' } });
    expect(pathsOf(sent)).toEqual(['http://one/api/v1/runs', 'http://two/api/v1/runs']);
    expect(sent[1]?.headers['idempotency-key']).toBe(sent[0]?.headers['idempotency-key']);
  });

  it('is sent once if a repetition could do it twice', async () => {
    const { client, sent } = clientFor(unreachable);
    const error: unknown = await client.http
      .rotateKey({ params: { id: 'k' }, body: {} })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'CLIENT.UNREACHABLE' });
    expect(sent).toHaveLength(1);
  });

  it('rejects with the code, the fields and the delay of a problem document', async () => {
    const problem = { code: 'GATEWAY.RATE_LIMITED', detail: 'too fast', limit: 'requests' };
    const { client } = clientFor(() => json(problem, { status: 429, headers: { 'retry-after': '7' } }));
    const error = await client.http.listAgents().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ClientError);
    expect(error).toMatchObject({
      code: 'GATEWAY.RATE_LIMITED',
      status: 429,
      retryAfterMs: 7_000,
      data: problem,
    });
  });

  it('rejects with the text of another server', async () => {
    const { client } = clientFor(() => new Response('<html>', { status: 502 }));
    await expect(client.http.health()).rejects.toMatchObject({ code: 'HTTP.502', status: 502 });
  });

  it('returns text where the route has another media type', async () => {
    const { client } = clientFor(() => new Response('antiphon_up 1\n'));
    const text: string = await client.http.metrics();
    expect(text).toBe('antiphon_up 1\n');
  });
});
