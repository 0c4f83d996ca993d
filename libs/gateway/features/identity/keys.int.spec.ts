import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createPool } from '@antiphon/database';
import { silentLogger } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { adminOf, createIdentityWorld, type IdentityWorld } from '../testing/identity-world.js';
import { parseApiKey } from '../access/api-key-text.js';
import { ensureBootstrapKey } from './bootstrap-key.js';
import type { IdentityLog } from './identity-log.js';

let world: IdentityWorld;
beforeAll(async () => {
  world = await createIdentityWorld();
  for (const id of ['acme', 'globex']) await world.workspaces.create(adminOf('default'), id, id);
}, 60_000);
afterAll(() => world.close(), 60_000);
beforeEach(() => {
  world.clock.ahead = 0;
});

const ADMIN = adminOf('acme');
const create = async (more: object = {}) => {
  const key = await world.keys.create(ADMIN, { name: 'spec', role: 'member', ...more });
  return { ...key, token: key.token! };
};
const eventsOf = (keyId: string, workspace = 'acme') => world.store.readStream(workspace, `key-${keyId}`);
const typesOf = async (keyId: string) => (await eventsOf(keyId)).map(({ type }) => type);

describe('an API key', () => {
  it('authenticates as its principal, and nothing else does', async () => {
    const key = await create({ scopes: ['sessions:read', 'keys:manage'], agentId: 'main' });
    expect(await world.identities.authenticate(key.token)).toEqual({
      caller: `key/${key.id}`,
      workspace: 'acme',
      role: 'member',
      scopes: ['sessions:read', 'keys:manage'],
      keyId: key.id,
      name: 'spec',
      agentId: 'main',
      expiresAt: null,
    });
    const last = key.token.at(-2) === 'A' ? 'B' : 'A';
    for (const wrong of [
      key.token.slice(0, -2) + last + key.token.at(-1)!,
      key.token.replace(key.id, 'aaaaaaaaaaaaaaaa'),
      `${key.token}x`,
      'ak_',
      '',
    ])
      expect([wrong, await world.identities.authenticate(wrong)]).toEqual([wrong, null]);
  });

  it('leaves its secret and its hash in no row as text, and in no event', async () => {
    const key = await create();
    const { secret } = parseApiKey(key.token)!;
    const admin = createPool({ url: world.database.url, applicationName: 'spec' });
    const { rows } = await admin.query(
      'select k::text as row, encode(secret_hash, $1) as hash from api_keys k',
      ['hex'],
    );
    const { rows: events } = await admin.query('select e::text as event from events e');
    await admin.end();
    const texts = [...rows.map(({ row }) => String(row)), ...events.map(({ event }) => String(event))].join(
      '\n',
    );
    expect(texts).not.toContain(secret);
    for (const { hash } of rows)
      expect(events.map(({ event }) => String(event)).join('\n')).not.toContain(String(hash));
  });

  it('is refused from its expiry on', async () => {
    const expiresAt = new Date(Date.now() + 60_000).toISOString();
    const key = await create({ expiresAt });
    expect(await world.identities.authenticate(key.token)).toMatchObject({
      expiresAt: Date.parse(expiresAt),
    });
    world.clock.ahead = 60_001;
    expect(await world.identities.authenticate(key.token)).toBeNull();
  });

  it('is created once for one idempotency key, and its secret is shown once', async () => {
    const body = { name: 'once', role: 'viewer' } as const;
    const first = await world.keys.create(ADMIN, body, 'k1');
    expect(await world.keys.create(ADMIN, body, 'k1')).toEqual({ ...first, token: null });
    await expect(world.keys.create(ADMIN, { ...body, name: 'other' }, 'k1')).rejects.toMatchObject({
      code: 'LOG.IDEMPOTENCY_CONFLICT',
    });
    expect((await world.keys.create(adminOf('globex'), body, 'k1')).id).not.toBe(first.id);
  });

  it.each([
    ['a higher role', { role: 'operator' }],
    ['a permission outside the scopes', { scopes: ['runs:write'] }],
    ['all permissions of the role', {}],
    [
      'a later expiry',
      { scopes: ['keys:manage'], expiresAt: new Date(Date.now() + 7_200_000).toISOString() },
    ],
  ] as const)('cannot create a key with %s', async (_name, more) => {
    const caller = adminOf('acme', {
      role: 'member',
      scopes: ['keys:manage', 'sessions:read'],
      expiresAt: Date.now() + 3_600_000,
    });
    await expect(
      world.keys.create(caller, { name: 'more', role: 'member', ...more } as never),
    ).rejects.toMatchObject({
      kind: 'forbidden',
      code: 'GATEWAY.KEY_EXCEEDS_CALLER',
    });
  });

  it('cannot rotate a key with more rights to learn its secret', async () => {
    const strong = await create({ role: 'admin' });
    const weak = adminOf('acme', { scopes: ['keys:manage'] });
    await expect(world.keys.rotate(weak, strong.id, 0)).rejects.toMatchObject({
      code: 'GATEWAY.KEY_EXCEEDS_CALLER',
    });
    expect(await world.identities.authenticate(strong.token)).not.toBeNull();
  });
});

describe('a caller that only manages keys', () => {
  // @shows review2-13-keys-of-admins
  it('revokes no key with more rights, by role or by permission, and so locks out no admin', async () => {
    const manager = adminOf('acme', { caller: 'key/manager', scopes: ['keys:manage'] });
    const admin = await create({ role: 'admin' });
    const reader = await create({ role: 'viewer', scopes: ['sessions:read'] });
    const operator = adminOf('acme', { role: 'operator', scopes: null });
    const refused = { code: 'GATEWAY.KEY_EXCEEDS_CALLER', kind: 'forbidden' };
    await expect(world.keys.revoke(manager, admin.id)).rejects.toMatchObject(refused);
    await expect(world.keys.revoke(manager, reader.id)).rejects.toMatchObject(refused);
    await expect(world.keys.revoke(operator, admin.id)).rejects.toMatchObject(refused);
    await expect(world.keys.rotate(manager, admin.id, 0)).rejects.toMatchObject(refused);
    expect(await world.identities.authenticate(admin.token ?? '')).toMatchObject({ role: 'admin' });
  });

  it('revokes keys with its own rights, also itself and keys that do not expire', async () => {
    const expiresAt = Date.now() + 3_600_000;
    const manager = adminOf('acme', { caller: 'key/manager', scopes: ['keys:manage'], expiresAt });
    const same = await create({ role: 'admin', scopes: ['keys:manage'] });
    expect((await world.keys.revoke(manager, same.id)).status).toBe('revoked');
    const session = adminOf('acme', { expiresAt });
    const admin = await create({ role: 'admin' });
    expect((await world.keys.revoke(session, admin.id)).status).toBe('revoked');
  });
});

describe('a revoked key', () => {
  it('is refused by a gateway within a second although no notification arrives', async () => {
    const other = world.otherGateway();
    const key = await create();
    expect(await other.authenticate(key.token)).not.toBeNull();
    await world.keys.revoke(ADMIN, key.id);
    const revokedAt = Date.now();
    await until(async () => (await other.authenticate(key.token)) === null);
    expect(Date.now() - revokedAt).toBeLessThan(1_000);
    expect(world.notified).toContain(key.id);
  });

  it('ends its watches within a second without a notification, and at once with one', async () => {
    const [lost, notified] = [world.otherGateway(), world.otherGateway()];
    const key = await create();
    const ended: string[] = [];
    for (const [name, gateway] of [
      ['lost', lost],
      ['notified', notified],
    ] as const)
      gateway.watch((await gateway.authenticate(key.token))!, () => ended.push(name));
    const unwatch = lost.watch((await lost.authenticate(key.token))!, () => ended.push('unwatched'));
    unwatch();
    await world.keys.revoke(ADMIN, key.id);
    const revokedAt = Date.now();
    await notified.refresh(key.id);
    expect(ended).toEqual(['notified']);
    await until(() => ended.includes('lost'));
    expect(Date.now() - revokedAt).toBeLessThan(1_000);
    expect(ended).toEqual(['notified', 'lost']);
  });

  it('stays in the list, is revoked once in the log, and cannot be rotated', async () => {
    const key = await create();
    const first = await world.keys.revoke(ADMIN, key.id);
    expect(first.status).toBe('revoked');
    expect(await world.keys.revoke(ADMIN, key.id)).toEqual(first);
    expect(await typesOf(key.id)).toEqual(['KeyCreated', 'KeyRevoked']);
    await expect(world.keys.rotate(ADMIN, key.id, 0)).rejects.toMatchObject({ code: 'GATEWAY.KEY_REVOKED' });
    const { keys } = await world.keys.list(ADMIN, { limit: 200 });
    expect(keys.find(({ id }) => id === key.id)).toEqual(first);
  });
});

describe('a rotated key', () => {
  it('refuses its former secret at once without an overlap, and ends what that secret opened', async () => {
    const gateway = world.otherGateway();
    const key = await create();
    const ended: string[] = [];
    gateway.watch((await gateway.authenticate(key.token))!, () => ended.push('former'));
    const rotated = await world.keys.rotate(ADMIN, key.id, 0);
    await gateway.refresh(key.id);
    expect(ended).toEqual(['former']);
    expect(await gateway.authenticate(key.token)).toBeNull();
    expect(await gateway.authenticate(rotated.token!)).toMatchObject({ keyId: key.id, expiresAt: null });
    expect((await eventsOf(key.id)).at(-1)).toMatchObject({
      type: 'KeyRotated',
      data: { version: 2, previousValidUntil: null, rotatedBy: 'token' },
    });
  });

  it('accepts both secrets during the overlap, and then the new one only', async () => {
    const key = await create();
    const rotated = await world.keys.rotate(ADMIN, key.id, 60);
    const former = await world.identities.authenticate(key.token);
    expect(former?.expiresAt).toBe(Date.parse(rotated.previousValidUntil!));
    const ended: string[] = [];
    world.identities.watch(former!, () => ended.push('former'));
    world.identities.watch((await world.identities.authenticate(rotated.token!))!, () => ended.push('new'));
    await world.identities.refresh(key.id);
    expect(ended).toEqual([]);
    world.clock.ahead = 60_001;
    await world.identities.refresh(key.id);
    expect(ended).toEqual(['former']);
    expect(await world.identities.authenticate(key.token)).toBeNull();
    expect(await world.identities.authenticate(rotated.token!)).not.toBeNull();
  });
});

describe('workspaces', () => {
  it('get a first admin key, which sees and changes nothing of another workspace', async () => {
    const foreign = await create();
    const { key } = await world.workspaces.create(adminOf('default'), 'initech', 'Initech');
    const admin = (await world.identities.authenticate(key.token!))!;
    expect(admin).toMatchObject({ workspace: 'initech', role: 'admin' });
    expect((await world.keys.list(admin, { limit: 200 })).keys.map(({ id }) => id)).toEqual([key.id]);
    for (const attempt of [world.keys.revoke(admin, foreign.id), world.keys.rotate(admin, foreign.id, 0)])
      await expect(attempt).rejects.toMatchObject({ kind: 'not_found', code: 'GATEWAY.KEY_NOT_FOUND' });
    await expect(
      world.keys.create(admin, { name: 'x', role: 'viewer', workspace: 'acme' }),
    ).rejects.toMatchObject({
      kind: 'forbidden',
      code: 'GATEWAY.FORBIDDEN',
    });
    await expect(world.workspaces.create(admin, 'hooli', 'Hooli')).rejects.toMatchObject({
      code: 'GATEWAY.FORBIDDEN',
    });
    expect((await world.workspaces.list(admin, { limit: 50 })).workspaces.map(({ id }) => id)).toEqual([
      'initech',
    ]);
    expect(await world.identities.authenticate(foreign.token)).not.toBeNull();
  });

  it('are listed by page to callers of default, and exist once', async () => {
    const admin = adminOf('default');
    const first = await world.workspaces.list(admin, { limit: 2 });
    expect(first.workspaces.map(({ id }) => id)).toEqual(['acme', 'default']);
    const second = await world.workspaces.list(admin, { limit: 50, cursor: first.nextCursor! });
    expect(second.workspaces[0]?.id).toBe('globex');
    await expect(world.workspaces.create(admin, 'acme', 'Acme')).rejects.toMatchObject({
      code: 'GATEWAY.WORKSPACE_EXISTS',
    });
    await expect(
      world.keys.create(admin, { name: 'x', role: 'viewer', workspace: 'none' }),
    ).rejects.toMatchObject({
      code: 'GATEWAY.WORKSPACE_NOT_FOUND',
    });
  });
});

describe('the tables of identities', () => {
  it('return no row to a statement that names no workspace, and only its own to one that does', async () => {
    await create();
    expect((await world.pool.query('select * from api_keys')).rows).toEqual([]);
    const { rows } = await world.pool.query(
      `with setting as materialized (select set_config('antiphon.workspace', 'globex', false))
       select distinct k.workspace from setting, api_keys k`,
    );
    expect(rows.filter(({ workspace }) => workspace !== 'globex')).toEqual([]);
  });

  it.each(['agent', 'sandbox', 'metering', 'memory', 'reader'] as const)(
    'refuse the role of %s',
    async (role) => {
      const pool = createPool({ url: world.database.urlFor(role), applicationName: 'spec' });
      for (const sql of [
        'select * from api_keys',
        'select * from workspaces',
        `select antiphon_find_keys('{}')`,
      ])
        await expect(pool.query(sql)).rejects.toMatchObject({ code: '42501' });
      await pool.end();
    },
  );
});

/** A log that loses a fact before it is written, or the response after it. */
const failingLog = (when: 'before' | 'after'): IdentityLog => ({
  ...world.log,
  appendKeyFact: async (...fact) => {
    if (when === 'after') await world.log.appendKeyFact(...fact);
    throw new Error('killed');
  },
});

describe('a change that a crash interrupts', () => {
  const MINUTE = 61_000;

  it.each([
    ['before', [], null],
    ['after', ['KeyCreated'], 'member'],
  ] as const)(
    'makes no valid key, and the sweep settles it by the log, %s its fact',
    async (when, facts, role) => {
      const keyId = when === 'before' ? 'aaaaaaaaaaaaaaab' : 'aaaaaaaaaaaaaaac';
      const secret = 'x'.repeat(43);
      const key = {
        keyId,
        workspace: 'acme',
        name: 'crash',
        role: 'member',
        scopes: null,
        agentId: null,
        expiresAt: null,
      } as const;
      await expect(world.registryWith(failingLog(when)).issue(key, secret, 'spec')).rejects.toThrow('killed');
      const token = `ak_${keyId}_${secret}`;
      expect(await world.otherGateway().authenticate(token)).toBeNull();
      world.clock.ahead = MINUTE;
      await world.sweep.run();
      expect((await world.otherGateway().authenticate(token))?.role ?? null).toBe(role);
      expect(await typesOf(keyId)).toEqual(facts);
    },
  );

  it.each(['before', 'after'] as const)(
    'refuses a revoked key, and the sweep records it, %s its fact',
    async (when) => {
      const key = await create();
      await expect(world.registryWith(failingLog(when)).revoke(ADMIN, key.id)).rejects.toThrow('killed');
      expect(await world.otherGateway().authenticate(key.token)).toBeNull();
      world.clock.ahead = MINUTE;
      await world.sweep.run();
      await world.sweep.run();
      expect(await typesOf(key.id)).toEqual(['KeyCreated', 'KeyRevoked']);
    },
  );

  it.each([
    ['before', 1],
    ['after', 2],
  ] as const)('leaves a rotated key with one valid secret, %s its fact', async (when, version) => {
    const key = await create();
    await expect(world.registryWith(failingLog(when)).rotate(ADMIN, key.id, 0)).rejects.toThrow('killed');
    expect(await world.otherGateway().authenticate(key.token)).not.toBeNull();
    await expect(world.keys.rotate(ADMIN, key.id, 0)).rejects.toMatchObject({ code: 'GATEWAY.KEY_CHANGING' });
    world.clock.ahead = MINUTE;
    await world.sweep.run();
    expect((await world.otherGateway().authenticate(key.token)) === null).toBe(version === 2);
    const rotated = await world.keys.rotate(ADMIN, key.id, 0);
    expect((await eventsOf(key.id)).at(-1)?.data).toMatchObject({ version: version + 1 });
    expect(await world.otherGateway().authenticate(rotated.token!)).not.toBeNull();
  });

  it('leaves no row of a revoked or expired key after 90 days', async () => {
    const key = await create();
    await world.keys.revoke(ADMIN, key.id);
    world.clock.ahead = 91 * 24 * 3_600_000;
    await world.sweep.run();
    await expect(world.keys.revoke(ADMIN, key.id)).rejects.toMatchObject({ code: 'GATEWAY.KEY_NOT_FOUND' });
    expect(await typesOf(key.id)).toEqual(['KeyCreated', 'KeyRevoked']);
  });
});

describe('the bootstrap key', () => {
  const text = { keyId: 'bootstrapkeytest', secret: 'b'.repeat(43) };
  const token = `ak_${text.keyId}_${text.secret}`;
  const ensure = () => ensureBootstrapKey(text, world.keys, world.log, silentLogger);

  it('becomes an admin key of default once, also when several gateways start at once', async () => {
    await Promise.all([ensure(), ensure(), ensure()]);
    await ensure();
    expect(await world.identities.authenticate(token)).toMatchObject({ workspace: 'default', role: 'admin' });
    expect(await eventsOf(text.keyId, 'default')).toHaveLength(1);
  });

  it('stays revoked at the next start, also after its row was deleted', async () => {
    await world.keys.revoke(adminOf('default'), text.keyId);
    await ensure();
    expect(await world.otherGateway().authenticate(token)).toBeNull();
    world.clock.ahead = 91 * 24 * 3_600_000;
    await world.sweep.run();
    await ensure();
    expect(await world.otherGateway().authenticate(token)).toBeNull();
  });
});
