import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '@antiphon/testing';
import { connectPeer, startSocketServer, upgrade } from '../testing/socket-server-world.js';

const SERVER = fileURLToPath(new URL('fixtures/socket-server.mjs', import.meta.url));
/** 10,000 at night. */
const UPGRADES = Number(process.env['ANTIPHON_UPGRADES'] ?? 1_500);
/** Peers that are connected at the same time. */
const AT_ONCE = 250;

/** Sends an upgrade, and bytes that the server does not read. Resolves with the status line. */
const refuse = async (port: number, request: string): Promise<{ socket: Socket; status: string }> => {
  const socket = await connectPeer(port);
  socket.write(`${request}unread`);
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  return { socket, status: chunk.toString('utf8').slice(0, 12) };
};

describe('a server of another process', () => {
  let child: ChildProcess;
  let port: number;
  beforeAll(async () => {
    child = fork(SERVER, { execArgv: [] });
    const [message] = (await once(child, 'message')) as [{ port: number }];
    port = message.port;
  });
  afterAll(() => void child.kill('SIGKILL'));

  const countDescriptors = (): number => readdirSync(`/proc/${child.pid}/fd`).length;

  it(`has no descriptor left after ${UPGRADES} refused upgrades of peers that never end their side`, async () => {
    (await refuse(port, upgrade('/ws', 'Authorization: Bearer wrong\r\n'))).socket.destroy();
    await until(() => countDescriptors() < 40);
    const before = countDescriptors();
    const statuses = new Set<string>();
    for (let sent = 0; sent < UPGRADES; sent += AT_ONCE) {
      const requests = Array.from({ length: AT_ONCE }, () => refuse(port, upgrade('/other')));
      const refused = await Promise.all(requests);
      for (const { status } of refused) statuses.add(status);
      // The peers are still connected: only the server's own end of a connection frees it.
      await until(() => countDescriptors() <= before);
      for (const { socket } of refused) socket.destroy();
    }
    expect([...statuses]).toEqual(['HTTP/1.1 404']);
  }, 120_000);

  it('stops within 3 s while 64 peers do not answer its close frames', async () => {
    const peers = await Promise.all(
      Array.from({ length: 64 }, async () => {
        const socket = await connectPeer(port);
        socket.write(upgrade('/ws'));
        await once(socket, 'data');
        return socket;
      }),
    );
    child.send('stop');
    const [{ stopMs }] = (await once(child, 'message')) as [{ stopMs: number }];
    expect(stopMs).toBeLessThan(3_000);
    for (const peer of peers) peer.destroy();
  });
});

describe('a socket that has not authenticated', () => {
  it('is destroyed when it does not answer the close frame of the timeout', async () => {
    const server = await startSocketServer();
    const peer = await connectPeer(server.port);
    peer.write(upgrade('/ws'));
    peer.resume();
    const began = performance.now();
    await once(peer, 'end');
    expect(performance.now() - began).toBeLessThan(8_500);
    peer.destroy();
    await server.close();
  });
});
