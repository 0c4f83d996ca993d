import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import pg from 'pg';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore, type EventStore, type EventStorePg } from '@antiphon/event-store';
import { createTestDatabase, freshStream, type TestDatabase, toStream } from '@antiphon/testing';

const workspace = 'default';

/** A proxy to the database that can lose the next response after the server has sent it. */
interface Proxy {
  readonly url: string;
  loseNextResponse(): void;
  /** Closes open connections and refuses new ones. */
  cut(): Promise<void>;
  close(): Promise<void>;
}

const startProxy = async (url: string): Promise<Proxy> => {
  const { hostname, port } = new URL(url);
  const open = new Set<Socket>();
  let isLosing = false;
  const server: Server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => open.delete(socket));
    }
    client.pipe(upstream);
    client.on('close', () => upstream.destroy());
    upstream.on('data', (bytes) => {
      if (isLosing) {
        isLosing = false;
        client.destroy();
      } else client.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const own = new URL(url);
  own.port = String((server.address() as AddressInfo).port);
  const cut = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of open) socket.destroy();
    await closed;
  };
  return { url: own.href, loseNextResponse: () => void (isLosing = true), cut, close: cut };
};

describe('an append whose response is lost', () => {
  let database: TestDatabase;
  let proxy: Proxy;
  let pool: pg.Pool;
  let store: EventStore & EventStorePg;
  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await startProxy(database.urlFor('agent'));
    pool = createPool({ url: proxy.url, applicationName: 'spec', max: 2, lockTimeoutMs: 300 });
    store = createPostgresEventStore(pool, { resolveWithinMs: 400 });
  }, 60_000);
  afterAll(async () => {
    await pool.end();
    await database.drop();
  }, 60_000);

  it('returns the result of the commit and is written once', async () => {
    const appendAll = (streamIds: readonly string[]) =>
      Promise.all(
        streamIds.map((streamId) => store.append({ workspace, streams: [toStream(streamId, 0, 2)] })),
      );
    // Two callers that shared a batch share the next one, too.
    await appendAll([freshStream(), freshStream()]);
    const streams = [freshStream(), freshStream()];
    proxy.loseNextResponse();
    const results = await appendAll(streams);
    expect(results.map(({ outcome, versions }) => [outcome, versions])).toEqual([
      ['duplicate', [2]],
      ['duplicate', [2]],
    ]);
    for (const streamId of streams) expect(await store.streamVersion(workspace, streamId)).toBe(2);
  });

  it('rejects with its own version conflict', async () => {
    const streamId = freshStream();
    await store.append({ workspace, streams: [toStream(streamId, 0)] });
    proxy.loseNextResponse();
    await expect(store.append({ workspace, streams: [toStream(streamId, 0)] })).rejects.toMatchObject({
      code: 'LOG.VERSION_CONFLICT',
    });
  });

  it('rejects only the request whose lock was not granted in time', async () => {
    const [stuck, free] = [freshStream(), freshStream()];
    await store.append({ workspace, streams: [toStream(stuck, 0)] });
    const holder = new pg.Client({ connectionString: database.url });
    await holder.connect();
    await holder.query('begin');
    await holder.query('select from stream_heads where stream_id = $1 for update', [stuck]);
    const [waiting, passing] = await Promise.allSettled([
      store.append({ workspace, streams: [toStream(stuck, 1)] }),
      store.append({ workspace, streams: [toStream(free, 0)] }),
    ]);
    await holder.query('rollback');
    await holder.end();
    expect(waiting).toMatchObject({
      status: 'rejected',
      reason: { kind: 'transient', code: 'LOG.UNAVAILABLE' },
    });
    expect(passing).toMatchObject({ status: 'fulfilled' });
    expect(await store.append({ workspace, streams: [toStream(stuck, 1)] })).toMatchObject({ versions: [2] });
  });

  it('rejects as unavailable when its outcome stays unknown', async () => {
    proxy.loseNextResponse();
    const unknown = store.append({ workspace, streams: [toStream(freshStream(), 0)] });
    setImmediate(() => void proxy.cut());
    await expect(unknown).rejects.toMatchObject({ kind: 'transient', code: 'LOG.UNAVAILABLE' });
    await expect(store.append({ workspace, streams: [toStream(freshStream(), 0)] })).rejects.toMatchObject({
      kind: 'transient',
      code: 'LOG.UNAVAILABLE',
    });
    await expect(store.headPosition()).rejects.toMatchObject({ code: 'LOG.UNAVAILABLE' });
  });
});
