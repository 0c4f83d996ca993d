import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { CALLER_WROTE_SUBJECT, connectNats, type NatsLink } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { startNatsServer, type TestNatsServer } from '@antiphon/testing';
import { createFaultyLink, type FaultyLink } from '@antiphon/testing/network';
import { RecentWrites } from './recent-writes.js';

let server: TestNatsServer;
let network: FaultyLink;
let links: readonly NatsLink[];
/** Time and head of the log, as both gateways see them. */
let world: { now: number; head: number };
let one: RecentWrites;
let other: RecentWrites;

const asKey = (name: string) => ({ workspace: 'default', caller: `key/${name}` }) as never;

/** A write of a caller at a gateway, from begin to end. */
const write = (writes: RecentWrites, caller: never): Promise<number | undefined> =>
  writes.end(caller, writes.begin(caller));

beforeAll(async () => {
  server = await startNatsServer();
  network = await createFaultyLink({ targetPort: Number(new URL(server.url).port) });
  const connect = (url: string) => connectNats({ url, service: 'gateway', logger: silentLogger });
  links = await Promise.all([connect(server.url), connect(`nats://127.0.0.1:${network.port}`)]);
});
afterAll(async () => {
  network?.heal();
  await Promise.all((links ?? []).map((link) => link.drain()));
  await network?.close();
  await server?.remove();
});

beforeEach(async () => {
  world = { now: 1_000_000, head: 10 };
  const clock = { now: () => world.now };
  [one, other] = links.map(
    (link, index) =>
      new RecentWrites(link, clock as never, `gateway-${index}`, () => Promise.resolve(world.head)),
  ) as [RecentWrites, RecentWrites];
  await Promise.all(links.map((link) => link.connection.flush()));
  return () => [one, other].forEach((writes) => writes.close());
});

describe('RecentWrites', () => {
  it('tells the position of a write to a read at the other gateway, each time', async () => {
    for (let n = 1; n <= 500; n += 1) {
      world.head = n;
      const [writer, reader] = n % 2 === 0 ? [one, other] : [other, one];
      expect(await write(writer, asKey('a'))).toBe(n);
      expect(await reader.positionFor(asKey('a'))).toBe(n);
    }
  });

  it('takes the head of the log for a write whose position is not known yet', async () => {
    one.begin(asKey('b'));
    world.head = 77;
    expect(await other.positionFor(asKey('b'))).toBe(77);
  });

  it('keeps the later position of two writes of one caller at the same time', async () => {
    const [early, late] = [one.begin(asKey('j')), other.begin(asKey('j'))];
    world.head = 103;
    const ended = one.end(asKey('j'), early);
    world.head = 105;
    await other.end(asKey('j'), late);
    await ended;
    world.head = 200;
    expect(await Promise.all([one, other].map((at) => at.positionFor(asKey('j'))))).toEqual([105, 105]);
    world.head = 90; // A gateway that read the head before, and whose hint comes after.
    await write(one, asKey('j'));
    world.head = 300;
    expect(await other.positionFor(asKey('j'))).toBe(105);
  });

  it('takes the head while another write of the same caller has not ended', async () => {
    one.begin(asKey('k'));
    world.head = 20;
    await write(other, asKey('k'));
    world.head = 21;
    expect(await Promise.all([one, other].map((at) => at.positionFor(asKey('k'))))).toEqual([21, 21]);
  });

  it('knows nothing of a caller that has not written, or not for 30 s', async () => {
    await write(one, asKey('c'));
    expect(await other.positionFor(asKey('d'))).toBeUndefined();
    world.now += 30_001;
    expect(await other.positionFor(asKey('c'))).toBeUndefined();
  });

  it('tells callers of one name in two workspaces apart', async () => {
    await write(one, asKey('e'));
    expect(await other.positionFor({ workspace: 'another', caller: 'key/e' } as never)).toBeUndefined();
  });

  it('ignores a hint that is none', async () => {
    for (const text of ['', 'no JSON', '[]', '["default/key/i","now","w"]', '["default/key/i",7]', '{"a":1}'])
      links[0]?.connection.publish(CALLER_WROTE_SUBJECT, text);
    await links[0]?.connection.flush();
    expect(await other.positionFor(asKey('i'))).toBeUndefined();
    await write(one, asKey('i'));
    expect(await other.positionFor(asKey('i'))).toBe(10);
  });

  it('does without NATS: a write succeeds, and a read knows the writes of its own gateway', async () => {
    await Promise.all([write(one, asKey('f')), write(other, asKey('g'))]);
    network.cut();
    expect(await write(other, asKey('g'))).toBe(10);
    expect(await other.positionFor(asKey('g'))).toBe(10);
    network.heal();
  });

  it('reports no position if the log cannot be read: the write itself has succeeded', async () => {
    const blind = new RecentWrites(links[0] as NatsLink, { now: () => 1 } as never, 'blind', () =>
      Promise.reject(new Error('no database')),
    );
    expect(await write(blind, asKey('h'))).toBeUndefined();
    blind.close();
  });
});
