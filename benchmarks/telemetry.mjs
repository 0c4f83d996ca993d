// Measures tracing: nanoseconds a span, and processor time a turn of the whole stack. Tracing is
// off, on, and on for one trace in ten. `node_modules/.bin/node benchmarks/telemetry.mjs [turns]`,
// after a build. No peer: see docs/observability.md.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { contextFrom, runWithContext, startTelemetry, silentLogger, withSpan } from '@antiphon/observability';
import { up } from '@antiphon/stack';
import { startMockProvider } from './lib/processes.mjs';
import { open } from './subjects/antiphon-turn.mjs';

const TURNS = Number(process.argv[2] ?? 400);
const ROUNDS = 3;
const LANES = 4;
/** Linux counts processor time in ticks of 10 ms. */
const TICK_MS = 10;

const startReceiver = () =>
  new Promise((resolve) => {
    const server = createServer((request, response) => {
      request.resume();
      request.on('end', () => response.end());
    });
    server.listen(0, '127.0.0.1', () =>
      resolve({ server, url: `http://127.0.0.1:${server.address().port}` }),
    );
  });

const cpuOf = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
};

const nanosecondsASpan = async (env) => {
  const telemetry = await startTelemetry({
    service: 'agent',
    instanceId: 'bench',
    version: '0',
    // The SDK reads its variables from the process.
    env: Object.assign(process.env, env),
    logger: silentLogger,
  });
  const work = () => Promise.resolve();
  const attributes = { 'messaging.system': 'nats', 'messaging.destination.name': 'cmd.x' };
  const once = () => withSpan({ name: 'cmd.x', role: 'client', attributes }, work);
  const loop = (count) =>
    runWithContext(contextFrom('agent'), async () => {
      for (let i = 0; i < count; i += 1) await once();
    });
  await loop(20_000);
  const from = process.cpuUsage();
  await loop(200_000);
  const { user, system } = process.cpuUsage(from);
  await telemetry.stop();
  for (const name of Object.keys(env)) delete process.env[name];
  return ((user + system) * 1_000) / 200_000;
};

const CONFIG = (providerUrl) => `
[gateway]
port = 0

[[providers]]
name = "bench"
kind = "openai-compatible"
base_url = "${providerUrl}/v1"

[[agents]]
id = "main"
provider = "bench"
model = "mock"
tools = ["echo"]
`;

const openStack = async (providerUrl, own) => {
  const home = mkdtempSync(join(tmpdir(), 'antiphon-telemetry-'));
  const config = join(home, 'antiphon.toml');
  writeFileSync(config, CONFIG(providerUrl));
  const env = { ...own, ANTIPHON_CONFIG: config };
  const { PATH, HOME, ANTIPHON_CACHE } = process.env;
  const running = await up({
    home,
    cwd: home,
    usualPorts: false,
    scale: {},
    env: { PATH, HOME, ANTIPHON_CACHE, ...env },
  });
  const pids = Object.values(running.stack.services)
    .flat()
    .map(({ pid }) => pid);
  const subject = await open({ gatewayUrl: running.stack.urls.gateway });
  return {
    turns: (params) => subject.turns(params),
    cpu: () => pids.reduce((sum, pid) => sum + cpuOf(pid), 0),
    close: async () => {
      await subject.close();
      running.requestStop();
      await running.ended;
      rmSync(home, { recursive: true, force: true });
    },
  };
};

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

const receiver = await startReceiver();
const provider = await startMockProvider();
const on = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
const settings = {
  off: {},
  on,
  'on, one trace in ten': {
    ...on,
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.1',
  },
};
console.log('processor time of one span around nothing, ns:');
for (const [name, env] of Object.entries(settings))
  console.log(`  ${name.padEnd(24)} ${Math.round(await nanosecondsASpan(env))}`);

// All of them side by side, used in turns: a slow moment of the machine affects all of them.
const stacks = new Map();
for (const [name, env] of Object.entries(settings)) stacks.set(name, await openStack(provider.url, env));
const figures = new Map([...stacks.keys()].map((name) => [name, { cpu: [], ms: [] }]));
for (let round = -1; round < ROUNDS; round += 1)
  for (const [name, stack] of stacks) {
    const before = stack.cpu();
    const params = { tag: `r${round}`, tools: 1, sessions: LANES, turns: TURNS / LANES };
    const { latencies } = await stack.turns(params);
    if (round < 0) continue;
    figures.get(name).cpu.push((stack.cpu() - before) / TURNS);
    figures.get(name).ms.push(median(latencies));
  }
console.log(`one turn, ${LANES} sessions side by side, medians of ${ROUNDS} × ${TURNS}:`);
for (const [name, { cpu, ms }] of figures)
  console.log(
    `  ${name.padEnd(24)} ${median(cpu).toFixed(2)} CPU-ms of the five services, ${median(ms).toFixed(1)} ms`,
  );
for (const stack of stacks.values()) await stack.close();
receiver.server.close();
provider.close();
process.exit(0);
