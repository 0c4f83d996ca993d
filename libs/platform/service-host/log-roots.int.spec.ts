import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createPublicKey } from 'node:crypto';
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOG_ROOT_SUBJECT } from '@antiphon/contracts/log';
import { hashRecord, isSignedBy, loadSigningKeys, LogTree } from '@antiphon/event-store';
import type { SignedTreeRoot } from '@antiphon/event-store';
import { findSigningKeys, readLogRootsEnv } from './log-roots.module.js';
import type { RootSigner } from './sign-log-roots.js';
import { RootsWorld, type SignerSettings } from './testing/roots-world.js';

let world: RootsWorld;
beforeEach(async () => {
  world = await RootsWorld.open();
});
afterEach(() => world.close());

const keyFile = () => join(world.folder, 'credentials', 'log-signing.key');
const signer = (owner: string, more: Partial<SignerSettings> = {}): RootSigner =>
  world.createSigner({ owner, keys: loadSigningKeys(keyFile()), ...more });

/** Signs the empty log with record 1, as the first start of a service does. */
const signBegin = async (): Promise<SignedTreeRoot> => {
  const first = (await signer('begin').sign())!;
  await world.stopSigners();
  return first;
};

describe("the log's root", () => {
  it('is signed to the file, the table and the subject, and again only after the log has grown', async () => {
    const told = world.link.connection.subscribe(LOG_ROOT_SUBJECT, { max: 1 });
    const one = signer('one');
    const first = await one.sign();
    expect(first).toMatchObject({
      format: 2,
      kind: 'root',
      number: 1,
      epoch: 1,
      position: 0,
      previous: null,
    });
    expect(await one.sign()).toBeNull();
    await world.remember();
    const second = await one.sign();
    expect(second).toMatchObject({ number: 2, position: 1, previous: hashRecord(first!) });
    expect(world.roots()).toEqual([first, second]);
    for await (const message of told) expect(message.json()).toEqual(first);
    const { rows } = await world.pool.query<{ root: unknown }>('select root from log_roots order by number');
    expect(rows.map(({ root }) => root)).toEqual([first, second]);
  });

  it('covers position, time, workspace and hash of every event', async () => {
    await signBegin();
    for (let i = 0; i < 5; i++) await world.remember();
    const signed = await signer('one').sign();
    const tree = new LogTree();
    for (const event of await world.log.readLog({ after: 0, limit: 10 })) tree.add(event);
    expect(signed).toMatchObject({ base: 0, root: tree.hash(), peaks: tree.save().peaks });
  });

  it('is signed for an empty log, and by the next process over the chain of the one before', async () => {
    const [one, two] = [signer('one'), signer('two')];
    const first = await one.sign();
    expect(first).toMatchObject({ position: 0, number: 1 });
    await world.remember();
    expect(await two.sign()).toBeNull();
    await one.stop();
    expect(world.roots().at(-1)).toMatchObject({ position: 1, number: 2 });
    await world.remember();
    expect(await two.sign()).toMatchObject({
      position: 3 - 1,
      number: 3,
      previous: hashRecord(world.roots()[1]!),
    });
  });

  it('completes the file from the table', async () => {
    await signBegin();
    const [line] = readFileSync(world.rootsFile, 'utf8').split('\n');
    await world.remember();
    await signer('one').sign();
    await world.stopSigners();
    writeFileSync(world.rootsFile, `${line}\n`);
    await world.remember();
    expect(await signer('two').sign()).toMatchObject({ number: 3, position: 2 });
    expect(world.roots().map(({ number }) => number)).toEqual([1, 2, 3]);
  });

  it('begins before the first event of a log in use, after the events of an installation', async () => {
    await world.remember('KeyCreated');
    const one = signer('one');
    expect(await one.sign()).toMatchObject({ number: 1, position: 1 });
    await world.remember();
    expect(await one.sign()).toMatchObject({ number: 2, position: 2 });
  });

  // @shows review1-20
  it('begins on a new line after a torn one', async () => {
    const one = signer('one');
    await one.sign();
    appendFileSync(world.rootsFile, '{"format":2,"num');
    await world.remember();
    await one.sign();
    const lines = readFileSync(world.rootsFile, 'utf8').trim().split('\n');
    expect(lines).toHaveLength(3);
    expect(JSON.parse(lines[2]!)).toMatchObject({ number: 2 });
  });

  it('is verifiable with the public key; a changed root, another key or type of signature fails', async () => {
    const keys = loadSigningKeys(keyFile());
    const signed = (await signer('one', { keys }).sign()) as SignedTreeRoot;
    const publicKey = createPublicKey(keys.privateKey);
    expect(isSignedBy(signed, publicKey)).toBe(true);
    expect(isSignedBy({ ...signed, position: 2 } as SignedTreeRoot, publicKey)).toBe(false);
    expect(isSignedBy({ ...signed, signature: 7 } as never, publicKey)).toBe(false);
    const other = createPublicKey(loadSigningKeys(join(world.folder, 'other.key')).privateKey);
    expect(isSignedBy(signed, other)).toBe(false);
  });
});

describe('the signer', () => {
  const refuse = async (change: string, reason: string): Promise<void> => {
    await signBegin();
    for (let i = 0; i < 3; i++) await world.remember();
    const one = signer('one');
    await one.sign();
    await world.tamper(change);
    await world.remember();
    expect(await one.sign()).toBeNull();
    expect(one.refusal()).toContain(reason);
    expect(world.roots()).toHaveLength(2);
    // The same after a restart, which reads the records again.
    await one.stop();
    const two = signer('two');
    expect(await two.sign()).toBeNull();
    expect(two.refusal()).toContain(reason);
  };

  it('refuses to sign over a changed event', () =>
    refuse(`update events set hash = sha256(hash) where position = 2`, 'is not what record 2 signed'));

  it('refuses to sign over a changed time', () =>
    refuse(
      `update events set recorded_at = now() - interval '1 day' where position = 1`,
      'is not what record 2 signed',
    ));

  it('refuses to sign over a removed event', () =>
    refuse(`delete from events where position = 2`, 'the log has no event at position 2'));

  it('refuses to sign another epoch without a signed record that continues the old one', () =>
    refuse(`update log_head set epoch = 2`, 'no signed record continues epoch 1'));

  it('refuses after the newest events were removed', async () => {
    await signBegin();
    for (let i = 0; i < 3; i++) await world.remember();
    const one = signer('one');
    await one.sign();
    await world.tamper(`delete from events where position > 1`);
    expect(await one.sign()).toBeNull();
    expect(one.refusal()).toBe('the log ends at position 1; a root was signed at position 3');
  });

  it('finds a change of old events in portions', async () => {
    await signBegin();
    for (let i = 0; i < 9; i++) await world.remember();
    const one = signer('one', { recheckEvents: 4 });
    await one.sign();
    await world.remember();
    await one.sign();
    await world.remember();
    await one.sign();
    await world.tamper(`update events set hash = sha256(hash) where position = 3`);
    const seen: (string | null)[] = [];
    for (let i = 0; i < 8 && one.refusal() === null; i++) {
      await one.sign();
      seen.push(one.refusal());
    }
    expect(one.refusal()).toContain('is not what record');
  });
});

describe('the signing key', () => {
  it('is created once, readable by its owner only', () => {
    const made = loadSigningKeys(keyFile());
    expect(statSync(keyFile()).mode & 0o777).toBe(0o600);
    expect(loadSigningKeys(keyFile()).privateKey.equals(made.privateKey)).toBe(true);
  });

  it('is rejected by file name when it is invalid, without its content', () => {
    const file = join(world.folder, 'bad.key');
    writeFileSync(file, 'no key at all');
    expect(() => loadSigningKeys(file)).toThrow(/bad\.key must hold an Ed25519 private key/);
  });

  it('and the file of roots are in the home by default', () => {
    expect(readLogRootsEnv({ ANTIPHON_HOME: '/h', ANTIPHON_LOG_ROOT_EVERY_S: '' })).toEqual({
      keyText: null,
      keyFile: '/h/credentials/log-signing.key',
      createsKey: false,
      rootsFile: '/h/log-roots.jsonl',
      reportKeyText: null,
      everyMs: 600_000,
    });
    expect(() => readLogRootsEnv({ ANTIPHON_HOME: '/h', ANTIPHON_LOG_ROOT_EVERY_S: '0' })).toThrow(
      /ANTIPHON_LOG_ROOT_EVERY_S/,
    );
  });

  // @shows review1-4
  it('is created only in a home that persists, and never under a name of the configuration', () => {
    const find = (env: Record<string, string>) =>
      findSigningKeys(readLogRootsEnv({ ANTIPHON_HOME: world.folder, ...env }));
    expect(find({})).toBeNull();
    const named = {
      ANTIPHON_HOME_PERSISTENT: '1',
      ANTIPHON_LOG_SIGNING_KEY_FILE: join(world.folder, 'mounted.key'),
    };
    expect(find(named)).toBeNull();
    expect(find({ ANTIPHON_HOME_PERSISTENT: '1' })).not.toBeNull();
    expect(find({})).not.toBeNull();
  });

  it('is read from a variable, with the public keys of its predecessors', () => {
    const [now, before] = [loadSigningKeys(keyFile()), loadSigningKeys(join(world.folder, 'old.key'))];
    const text = [
      now.privateKey.export({ type: 'pkcs8', format: 'pem' }),
      createPublicKey(before.privateKey).export({ type: 'spki', format: 'pem' }),
    ].join('');
    const env = {
      ANTIPHON_HOME: world.folder,
      ANTIPHON_LOG_SIGNING_KEY: Buffer.from(text).toString('base64'),
    };
    const keys = findSigningKeys(readLogRootsEnv(env));
    expect(keys?.privateKey.equals(now.privateKey)).toBe(true);
    expect(keys?.publicKeys).toHaveLength(2);
  });
});
