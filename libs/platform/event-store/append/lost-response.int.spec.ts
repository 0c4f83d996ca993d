import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import pg from 'pg';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore, type EventStore, type EventStorePg } from '@antiphon/event-store';
import { createTestDatabase, freshStream, type TestDatabase, toStream } from '@antiphon/testing';

const workspace = 'default';

/** A wire to the database that can be told to lose the next answer, after the server has given it. */
interface Wire {
  readonly url: string;
  loseNextAnswer(): void;
  /** Refuses connections and cuts those that are open. */
  cut(): Promise<void>;
  close(): Promise<void>;
}

const startWire = async (url: string): Promise<Wire> => {
  const { hostname, port } = new URL(url);
  const open = new Set<Socket>();
  let losing = false;
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
      if (losing) {
        losing = false;
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
  return { url: own.href, loseNextAnswer: () => void (losing = true), cut, close: cut };
};

describe('an append whose answer is lost', () => {
  let database: TestDatabase;
  let wire: Wire;
  let pool: pg.Pool;
  let store: EventStore & EventStorePg;
  beforeAll(async () => {
    database = await createTestDatabase();
    wire = await startWire(database.urlFor('agent'));
    pool = createPool({ url: wire.url, applicationName: 'spec', max: 2, lockTimeoutMs: 300 });
    store = createPostgresEventStore(pool, { resolveWithinMs: 400 });
  }, 60_000);
  afterAll(async () => {
    await pool.end();
    await database.drop();
  }, 60_000);

  it('is answered with the result of the commit that had happened, and is written once', async () => {
    await store.append({ workspace, streams: [toStream(freshStream(), 0)] });
    const streams = [freshStream(), freshStream()];
    wire.loseNextAnswer();
    const results = await Promise.all(
      streams.map((streamId) => store.append({ workspace, streams: [toStream(streamId, 0, 2)] })),
    );
    expect(results.map(({ outcome, versions }) => [outcome, versions])).toEqual([
      ['duplicate', [2]],
      ['duplicate', [2]],
    ]);
    for (const streamId of streams) expect(await store.streamVersion(workspace, streamId)).toBe(2);
  });

  it('keeps its conflict to itself', async () => {
    const streamId = freshStream();
    await store.append({ workspace, streams: [toStream(streamId, 0)] });
    wire.loseNextAnswer();
    await expect(store.append({ workspace, streams: [toStream(streamId, 0)] })).rejects.toMatchObject({
      code: 'LOG.VERSION_CONFLICT',
    });
  });

  it('pins a lock that is not given in time to the request that waits for it', async () => {
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

  it('is refused as unavailable, and says so when nobody knows what became of it', async () => {
    wire.loseNextAnswer();
    const unknown = store.append({ workspace, streams: [toStream(freshStream(), 0)] });
    setImmediate(() => void wire.cut());
    await expect(unknown).rejects.toMatchObject({ kind: 'transient', code: 'LOG.UNAVAILABLE' });
    await expect(store.append({ workspace, streams: [toStream(freshStream(), 0)] })).rejects.toMatchObject({
      kind: 'transient',
      code: 'LOG.UNAVAILABLE',
    });
    await expect(store.headPosition()).rejects.toMatchObject({ code: 'LOG.UNAVAILABLE' });
  });
});
