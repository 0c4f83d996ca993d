import { benchAppend } from '../parts/append.mjs';
import { benchProjections } from '../parts/projections.mjs';
import { benchProvider } from '../parts/provider.mjs';
import { benchRoute } from '../parts/route.mjs';
import { benchSandbox } from '../parts/sandbox.mjs';
import { benchTurn } from '../parts/turn.mjs';
import { readSettings } from './databases.mjs';
import { describeMachine, describePeers, busyShare } from './machine.mjs';
import { startMockProvider } from './processes.mjs';
import { renderReport } from './report.mjs';
import { startStack } from './stack.mjs';
import { median } from './stats.mjs';
import { verdictsOf } from './verdicts.mjs';

/** Of the processors, in use by others before we begin: more than that is told in the report. */
const MAX_BUSY = 0.1;

const NEEDS_STACK = ['append', 'projections', 'turn', 'start'];
/** Measured beside others' software. */
const NEEDS_PEERS = ['append', 'turn'];

const benchStart = async ({ stack, quick }) => {
  const startsMs = [];
  for (let i = 0; i < (quick ? 1 : 3); i += 1) startsMs.push(await stack.restart());
  return { startsMs, startMs: median(startsMs), idleMiB: await stack.idleMemory() };
};

const BENCHES = {
  route: benchRoute,
  provider: benchProvider,
  sandbox: benchSandbox,
  append: benchAppend,
  projections: benchProjections,
  turn: benchTurn,
  start: benchStart,
};

/** The stack goes down whatever happens, Ctrl-C included. */
const withStack = async (providerUrl, work) => {
  console.log('starting a stack of its own …');
  const stack = await startStack(providerUrl);
  const stop = () => void stack.stop().finally(() => process.exit(130));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  try {
    return await work(stack);
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
    await stack.stop();
  }
};

const runParts = async (parts, context) => {
  const results = {};
  for (const part of parts) {
    console.log(`measuring ${part} …`);
    results[part] = await BENCHES[part](context);
  }
  return results;
};

/** Measures the parts that are wanted; `failed` are the verdicts that miss what they must be. */
export const measure = async ({ parts, quick }) => {
  const share = await busyShare();
  const provider = await startMockProvider();
  const context = { providerUrl: provider.url, quick };
  try {
    const alone = await runParts(
      parts.filter((part) => !NEEDS_STACK.includes(part)),
      context,
    );
    const within = parts.filter((part) => NEEDS_STACK.includes(part));
    let settings;
    const withIt =
      within.length === 0
        ? {}
        : await withStack(provider.url, async (stack) => {
            settings = await readSettings(stack.adminUrl());
            if (settings.fsync !== 'on')
              throw new Error('PostgreSQL runs without fsync: its figures would be worth nothing');
            return runParts(within, { ...context, stack, adminUrl: stack.adminUrl() });
          });
    const results = { ...alone, ...withIt };
    const verdicts = verdictsOf(results);
    const peers = within.some((part) => NEEDS_PEERS.includes(part)) ? describePeers() : undefined;
    const busy = share > MAX_BUSY ? share : undefined;
    const markdown = renderReport({ machine: describeMachine(), peers, settings, results, verdicts, busy });
    return { markdown, failed: verdicts.filter(({ holds }) => !holds) };
  } finally {
    provider.close();
  }
};
