// Measures a tool call inside the sandbox service, in real cells. Compares it with bare V8
// instances of the same module in this process.
import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CallTool, createSandbox, startIsolation } from '@antiphon/sandbox-features';
import { silentLogger } from '@antiphon/observability';
import { summarize } from '../lib/stats.mjs';

const PLUGINS = fileURLToPath(new URL('../../plugins/dist', import.meta.url));
const TOOLS = [
  { tool: 'echo', input: { text: 'x'.repeat(300) } },
  { tool: 'calculator', input: { expression: '(1.5 + 2) * -3 ^ 2 / 7' } },
];
const WARM_UP = 500;

const repeat = async (n, once) => {
  const samples = [];
  for (let i = -WARM_UP; i < n; i += 1) {
    const sample = await once(i);
    if (i >= 0) samples.push(sample);
  }
  return summarize(samples);
};

/** Measures from request to reply: fence, call id, queue, pipe, fresh instance, pipe and result. */
const roundTrip = (callTool, { tool, input }, n) => {
  const sessionId = randomUUID();
  return repeat(n, async (i) => {
    const callId = randomUUID();
    const request = {
      workspace: 'default',
      sessionId,
      callId,
      epoch: 1,
      idempotencyKey: callId,
      name: tool,
      input,
    };
    const from = performance.now();
    const reply = await callTool.handle(request);
    const ms = performance.now() - from;
    if (reply.outcome !== 'completed' || reply.isError) throw new Error(`call ${i} of ${tool} failed`);
    return ms;
  });
};

/** Measures the instantiation alone, timed by the cell. */
const instantiation = async (cell, bytes, n) => {
  const listener = { onLog: () => {}, onFlood: () => {}, onSuppressed: () => {} };
  const execute = (operation, body) => cell.execute({ operation, body, timeoutMs: 5_000, listener });
  await execute({ type: 'load', digest: 'bench' }, bytes);
  const call = { type: 'call', digest: 'bench', entry: 'describe' };
  return repeat(n, async () => (await execute(call, Buffer.alloc(0))).reply.instantiateMs);
};

const bareInstances = (bytes, n) => {
  const module = new WebAssembly.Module(bytes);
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module))
    (imports[from] ??= {})[name] = () => 0;
  return repeat(n, () => {
    const from = performance.now();
    new WebAssembly.Instance(module, imports);
    return performance.now() - from;
  });
};

/** Measures the start of a cell, from `spawn` to ready: the cost that a warm pool saves. */
const coldCells = async (open) => {
  const samples = [];
  for (let i = 0; i < 20; i += 1) {
    const from = performance.now();
    const cell = await open();
    samples.push(performance.now() - from);
    cell.kill();
    await cell.ended;
  }
  return summarize(samples);
};

/** Returns figures in milliseconds. */
export const benchSandbox = async ({ quick }) => {
  const n = quick ? 2_000 : 10_000;
  const rows = [];
  const sandbox = await createSandbox({ bundledDirectory: PLUGINS, plugins: [], logger: silentLogger });
  const isolation = await startIsolation({ memoryMb: 16, cpuSeconds: 600 }, silentLogger);
  const callTool = new CallTool(sandbox);
  try {
    for (const subject of TOOLS) {
      const { tool } = subject;
      const bytes = readFileSync(join(PLUGINS, `${tool}.wasm`));
      rows.push({ tool, what: 'bare V8 instance, in process', ms: await bareInstances(bytes, n) });
      rows.push({ tool, what: 'instance in a cell', ms: await instantiation(isolation.first, bytes, n) });
      rows.push({ tool, what: 'call, whole round trip', ms: await roundTrip(callTool, subject, n) });
    }
    rows.push({ tool: '–', what: 'a cell, from spawn to ready', ms: await coldCells(isolation.open) });
  } finally {
    isolation.first.kill();
    await isolation.first.ended;
    await Promise.all([isolation.close(), sandbox.close()]);
  }
  return { layers: sandbox.layers, rows };
};
