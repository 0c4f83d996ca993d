import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startPhoenix } from './phoenix.mjs';

/*
 * One turn with a tool call, sent to a real trace backend: its spans form one tree with every hop, their tokens are the
 * ledger's, and no attribute holds what was said.
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
  'settle',
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

const until = async (what, look) => {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await pause(500)) {
    const found = await look();
    if (found) return found;
  }
  throw new Error(`waited in vain for ${what}`);
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

const askForEcho = async (home, env) => {
  await command(['tools/bootstrap/start.cjs', '--detach'], env);
  await command(['apps/cli/bin/antiphon.mjs', 'chat', `/tool echo {"said":"${CANARY}"}`], env);
  const { urls } = JSON.parse(readFileSync(join(home, 'stack.json'), 'utf8'));
  const answer = await fetch(`${urls.gateway}/api/v1/events?type=BudgetSettled`);
  const { events } = await answer.json();
  return events.reduce((sum, { data }) => sum + data.inputTokens + data.outputTokens, 0);
};

const turnOf = (spans) => {
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
    'one tree',
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
    'tokens of the spans are those of the ledger',
  );
  assert.ok(!JSON.stringify(trace).includes(CANARY), 'nothing of what was said is in a span');
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
  const tokens = await askForEcho(home, env);
  const trace = await until('every hop of the turn', async () => {
    const spans = turnOf(await phoenix.spans());
    return spans && missingHops(spans).length === 0 ? spans : undefined;
  });
  checkTrace(trace, tokens);
  console.log(`one tree of ${trace.length} spans, ${tokens} tokens as in the ledger`);
} finally {
  await command(['tools/bootstrap/stop.cjs'], env).catch((error) => console.error(error.message));
  await phoenix.stop();
  rmSync(folder, { recursive: true, force: true });
}
