import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { until } from '../waits.js';
import { createFaultyLink, natsName, postgresName } from './faulty-link.js';
import type { FaultyLink } from './faulty-link.js';

let echo: Server;
let link: FaultyLink;
const clients: Socket[] = [];
let accepted: Socket[] = [];

beforeEach(async () => {
  accepted = [];
  echo = createServer((socket) => {
    accepted.push(socket);
    socket.on('error', () => undefined).pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(echo, 'listening');
  link = await createFaultyLink({
    targetPort: (echo.address() as AddressInfo).port,
    nameOf: (head) => /^(\w+):/.exec(head)?.[1] ?? null,
  });
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await link.close();
  echo.close();
});

const connectAs = (name: string) => {
  const socket = connect(link.port, '127.0.0.1');
  clients.push(socket);
  let received = '';
  let error: string | undefined;
  let hasEnded = false;
  socket.on('end', () => (hasEnded = true));
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  socket.on('error', (failure: NodeJS.ErrnoException) => (error = failure.code));
  socket.write(`${name}:`);
  return {
    write: (text: string) => socket.write(text),
    received: () => received,
    error: () => error,
    hasEnded: () => hasEnded,
  };
};

describe('a faulty link', () => {
  it('passes all data in order while it is delayed', async () => {
    const ann = connectAs('ann');
    link.delay({ ms: 2, jitterMs: 2 });
    for (let i = 0; i < 20; i++) ann.write(`${i} `);
    await until(() => Promise.resolve(ann.received().endsWith('19 ')));
    expect(ann.received()).toBe(`ann:${Array.from({ length: 20 }, (_, i) => `${i} `).join('')}`);
  });

  it('holds the data of one client during a cut, and loses none', async () => {
    const [ann, bob] = [connectAs('ann'), connectAs('bob')];
    await until(() => Promise.resolve(ann.received() !== '' && bob.received() !== ''));
    expect([link.connections('ann'), link.connections()]).toEqual([1, 2]);
    link.cut('ann');
    ann.write('held');
    bob.write('through');
    await until(() => Promise.resolve(bob.received() === 'bob:through'));
    expect(ann.received()).toBe('ann:');
    link.heal();
    await until(() => Promise.resolve(ann.received() === 'ann:held'));
  });

  it('closes while data is delayed for a server that has gone', async () => {
    const ann = connectAs('ann');
    await until(() => Promise.resolve(ann.received() !== ''));
    link.delay({ ms: 50, jitterMs: 0 });
    ann.write('x'.repeat(1_000_000));
    for (const socket of accepted) socket.destroy();
    await until(() => Promise.resolve(ann.hasEnded()));
    await link.close();
    link = await createFaultyLink({ targetPort: (echo.address() as AddressInfo).port });
  });

  it('resets connections', async () => {
    const ann = connectAs('ann');
    await until(() => Promise.resolve(ann.received() !== ''));
    expect(link.reset(() => true)).toBe(1);
    await until(() => Promise.resolve(ann.error() === 'ECONNRESET'));
  });

  it('reads the names of services from their first bytes', () => {
    expect(natsName('CONNECT {"name":"agent","user":"x"}')).toBe('agent');
    expect(
      postgresName('user\0postgres\0database\0antiphon_spec\0options\0-c role=antiphon_metering\0'),
    ).toBe('metering');
    expect(postgresName('user\0antiphon_agent\0database\0antiphon_spec')).toBe('agent');
    expect([natsName('PING'), postgresName('user\0postgres\0database\0antiphon_spec')]).toEqual([null, null]);
  });
});
