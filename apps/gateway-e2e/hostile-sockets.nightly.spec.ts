import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { checkFigure, percentile, report } from '@antiphon/testing/load';
import type { TestStack } from '@antiphon/testing/stack';
import { letTimePass, until } from '@antiphon/testing/waits';
import { WebSocket } from 'ws';
import { scriptedConfig, startStackWith } from './stack-under-test.js';

const TOKEN = 'correct-horse-battery-staple-of-32';
const HEADERS = { authorization: `Bearer ${TOKEN}` };
const HOSTILE = 1_000;
const CONTROL_MS = 5_000;
const ATTACK_MS = 20_000;
const PING_EVERY_MS = 20;
const PROMISED_P99_MS = 1_000;
/** The p99 without hostile sockets shows the noise of the machine. Above this cap it shows nothing. */
const MAX_ALLOWANCE_MS = 500;
const IDLE = 10_000;
const OPEN_AT_ONCE = 200;
const MIB = 1024 * 1024;

const CONFIG = scriptedConfig(
  `
[[agents]]
id = "main"
provider = "scripted"
model = "scripted"
`,
  `token = "${TOKEN}"`,
);

let stack: TestStack;
let healthy: SocketClient;
beforeAll(async () => {
  stack = await startStackWith(CONFIG);
  healthy = await connectClient(stack.wsUrl, HEADERS);
  await healthy.waitFor('the ack', ({ type }) => type === 'session.ack');
});
afterAll(async () => {
  await healthy?.close();
  await stack?.stop();
});

const measurePings = async (ms: number): Promise<number> => {
  const took: number[] = [];
  for (const end = performance.now() + ms; performance.now() < end; await letTimePass(PING_EVERY_MS)) {
    const began = performance.now();
    expect(await healthy.call('ping')).toBe('pong');
    took.push(performance.now() - began);
  }
  return percentile(took, 0.99);
};

const UPGRADE =
  'GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';
const POST = 'POST /api/v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n';
/** A masked text frame of one byte that is not the last of its message. */
const FRAGMENT = Buffer.from([0x01, 0x81, 0, 0, 0, 0, 0x78]);
const CONTINUATION = Buffer.from([0x00, 0x81, 0, 0, 0, 0, 0x78]);
/** The header of a masked frame of 4 MiB, and a part of it. */
const OVERSIZED = Buffer.concat([
  Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0]),
  Buffer.alloc(64 * 1024),
]);

/** Bytes that a hostile peer writes: first, and then at each step. */
interface Attack {
  readonly first: string | Buffer;
  readonly step: (nth: number) => string | Buffer | null;
  readonly everyMs: number;
}
const ATTACKS: readonly Attack[] = [
  { first: POST, step: (nth) => `X-${nth}: y\r\n`, everyMs: 1_000 },
  { first: UPGRADE, step: (nth) => (nth === 0 ? FRAGMENT : CONTINUATION), everyMs: 10 },
  { first: UPGRADE, step: () => null, everyMs: 1_000 },
  { first: UPGRADE, step: () => OVERSIZED, everyMs: 100 },
];

let connections = 0;
const attack = async ({ first, step, everyMs }: Attack, isOver: () => boolean): Promise<void> => {
  while (!isOver()) {
    const socket: Socket = connect(Number(new URL(stack.gatewayUrl).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.resume();
    connections++;
    socket.write(first);
    for (let nth = 0; !socket.destroyed && !isOver(); nth++) {
      await letTimePass(everyMs);
      const next = step(nth);
      if (next !== null && socket.writable) socket.write(next);
    }
    socket.destroy();
    await letTimePass(100);
  }
};

describe(`${HOSTILE} hostile sockets: slow, fragmented, silent and oversized before authentication`, () => {
  it('leave the p99 of a healthy client under 1 s', async () => {
    const control = await measurePings(CONTROL_MS);
    let isOver = false;
    const attacks = Array.from({ length: HOSTILE }, (_, nth) =>
      attack(ATTACKS[nth % ATTACKS.length] as Attack, () => isOver),
    );
    await until(() => connections >= HOSTILE);
    const p99 = await measurePings(ATTACK_MS);
    isOver = true;
    await Promise.all(attacks);
    report(
      `pings: p99 ${control.toFixed(0)} ms before, ${p99.toFixed(0)} ms under ${connections} connections`,
    );
    checkFigure({
      what: 'hostile sockets: p99 of pings',
      value: p99,
      unit: 'ms',
      atMost: PROMISED_P99_MS + Math.min(control, MAX_ALLOWANCE_MS),
    });
  });
});

const residentMiB = (): number => {
  const [gateway] = stack.stackJson().services.gateway;
  const status = readFileSync(`/proc/${gateway?.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
};

describe(`${IDLE} idle sockets`, () => {
  it('need at most 1 GiB of the gateway', async () => {
    const before = residentMiB();
    const sockets: WebSocket[] = [];
    for (let opened = 0; opened < IDLE; opened += OPEN_AT_ONCE) {
      const batch = Array.from(
        { length: OPEN_AT_ONCE },
        () => new WebSocket(stack.wsUrl, { headers: HEADERS }),
      );
      sockets.push(...batch);
      await Promise.all(batch.map((socket) => once(socket, 'open')));
    }
    await letTimePass(5_000);
    const resident = residentMiB();
    const each = ((resident - before) * MIB) / IDLE / 1024;
    report(`idle sockets: ${resident.toFixed(0)} MiB, ${each.toFixed(0)} KiB each`);
    expect(sockets.filter(({ readyState }) => readyState === WebSocket.OPEN)).toHaveLength(IDLE);
    expect(await healthy.call('ping')).toBe('pong');
    for (const socket of sockets) socket.terminate();
    checkFigure({ what: 'memory of 10,000 idle sockets', value: resident, unit: 'MiB', atMost: 1024 });
  });
});
