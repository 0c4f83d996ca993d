import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { isSignedReport, parseSigningKeys, signReport } from '@antiphon/event-store';
import type { SignedReportProof } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { connectNats, type NatsLink } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import type { RunningService } from '@antiphon/service-host';
import { until } from '@antiphon/testing';
import { connectClient } from '@antiphon/testing/client';
import { createGatewayWorld, type GatewayWorld } from '../testing/gateway-world.js';

jest.setTimeout(60_000);

const BOOTSTRAP = `ak_bootstrapkeytest_${'b'.repeat(43)}`;
const KEYS = parseSigningKeys(
  String(generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })),
  'spec',
);
let world: GatewayWorld;
let gateways: RunningService[];
let memory: NatsLink;

/** Verifies reports as the memory service does, with the key of this spec. */
const serveVerification = async (): Promise<NatsLink> => {
  const link = await connectNats({ url: world.nats.url, service: 'memory', logger: silentLogger });
  link.connection.subscribe('cmd.memory.log.verify', {
    callback: (_error, message) => {
      const { kind, report, ...proof } = message.json<
        SignedReportProof & { kind: string; report: JsonObject }
      >();
      const isValid = isSignedReport(kind, report, proof, KEYS.publicKeys);
      message.respond(JSON.stringify({ ok: true, result: { isValid, hasKeys: true } }));
    },
  });
  await link.connection.flush();
  return link;
};

beforeAll(async () => {
  world = await createGatewayWorld();
  memory = await serveVerification();
  const start = () => world.start({ ANTIPHON_BOOTSTRAP_KEY: BOOTSTRAP });
  gateways = await Promise.all([start(), start()]);
});
afterAll(async () => {
  await memory?.drain();
  await world?.close();
});

interface Response {
  readonly status: number;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly body: any;
}

const call = async (
  token: string,
  method: string,
  path: string,
  body?: object,
  { gateway = 0, idempotencyKey }: { gateway?: number; idempotencyKey?: string } = {},
): Promise<Response> => {
  const response = await fetch(`http://127.0.0.1:${gateways[gateway]!.port}/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? null : JSON.parse(text) };
};

describe('the routes of keys', () => {
  it('create, list, rotate and revoke a key, which every gateway follows', async () => {
    const created = await call(BOOTSTRAP, 'POST', '/keys', { name: 'ci', role: 'viewer' });
    expect(created).toMatchObject({
      status: 201,
      body: { workspace: 'default', role: 'viewer', status: 'active' },
    });
    const { id, token } = created.body;
    expect((await call(token, 'GET', '/events', undefined, { gateway: 1 })).status).toBe(200);
    expect(await call(token, 'GET', '/keys')).toMatchObject({
      status: 403,
      body: { code: 'GATEWAY.FORBIDDEN' },
    });

    const { body: list } = await call(BOOTSTRAP, 'GET', '/keys');
    expect(list.keys.map((key: { name: string }) => key.name)).toEqual(['bootstrap', 'ci']);
    expect(JSON.stringify(list)).not.toContain(token.slice(token.indexOf(id) + id.length + 1));

    const rotated = await call(BOOTSTRAP, 'POST', `/keys/${id}/rotate`, {});
    expect(rotated).toMatchObject({ status: 200, body: { id } });
    expect((await call(rotated.body.token, 'GET', '/events')).status).toBe(200);

    expect(await call(BOOTSTRAP, 'DELETE', `/keys/${id}`)).toMatchObject({
      status: 200,
      body: { status: 'revoked' },
    });
    for (const gateway of [0, 1])
      for (const secret of [token, rotated.body.token])
        await until(
          async () => (await call(secret, 'GET', '/events', undefined, { gateway })).status === 401,
          1_000,
        );
  });

  it('close the sockets of a revoked key at every gateway within a second with 4403', async () => {
    const { body } = await call(BOOTSTRAP, 'POST', '/keys', { name: 'socket', role: 'viewer' });
    const clients = await Promise.all(
      gateways.map(({ port }) =>
        connectClient(`ws://127.0.0.1:${port}/ws`, { authorization: `Bearer ${body.token}` }),
      ),
    );
    for (const client of clients)
      await client.waitFor('the acknowledgement', ({ type }) => type === 'session.ack');
    const revokedAt = Date.now();
    await call(BOOTSTRAP, 'DELETE', `/keys/${body.id}`);
    expect(await Promise.all(clients.map((client) => client.closed))).toEqual([4403, 4403]);
    expect(Date.now() - revokedAt).toBeLessThan(1_000);
  });

  it('answer a wrong body, an unknown key and a reused idempotency key with their errors', async () => {
    const cases: readonly [string, string, object | undefined, string | undefined, number, string][] = [
      ['POST', '/keys', { name: '' }, undefined, 400, 'GATEWAY.INVALID_BODY'],
      ['POST', '/keys', { name: 'a\u202eb' }, undefined, 400, 'GATEWAY.INVALID_BODY'],
      ['POST', '/keys', { name: 'x', scopes: ['everything'] }, undefined, 400, 'GATEWAY.INVALID_BODY'],
      ['POST', '/keys', { name: 'x', role: 'root' }, undefined, 400, 'GATEWAY.INVALID_BODY'],
      [
        'POST',
        '/keys',
        { name: 'x', expiresAt: '2001-01-01T00:00:00Z' },
        undefined,
        400,
        'GATEWAY.INVALID_BODY',
      ],
      ['POST', '/keys', { name: 'x', workspace: 'none' }, undefined, 404, 'GATEWAY.WORKSPACE_NOT_FOUND'],
      ['POST', '/keys', { name: 'one' }, 'k', 201, ''],
      ['POST', '/keys', { name: 'two' }, 'k', 409, 'LOG.IDEMPOTENCY_CONFLICT'],
      ['DELETE', '/keys/aaaaaaaaaaaaaaaa', undefined, undefined, 404, 'GATEWAY.KEY_NOT_FOUND'],
      ['DELETE', '/keys/x', undefined, undefined, 400, 'GATEWAY.INVALID_BODY'],
      [
        'POST',
        '/keys/aaaaaaaaaaaaaaaa/rotate',
        { overlapSeconds: -1 },
        undefined,
        400,
        'GATEWAY.INVALID_BODY',
      ],
    ];
    for (const [method, path, body, idempotencyKey, status, code] of cases) {
      const response = await call(
        BOOTSTRAP,
        method,
        path,
        body,
        idempotencyKey === undefined ? {} : { idempotencyKey },
      );
      expect([path, body, response.status, response.body.code ?? '']).toEqual([path, body, status, code]);
    }
  });
});

describe('the routes of workspaces', () => {
  it('create a workspace with a key that sees its own workspace alone', async () => {
    const created = await call(BOOTSTRAP, 'POST', '/workspaces', { id: 'acme', name: 'Acme' });
    expect(created).toMatchObject({
      status: 201,
      body: { id: 'acme', name: 'Acme', key: { role: 'admin' } },
    });
    const { token } = created.body.key;
    expect((await call(token, 'GET', '/workspaces')).body.workspaces).toMatchObject([{ id: 'acme' }]);
    expect((await call(token, 'GET', '/keys')).body.keys).toMatchObject([{ name: 'first admin' }]);
    const types = (await call(token, 'GET', '/events')).body.events.map(({ type }: { type: string }) => type);
    expect(types).toEqual(['WorkspaceCreated', 'KeyCreated']);
    expect(await call(token, 'POST', '/workspaces', { id: 'other' })).toMatchObject({
      status: 403,
      body: { code: 'GATEWAY.FORBIDDEN' },
    });
    const { body } = await call(BOOTSTRAP, 'GET', '/workspaces');
    expect(body.workspaces.map(({ id }: { id: string }) => id)).toEqual(['acme', 'default']);
    expect((await call(BOOTSTRAP, 'POST', '/workspaces', { id: 'acme' })).body.code).toBe(
      'GATEWAY.WORKSPACE_EXISTS',
    );
  });

  it('create one workspace for one idempotency key, and show the secret of its key once', async () => {
    const create = (body: object, idempotencyKey: string, gateway = 0) =>
      call(BOOTSTRAP, 'POST', '/workspaces', body, { gateway, idempotencyKey });
    const first = await create({ id: 'once', name: 'Once' }, 'w1');
    expect(first).toMatchObject({ status: 201, body: { id: 'once', key: { token: expect.any(String) } } });
    const again = await create({ id: 'once', name: 'Once' }, 'w1', 1);
    expect(again).toEqual({ status: 201, body: { ...first.body, key: { ...first.body.key, token: null } } });
    for (const body of [{ id: 'twice' }, { id: 'once', name: 'Other' }])
      expect((await create(body, 'w1')).body.code).toBe('LOG.IDEMPOTENCY_CONFLICT');
    expect((await create({ id: 'once', name: 'Once' }, 'w2')).body.code).toBe('GATEWAY.WORKSPACE_EXISTS');
    const { token } = first.body.key;
    expect((await call(token, 'GET', '/keys')).body.keys).toHaveLength(1);
    const { body } = await call(BOOTSTRAP, 'GET', '/workspaces');
    expect(body.workspaces.map(({ id }: { id: string }) => id)).not.toContain('twice');
  });
});

describe('an API key in the connect frame of a loopback gateway without a token', () => {
  const connectWith = async (token: string) => {
    const client = await connectClient(`ws://127.0.0.1:${gateways[0]!.port}/ws`);
    client.sendRaw(JSON.stringify({ id: 'c', method: 'connect', params: { token } }));
    return client;
  };

  it('decides what the connection may do, and its revocation closes the socket', async () => {
    const { body } = await call(BOOTSTRAP, 'POST', '/keys', { name: 'frame', role: 'viewer' });
    const client = await connectWith(body.token);
    client.sendRaw(JSON.stringify({ id: 2, method: 'agent.spawn', params: { name: 'Ada' } }));
    const refused = await client.waitFor('the refusal', ({ id }) => id === 2);
    expect(refused.error).toMatchObject({ code: -32003, data: { permission: 'agents:write' } });
    expect(client.received.filter(({ type }) => type === 'session.ack')).toHaveLength(1);
    expect(client.received.find(({ id }) => id === 'c')?.result).toEqual({
      connectionId: expect.any(String),
    });
    await call(BOOTSTRAP, 'DELETE', `/keys/${body.id}`);
    expect(await client.closed).toBe(4403);
  });

  it('closes the connection with 4401 if it is wrong, and other credentials are ignored', async () => {
    const wrong = await connectWith(`ak_${'a'.repeat(16)}_${'b'.repeat(43)}`);
    expect(await wrong.closed).toBe(4401);
    const other = await connectWith('sk-some-key');
    expect(await other.call('ping')).toBe('pong');
    await other.close();
  });
});

describe('the routes of audits', () => {
  const result = (auditId: string, ok: boolean) => ({
    ...{ auditId, ok, headPosition: 7, events: 7, since: null, isLive: false, durationMs: 12.5 },
    ...{ signing: 'signed', first: null },
    checks: [
      { name: 'turns-end-once', about: 'each once', counts: 'turns', checked: 3, violations: 0, open: 0 },
    ],
  });
  const sign = (report: JsonObject) => ({
    ...report,
    proof: signReport('audit', report, new Date().toISOString(), KEYS),
  });

  it('record a result once for an id, and list results newest first, also as of a position', async () => {
    const [first, second] = [randomUUID(), randomUUID()];
    const signed = sign(result(first, true));
    for (const body of [signed, signed]) {
      const recorded = await call(BOOTSTRAP, 'POST', '/audits', body);
      expect(recorded).toMatchObject({ status: 201, body: { recorded: true } });
    }
    expect(await call(BOOTSTRAP, 'POST', '/audits', sign(result(first, false)))).toMatchObject({
      status: 409,
    });
    await call(BOOTSTRAP, 'POST', '/audits', sign(result(second, false)));
    const { body } = await call(BOOTSTRAP, 'GET', '/audits');
    expect(body.audits).toMatchObject([
      { auditId: second, ok: false, recordedBy: 'key/bootstrapkeytest', checks: [{ checked: 3 }] },
      { auditId: first, ok: true },
    ]);
    const past = await call(BOOTSTRAP, 'GET', `/audits?at=${body.audits[1].position}`);
    expect(past.body.audits).toMatchObject([{ auditId: first }]);
  });

  it('name the first violation only if it is in no other workspace', async () => {
    const place = { streamId: 'session-1', streamVersion: 1, eventId: null, position: 3 };
    for (const [workspace, isNamed] of [
      ['default', true],
      [null, true],
      ['acme', false],
    ] as const) {
      const first = { check: 'turns-end-once', message: 'twice', workspace, ...place };
      const sent = sign({ ...result(randomUUID(), false), first });
      expect(await call(BOOTSTRAP, 'POST', '/audits', sent)).toMatchObject({ status: 201 });
      const { body } = await call(BOOTSTRAP, 'GET', '/audits?limit=1');
      expect(body.audits[0].first).toEqual(isNamed ? first : null);
    }
  });

  it('refuse a key that may not operate, and one of another workspace, which sees no result', async () => {
    const { body: member } = await call(BOOTSTRAP, 'POST', '/keys', { name: 'member', role: 'member' });
    expect(await call(member.token, 'POST', '/audits', result(randomUUID(), true))).toMatchObject({
      ...{ status: 403, body: { code: 'GATEWAY.FORBIDDEN' } },
    });
    const { body: other } = await call(BOOTSTRAP, 'POST', '/workspaces', { id: 'audited', name: 'Other' });
    expect(await call(other.key.token, 'POST', '/audits', result(randomUUID(), true))).toMatchObject({
      ...{ status: 403, body: { code: 'AUDIT.OTHER_WORKSPACE' } },
    });
    expect((await call(other.key.token, 'GET', '/audits')).body).toEqual({ audits: [] });
  });
});
