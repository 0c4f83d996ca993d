import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startPhoenix } from './phoenix.mjs';

/*
 * Sends the trace of one turn with a tool call to a real trace backend. Its spans form one tree of
 * every hop. Their tokens equal those of the ledger, and no attribute contains the message.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CANARY = 'heliotrope-8812';
const HOPS = [
  'chat.send',
  'invoke_agent',
  'append',
  'assemble',
  'reserve',
  'chat ',
  'execute_tool',
  'run in cell',
];

const command = (args, env) =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (data) => (output += data));
    child.once('exit', (code) =>
      code === 0 ? resolve(output) : reject(new Error(`${args.join(' ')}: ${code}\n${output}`)),
    );
  });

const waitForValue = async (what, read) => {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await pause(500)) {
    const found = await read();
    if (found) return found;
  }
  throw new Error(`timed out waiting for ${what}`);
};

const CONFIG = `
[[providers]]
name = "scripted"
kind = "scripted"

[[agents]]
id = "main"
provider = "scripted"
model = "scripted"
tools = ["echo"]
`;

const sendEchoTurn = async (home, env) => {
  await command(['tools/bootstrap/start.cjs', '--detach'], env);
  await command(['apps/cli/bin/antiphon.mjs', 'chat', `/tool echo {"said":"${CANARY}"}`], env);
  const { urls } = JSON.parse(readFileSync(join(home, 'stack.json'), 'utf8'));
  const answer = await fetch(`${urls.gateway}/api/v1/events?type=BudgetSettled`);
  const { events } = await answer.json();
  return events.reduce((sum, { data }) => sum + data.inputTokens + data.outputTokens, 0);
};

const findTrace = (spans) => {
  const root = spans.find(({ name, parent_id: parent }) => name === 'chat.send' && !parent);
  return root && spans.filter(({ context }) => context.trace_id === root.context.trace_id);
};
const missingHops = (trace) => HOPS.filter((hop) => !trace.some(({ name }) => name.includes(hop)));

const checkTrace = (trace, tokens) => {
  const ids = new Set(trace.map(({ context }) => context.span_id));
  const roots = trace.filter(({ parent_id: parent }) => !parent || !ids.has(parent));
  assert.deepEqual(
    roots.map(({ name }) => name),
    ['chat.send'],
    'the trace is one tree',
  );
  const used = trace
    .filter(({ name }) => name.startsWith('chat '))
    .map(
      ({ attributes: of }) =>
        (of['gen_ai.usage.input_tokens'] ?? 0) + (of['gen_ai.usage.output_tokens'] ?? 0),
    );
  assert.equal(
    used.reduce((a, b) => a + b, 0),
    tokens,
    'the tokens of the spans equal those of the ledger',
  );
  assert.ok(!JSON.stringify(trace).includes(CANARY), 'no span contains the message');
};

const phoenix = await startPhoenix();
const folder = mkdtempSync(join(tmpdir(), 'antiphon-nightly-'));
const home = join(folder, 'home');
writeFileSync(join(folder, 'antiphon.toml'), CONFIG);
const env = {
  ...process.env,
  ANTIPHON_HOME: home,
  ANTIPHON_CONFIG: join(folder, 'antiphon.toml'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${phoenix.url}/v1/traces`,
};
try {
  const tokens = await sendEchoTurn(home, env);
  const trace = await waitForValue('every hop of the turn', async () => {
    const spans = findTrace(await phoenix.spans());
    return spans && missingHops(spans).length === 0 ? spans : undefined;
  });
  checkTrace(trace, tokens);
  console.log(`one tree of ${trace.length} spans, ${tokens} tokens as in the ledger`);
} finally {
  await command(['tools/bootstrap/stop.cjs'], env).catch((error) => console.error(error.message));
  await phoenix.stop();
  rmSync(folder, { recursive: true, force: true });
}
