import { benchAgents } from '../parts/agents.mjs';
import { benchAppend } from '../parts/append.mjs';
import { benchCli } from '../parts/cli.mjs';
import { benchEvents } from '../parts/events.mjs';
import { benchFiles } from '../parts/files.mjs';
import { benchFirstFrame } from '../parts/first-frame.mjs';
import { benchGrowth } from '../parts/growth.mjs';
import { benchIdentity } from '../parts/identity.mjs';
import { benchProjections } from '../parts/projections.mjs';
import { benchProvider } from '../parts/provider.mjs';
import { benchRemoteTools } from '../parts/remote-tools.mjs';
import { benchRoute } from '../parts/route.mjs';
import { benchSandbox } from '../parts/sandbox.mjs';
import { benchTasks } from '../parts/tasks.mjs';
import { benchTurn } from '../parts/turn.mjs';
import { readSettings } from './databases.mjs';
import { describeMachine, describePeers } from './machine.mjs';
import { watchOthers } from './others.mjs';
import { startMockProvider } from './processes.mjs';
import { renderReport, TOO_BUSY } from './report.mjs';
import { startStack } from './stack.mjs';
import { median } from './stats.mjs';
import { verdictsOf } from './verdicts.mjs';

const NEEDS_STACK = [
  'remote-tools',
  'append',
  'projections',
  'turn',
  'first-frame',
  'events',
  'tasks',
  'agents',
  'identity',
  'files',
  'cli',
  'start',
];
/** Measured in the same run as peers. */
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
  'remote-tools': benchRemoteTools,
  append: benchAppend,
  projections: benchProjections,
  turn: benchTurn,
  'first-frame': benchFirstFrame,
  events: benchEvents,
  tasks: benchTasks,
  agents: benchAgents,
  identity: benchIdentity,
  files: benchFiles,
  cli: benchCli,
  growth: benchGrowth,
  start: benchStart,
};

/** Stops the stack on every exit, Ctrl-C included. */
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

/** Collects the figures of each part, and the processor share of other work during it. */
const runParts = async (parts, context) => {
  const own = () => [process.pid, ...(context.stack?.pids() ?? [])];
  const watch = watchOthers(own);
  const [results, others] = [{}, {}];
  try {
    for (const part of parts) {
      console.log(`measuring ${part} …`);
      watch.take();
      results[part] = await BENCHES[part](context);
      others[part] = watch.take();
      warnIfBusy(others[part]);
    }
  } finally {
    watch.close();
  }
  return { results, others };
};

const warnIfBusy = (share) => {
  if (share > TOO_BUSY)
    console.error(
      `others used ${Math.round(share * 100)} % of the processors during this part: these figures do not count`,
    );
};

const runWithinStack = (parts, context) =>
  withStack(context.providerUrl, async (stack) => {
    const settings = await readSettings(stack.adminUrl());
    if (settings.fsync !== 'on')
      throw new Error('PostgreSQL runs without fsync: its figures would be worth nothing');
    return { settings, ...(await runParts(parts, { ...context, stack, adminUrl: stack.adminUrl() })) };
  });

const peersOf = (parts, { 'first-frame': firstFrame }) => ({
  ...(parts.some((part) => NEEDS_PEERS.includes(part)) && describePeers()),
  ...(firstFrame && { litellm: firstFrame.version }),
});

/** Measures the parts that are wanted; `failed` are the verdicts that miss what they must be. */
export const measure = async ({ parts, quick }) => {
  const provider = await startMockProvider();
  const context = { providerUrl: provider.url, quick };
  const within = parts.filter((part) => NEEDS_STACK.includes(part));
  try {
    const alone = await runParts(
      parts.filter((part) => !NEEDS_STACK.includes(part)),
      context,
    );
    const withIt = within.length === 0 ? {} : await runWithinStack(within, context);
    const results = { ...alone.results, ...withIt.results };
    const others = { ...alone.others, ...withIt.others };
    const verdicts = verdictsOf(results);
    const about = { machine: describeMachine(), peers: peersOf(parts, results), settings: withIt.settings };
    const markdown = renderReport({ ...about, results, verdicts, others });
    return { markdown, failed: verdicts.filter(({ holds }) => !holds) };
  } finally {
    provider.close();
  }
};
