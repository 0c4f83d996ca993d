import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '@antiphon/observability';
import { DiskWorld, LIMITS, WORKSPACE } from '../testing/disk-world.js';
import { RewindFiles } from './rewind-files.handler.js';

const MINE = randomUUID();
const THEIRS = randomUUID();

let world: DiskWorld;
let rewind: RewindFiles;

beforeEach(() => {
  world = new DiskWorld();
  const { store, trees: files } = world;
  rewind = new RewindFiles(files, store, { files: LIMITS } as never, systemClock);
});
afterEach(() => world.close());

/** Appends an event to a session; its version is what a rewind names. */
const sessionEvent = async (sessionId = MINE): Promise<number> => {
  const metadata = { correlationId: 'spec', service: 'agent' };
  const { versions } = await world.store.append({
    workspace: WORKSPACE,
    streams: [
      {
        streamId: `session-${sessionId}`,
        expectedVersion: 'any',
        events: [{ eventId: randomUUID(), type: 'Spec', schemaVersion: 1, data: {}, metadata }],
      },
    ],
  });
  return versions[0] ?? 0;
};
const write = async (sessionId: string, path: string, text: string): Promise<void> => {
  const { digest, size } = await world.trees.putBytes(WORKSPACE, Buffer.from(text));
  await world.change([{ op: 'write', path, digest, size }], { actor: 'local', sessionId });
};
const request = (at: number, more: object = {}) =>
  rewind.handle({ workspace: WORKSPACE, sessionId: MINE, at, dryRun: false, actor: 'key/k1', ...more });

describe('a rewind of the files of a session', () => {
  // @shows chats-C10
  it('restores its files as of an event, also deleted ones, and removes new ones', async () => {
    await write(MINE, 'kept', 'one');
    await write(MINE, 'gone', 'one');
    const at = await sessionEvent();
    await sessionEvent();
    await write(MINE, 'kept', 'two');
    await world.change([{ op: 'delete', path: 'gone' }], { actor: 'local', sessionId: MINE });
    await write(MINE, 'new', 'two');
    const reply = await request(at);
    expect(reply.files.map(({ path, change }) => `${path} ${change}`)).toEqual([
      'new deleted',
      'gone restored',
      'kept restored',
    ]);
    expect([reply.conflicts, await world.tree()]).toEqual([[], { gone: 'one', kept: 'one' }]);
  });

  // @shows chats-C10
  it('leaves newer changes of others and lists them', async () => {
    const at = await sessionEvent();
    await write(MINE, 'shared', 'mine');
    await write(THEIRS, 'shared', 'theirs');
    await write(THEIRS, 'other', 'theirs');
    const reply = await request(at);
    expect(reply.conflicts).toEqual([
      { path: 'shared', reason: 'newer_change', detail: 'local', version: 2, sessionId: THEIRS },
    ]);
    expect(await world.tree()).toEqual({ other: 'theirs', shared: 'theirs' });
  });

  it('lists a path whose name another file has taken', async () => {
    await write(MINE, 'a', 'one');
    const at = await sessionEvent();
    await world.change([{ op: 'delete', path: 'a' }], { actor: 'local', sessionId: MINE });
    await write(THEIRS, 'a/b', 'theirs');
    const { conflicts } = await request(at);
    expect(conflicts).toEqual([
      { path: 'a', reason: 'refused', detail: 'FILE.IS_FOLDER', version: null, sessionId: null },
    ]);
    expect(await world.tree()).toEqual({ 'a/b': 'theirs' });
  });

  it('is taken back by another rewind', async () => {
    await write(MINE, 'a', 'one');
    const first = await sessionEvent();
    await write(MINE, 'a', 'two');
    const second = await sessionEvent();
    await request(first);
    expect(await world.tree()).toEqual({ a: 'one' });
    await request(second);
    expect(await world.tree()).toEqual({ a: 'two' });
  });

  it('changes nothing in a dry run, and once for each idempotency key', async () => {
    const at = await sessionEvent();
    await write(MINE, 'a', 'one');
    expect((await request(at, { dryRun: true })).files).toHaveLength(1);
    expect(await world.tree()).toEqual({ a: 'one' });
    const first = await request(at, { idempotencyKey: 'k' });
    await write(MINE, 'b', 'one');
    expect(await request(at, { idempotencyKey: 'k' })).toEqual(first);
    expect(await world.tree()).toEqual({ b: 'one' });
  });

  it('refuses an unknown session and a version that is too new', async () => {
    await expect(request(1)).rejects.toMatchObject({ code: 'SESSION.NOT_FOUND' });
    await sessionEvent();
    await expect(request(2)).rejects.toMatchObject({ code: 'SESSION.NO_SUCH_VERSION' });
  });
});
