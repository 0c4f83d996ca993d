// Measures calls of a remote tool through the sandbox service, a gateway and a program in Node.
// Compares the round trip with the plug-in echo, and counts calls a second.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { connect } from '@nats-io/transport-node';
import { summarize } from '../lib/stats.mjs';

const WORKER = fileURLToPath(new URL('../lib/remote-worker.mjs', import.meta.url));
const WARM_UP = 300;
const CONCURRENCY = 32;

const startWorker = async (url) => {
  const child = spawn(process.execPath, [WORKER], {
    env: { ...process.env, ANTIPHON_URL: url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(createInterface({ input: child.stdout }), 'line');
  return child;
};

/** Returns a function that calls a tool as the agent does, without the log. */
const createCaller = (nats, sessionId) => async (name, input) => {
  const callId = randomUUID();
  const request = { workspace: 'default', sessionId, callId, epoch: 1, idempotencyKey: callId, name, input };
  const message = await nats.request('cmd.sandbox.tool.call', JSON.stringify(request), { timeout: 10_000 });
  const { result } = message.json();
  if (result?.outcome !== 'completed') throw new Error(`${name}: ${message.string().slice(0, 300)}`);
};

const roundTrips = async (call, name, n) => {
  const samples = [];
  for (let i = -WARM_UP; i < n; i += 1) {
    const from = performance.now();
    await call(name, { text: 'x'.repeat(300) });
    if (i >= 0) samples.push(performance.now() - from);
  }
  return summarize(samples);
};

const throughput = async (call, name, n) => {
  let left = n;
  const lane = async () => {
    while (left-- > 0) await call(name, { text: 'x'.repeat(300) });
  };
  const from = performance.now();
  await Promise.all(Array.from({ length: CONCURRENCY }, lane));
  return (n / (performance.now() - from)) * 1_000;
};

/** Returns figures in milliseconds, and calls a second. */
export const benchRemoteTools = async ({ stack, quick }) => {
  const n = quick ? 1_000 : 5_000;
  const { url, user, password } = stack.nats();
  const nats = await connect({ servers: url, user, pass: password });
  const worker = await startWorker(stack.gatewayUrl());
  try {
    const call = createCaller(nats, randomUUID());
    // Alternately, so that other work of the machine meets both.
    const rounds = [];
    for (let round = 0; round < 3; round += 1)
      rounds.push({
        echo: await roundTrips(call, 'echo', Math.ceil(n / 3)),
        remote: await roundTrips(call, 'bench_remote', Math.ceil(n / 3)),
      });
    const perSecond = [];
    for (let round = 0; round < 3; round += 1) perSecond.push(await throughput(call, 'bench_remote', n));
    return { rounds, perSecond, concurrency: CONCURRENCY };
  } finally {
    worker.kill('SIGKILL');
    await nats.close();
  }
};
