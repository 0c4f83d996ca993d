import { readdirSync, statfsSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const GIB = 1024 ** 3;

/**
 * @typedef {object} Part
 * @property {string} name
 * @property {string} shows What the part shows, for the table.
 * @property {string[]} args Arguments of Node.
 * @property {number} minutes Time limit.
 * @property {Record<string, string>} [env]
 * @property {() => string | null} [missing] Returns what the machine lacks for this part, or null.
 */

const hasCommand = (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).error === undefined;
const needCommand = (name) => () => (hasCommand(name) ? null : `${name} is not installed`);
const needDisk = (gib) => () => {
  const { bavail, bsize } = statfsSync(tmpdir());
  const free = (bavail * bsize) / GIB;
  return free >= gib
    ? null
    : `${gib} GiB of free disk are needed in ${tmpdir()}, ${free.toFixed(1)} are there`;
};
/** Installs llama.cpp as a package, once. */
const needLlama = () => {
  const script = join(ROOT, 'benchmarks/lib/install-llama-cpp.mjs');
  const { status, stderr } = spawnSync(process.execPath, [script], {
    ...{ encoding: 'utf8', stdio: ['ignore', 'inherit', 'pipe'], timeout: 900_000 },
  });
  return status === 0
    ? null
    : `llama.cpp: ${stderr.trim().split('\n').at(-1) || 'no installation in 15 min'}`;
};
const needMount = () =>
  process.platform === 'linux' && process.getuid?.() === 0 ? null : 'needs root on Linux (mount)';
const needLinux = () => (process.platform === 'linux' ? null : 'needs Linux (/proc)');

/** Returns the arguments of Node that run one nightly spec. */
const nightlySpec = (path) => {
  const args = ['tools/bootstrap/test.cjs', '--config', 'jest.nightly.config.mjs', '--maxWorkers=1'];
  return [...args, '--runTestsByPath', path];
};

/**
 * Descriptions of the specs: a text for the table, a time limit in minutes, and samples for
 * `--quick`.
 */
const SPECS = {
  'turn-files': { shows: 'the list of files that a plain turn passes through is current', minutes: 5 },
  'large-log': {
    ...{ shows: 'first views of 1,000,000 events answer in 250 ms, and their past in 2 s', minutes: 45 },
    quick: {
      ...{ ANTIPHON_LARGE_EVENTS: '100000', ANTIPHON_LARGE_TURNS: '2000', ANTIPHON_TO_AND_FRO_MS: '20000' },
    },
  },
  'past-reads': {
    ...{ shows: 'every read of the past equals the answer of that time, at 200 positions', minutes: 25 },
    quick: { ANTIPHON_PAST_POSITIONS: '44' },
  },
  'prompt-cache': {
    shows: '50 turns with ten tool calls read 90 % of their input from a cache, and cost what it bills',
    minutes: 10,
  },
  'agent-histories': {
    ...{ shows: 'agents stay in declared states over 100,000 histories', minutes: 5 },
    env: { ANTIPHON_AGENT_HISTORIES: '100000' },
  },
  'approvals-under-kills': {
    ...{ shows: 'approvals at depth 3 are answered once through kills at each step', minutes: 20 },
    quick: { ANTIPHON_APPROVALS_EVERY: '6' },
  },
  'lost-work': { shows: 'work that ends its process is given up within 60 s, next to others', minutes: 15 },
  'log-quota': { shows: 'a full log refuses new work, and serves reads, cancels and deletions', minutes: 5 },
  approvals: { shows: 'approvals through races, restarts and the command line', minutes: 10 },
  'append-growth': {
    ...{ shows: 'an append does not slow down from 10^5 to 10^7 events', minutes: 45 },
    ...{ quick: { ANTIPHON_APPEND_ROWS: '1000000' }, missing: needDisk(16) },
  },
  backup: { shows: 'a restore reports its loss and applies no lost event', minutes: 10 },
  'budget-samples': {
    ...{ shows: 'one of 512 calls of a tree is admitted, in 100 rounds', minutes: 10 },
    env: { ANTIPHON_BUDGET_ROUNDS: '100' },
  },
  'channel-deliveries': {
    ...{ shows: '1,000 deliveries with repeats are answered once under kills of every service', minutes: 20 },
    quick: { ANTIPHON_DELIVERIES: '150' },
  },
  chaos: {
    ...{ shows: 'no command is lost or repeated through random faults', minutes: 20 },
    ...{ env: { ANTIPHON_CHAOS_MINUTES: '10' }, quick: { ANTIPHON_CHAOS_MINUTES: '0.5' } },
  },
  'chat-pipe': {
    ...{ shows: '500 drops lose no event of a chat, and kills none of 10,000 commands', minutes: 30 },
    quick: { ANTIPHON_CHAT_DROPS: '60', ANTIPHON_CHAT_ACKS: '50', ANTIPHON_CHAT_COMMANDS: '400' },
  },
  'chat-readers': {
    ...{
      shows: '1,000 deaf readers of a chat cost 64 MiB and slow no turn; catch-ups equal live text',
      minutes: 30,
    },
    ...{ quick: { ANTIPHON_CHAT_SESSIONS: '50', ANTIPHON_DEAF_READERS: '100' }, missing: needLinux },
  },
  'chat-versions': {
    ...{ shows: 'a .chat has at each of 1,000 versions the bytes that it had then', minutes: 15 },
    quick: { ANTIPHON_CHAT_VERSIONS: '100' },
  },
  'child-ends': {
    ...{ shows: 'each end of 1,000 children reaches its parent once under kills', minutes: 45 },
    quick: { ANTIPHON_CHILDREN: '60', ANTIPHON_PARENTS: '3' },
  },
  'client-drops': {
    ...{ shows: 'clients lose and repeat no frame over 200 drops', minutes: 20 },
    quick: { ANTIPHON_DROPS: '60' },
  },
  chromium: { shows: 'a machine without Chromium gets one from the registry', minutes: 10 },
  clocks: {
    ...{ shows: 'wrong clocks lose and repeat nothing', minutes: 15 },
    quick: { ANTIPHON_CLOCKS_MS: '10000' },
  },
  'credential-nonces': {
    ...{ shows: 'sealed credentials repeat no nonce in 1,000,000', minutes: 15 },
    quick: { ANTIPHON_SEALED_SECRETS: '100000' },
  },
  'dashboard-agents': {
    ...{ shows: 'samples of agents come as frames, and a run of five nodes shows its edges', minutes: 10 },
  },
  'dashboard-announcements': {
    ...{ shows: 'screen readers get answers in whole sentences, at most one message a second', minutes: 5 },
  },
  'dashboard-attention': {
    ...{
      shows: 'attention has each of its sources once, made real, and nothing on a fresh stack',
      minutes: 10,
    },
  },
  'dashboard-budgets': {
    ...{
      shows:
        'first views read little and nothing twice, pages at rest nothing; 1,000 chats and tasks open fast',
      minutes: 10,
    },
  },
  'dashboard-charts': {
    ...{ shows: 'charts of rate, cost and lag equal their tables, their files and the API', minutes: 10 },
  },
  'dashboard-copies': {
    ...{ shows: 'records as link, JSON and command, and saved files, equal the API', minutes: 10 },
  },
  'dashboard-editor': {
    shows: 'a workflow is drawn by keys alone, saved by two tabs, and placed without its worker',
    minutes: 5,
  },
  'dashboard-erasure': {
    ...{ shows: 'erased bytes are in no read, page or prompt, at any position', minutes: 15 },
  },
  'dashboard-figures': {
    ...{ shows: 'the dashboard is quick with 10,000 turns, 1,000,000 events and 20,000 tokens', minutes: 20 },
    quick: {
      ...{
        ANTIPHON_LOG_EVENTS: '100000',
        ANTIPHON_DASHBOARD_TURNS: '2000',
        ANTIPHON_DASHBOARD_TOKENS: '4000',
      },
    },
  },
  'dashboard-files': {
    ...{
      shows: '200 uploads, folders, roles, hostile contents, and a folder of 10,000 files within its budgets',
      minutes: 10,
    },
  },
  'dashboard-foreign-pages': {
    ...{ shows: 'pages of other ports, names and sites use no session of a person', minutes: 5 },
  },
  'dashboard-graph': {
    ...{ shows: 'a graph of 1,000 nodes moves as an empty page does, and n finds its failures', minutes: 5 },
  },
  'dashboard-images': {
    shows: 'the pictures of each page for the README and its gallery, and that they are small',
    minutes: 5,
  },
  'dashboard-find': {
    shows: 'the palette finds ids and names, lists have further pages, and events a range of time',
    minutes: 5,
  },
  'dashboard-focus': {
    shows: 'the focus stays in view, and lists of any length are one stop of Tab',
    minutes: 5,
  },
  'dashboard-keyboard': {
    ...{ shows: 'the whole trip by keyboard alone, and scripted checks of accessibility', minutes: 10 },
  },
  'chats-large': {
    ...{
      shows: 'a chat of 10,000 messages, and an answer of 20,000 tokens, stay within their budgets',
      minutes: 5,
    },
  },
  'dashboard-large': {
    ...{ shows: 'texts of 780,000 characters and 60 levels leave every page usable', minutes: 10 },
  },
  'dashboard-link': {
    ...{
      shows: 'a one-time link signs in once, leaves no trace, and asks before it replaces a session',
      minutes: 5,
    },
  },
  'dashboard-many-agents': {
    ...{
      shows: 'of 200 agents only those in view are drawn and read, and a page at rest reads none',
      minutes: 5,
    },
  },
  'dashboard-pages': {
    ...{ shows: 'every page in both themes and at three widths: no violation of WCAG 2.2 AA', minutes: 30 },
  },
  'dashboard-proof': {
    ...{ shows: 'audit, roots, dead letters, archives, backups and limits in a browser', minutes: 10 },
  },
  'dashboard-past': {
    ...{ shows: 'pages at 200 random positions show what the API returns there', minutes: 25 },
    quick: { ANTIPHON_PAST_PAGES: '20' },
  },
  'dashboard-reconnect': {
    ...{ shows: 'the dashboard gets each event once through kill -9 and a silent network', minutes: 10 },
    quick: { ANTIPHON_OFFLINE_MS: '15000' },
  },
  'dashboard-requests': {
    ...{
      shows: 'addresses, previews, keys and the past give no request more than its caller may',
      minutes: 10,
    },
  },
  'dashboard-session': {
    ...{ shows: 'a session warns before its end, is extended, and loses nothing typed', minutes: 5 },
  },
  'dashboard-views': {
    ...{ shows: 'accessibility trees, tips, errors of forms and forced colours', minutes: 10 },
  },
  'dashboard-two-tabs': {
    ...{
      shows: 'an approval that another tab answered says who did; new events only count in the past',
      minutes: 5,
    },
  },
  'dashboard-walks': {
    ...{ shows: 'a newcomer, an engineer and an operator reach their aim by keys alone', minutes: 5 },
  },
  'dashboard-widths': {
    ...{ shows: 'six widths cut no text, and no control lies over another', minutes: 20 },
  },
  'dashboard-texts': {
    ...{ shows: 'hostile texts in every field run nothing, fetch nothing and look up no name', minutes: 10 },
  },
  'dropped-clients': {
    ...{ shows: 'dropped clients receive every frame once', minutes: 15 },
    quick: { ANTIPHON_DROPS: '120' },
  },
  'edit-model': { shows: '100,000 random edits change only their span, byte for byte', minutes: 10 },
  'engines-down': {
    ...{ shows: 'accepted turns complete through outages of each engine', minutes: 15 },
    quick: { ANTIPHON_DOWN_MS: '8000' },
  },
  'failpoint-sweep': {
    ...{ shows: 'every command ends once after a fault at each step', minutes: 60 },
    quick: { ANTIPHON_SWEEP_EVERY: '13' },
  },
  'file-kills': {
    ...{ shows: 'a file has its old or new text after kill -9 at seven failpoints', minutes: 20 },
    quick: { ANTIPHON_FILE_KILLS: '1' },
  },
  'file-race': {
    ...{ shows: 'races with links touch no file outside, in 10^5 tries', minutes: 25 },
    ...{ quick: { ANTIPHON_FILE_RACES: '3000' }, missing: needLinux },
  },
  'gateway-samples': {
    ...{ shows: '10,000 refused upgrades and 300 events of 1 MB cost bounded memory', minutes: 15 },
    ...{ env: { ANTIPHON_UPGRADES: '10000', ANTIPHON_BIG_EVENTS: '300' }, missing: needLinux },
  },
  'full-disk': {
    shows: 'a full disk loses nothing, and all continues within 30 s of free space',
    ...{ minutes: 10, missing: needMount },
  },
  'history-size': { shows: 'Temporal histories stay below 2 MB', minutes: 10 },
  'heavy-reads': {
    ...{ shows: '200 heavy reads of one viewer slow another workspace to 3 times at most', minutes: 20 },
    quick: { ANTIPHON_HEAVY_EVENTS: '30000', ANTIPHON_HEAVY_BLOCKS: '3' },
  },
  'hostile-environment': {
    shows: 'a start completes a turn under hostile variables, users, paths and versions of Node',
    ...{ minutes: 40, quick: { ANTIPHON_HOSTILE_CASE: 'proxies' }, missing: needMount },
  },
  'hostile-texts': {
    ...{
      shows: 'hostile texts of a member leave the pings of another workspace at 100 ms (p99)',
      minutes: 15,
    },
    quick: { ANTIPHON_HOSTILE_ROUNDS: '4' },
  },
  'hostile-sockets': {
    ...{ shows: '1,000 hostile sockets slow no client; 10,000 idle ones need 1 GiB', minutes: 10 },
    missing: needLinux,
  },
  'idle-agents': {
    ...{ shows: '10,000 idle agents are rows only: memory and statements', minutes: 15 },
    ...{ quick: { ANTIPHON_IDLE_AGENTS: '500' }, missing: needLinux },
  },
  images: { shows: 'each image starts alone and is within its size', minutes: 20, missing: needLinux },
  'interrupted-run': {
    ...{ shows: 'a test run that a signal interrupts leaves no engine, stack or folder', minutes: 20 },
    missing: needLinux,
  },
  'large-messages': {
    ...{ shows: 'messages of 786 kB pass through services of 512 MiB', minutes: 15 },
    missing: needLinux,
  },
  'lock-order': {
    ...{ shows: 'no deadlock in 10 minutes of calls, settlements and lease renewals', minutes: 15 },
    ...{ env: { ANTIPHON_LOCK_ORDER_MS: '600000' }, quick: { ANTIPHON_LOCK_ORDER_MS: '10000' } },
  },
  'reserve-with-turn': {
    ...{ shows: 'one of 64 calls of 4 processes is admitted, in 100 rounds with room for one', minutes: 5 },
    ...{ env: { ANTIPHON_ROUNDS: '100' }, quick: { ANTIPHON_ROUNDS: '10' } },
  },
  'long-sessions': {
    ...{ shows: 'turns do not slow down over 10,000 turns', minutes: 45 },
    quick: { ANTIPHON_LONG_TURNS: '400' },
  },
  'message-faults': { shows: 'each message is in one context, once, under kills', minutes: 30 },
  'nats-amnesia': { shows: 'JetStream is rebuilt from the log', minutes: 10 },
  network: {
    ...{ shows: 'accepted turns complete through cuts, delays and resets', minutes: 25 },
    quick: { ANTIPHON_NETWORK_EVERY: '5', ANTIPHON_NETWORK_ROUGH_MS: '20000' },
  },
  projections: {
    ...{ shows: 'rebuilt projections equal the log under load', minutes: 20 },
    quick: { ANTIPHON_REBUILD_ROUNDS: '2' },
  },
  'real-llama-cpp': {
    shows: 'turns, usage, cuts, cancels and refusals of llama.cpp with a real model',
    ...{ minutes: 30, missing: needLlama },
  },
  'real-servers': {
    shows: 'turns, tools, usage, cancels and refusals of LiteLLM as it is installed',
    ...{ minutes: 90, missing: needCommand('python3') },
  },
  'resume-figures': {
    ...{ shows: 'turns resume within 1 s (p50) and 5 s (p99) after kill -9', minutes: 75 },
    quick: { ANTIPHON_KILLS: '4' },
  },
  'mcp-conformance': {
    shows: 'the MCP client passes the conformance scenarios outside of elicitation and OAuth',
    ...{ minutes: 10, missing: needCommand('npm') },
  },
  'provider-zoo': {
    shows: '1,000 turns against servers that misbehave end right, charged what these reported',
    ...{ minutes: 10, quick: { ANTIPHON_ZOO_TURNS: '150' } },
  },
  'read-after-write': { shows: 'lists contain the writes before them, over two gateways', minutes: 10 },
  'rewind-model': { shows: 'rewound files equal those of the event, in random histories', minutes: 20 },
  simulation: {
    ...{ shows: 'the deciders hold in random interleavings and faults', minutes: 15 },
    quick: { ANTIPHON_SIMULATIONS: '2000' },
  },
  'slow-models': { shows: 'a model that loads for 75 s answers a turn, a command and a run', minutes: 8 },
  'slow-readers': {
    ...{ shows: 'stalled readers cost bounded memory and slow no other', minutes: 25 },
    ...{ quick: { ANTIPHON_SLOW_BLOCKS: 'reading,none,none,stalled' }, missing: needLinux },
  },
  'stopped-sandbox': { shows: 'a suspended sandbox acts on no call after its outcome', minutes: 10 },
  'task-queue': {
    ...{ shows: 'tasks are done once under kills, claimed at 500/s and slow no chat', minutes: 30 },
    quick: { ANTIPHON_TASKS: '500', ANTIPHON_TASK_CLAIMS: '1000', ANTIPHON_TASK_ROUNDS: '4' },
  },
  'supervisor-start': { shows: 'a start after a kill, on taken ports and after a restore', minutes: 10 },
  tenants: {
    ...{ shows: 'two workspaces under faults see nothing of each other', minutes: 15 },
    quick: { ANTIPHON_TENANTS_MS: '15000' },
  },
  'three-agents': { shows: 'the audit names each changed fact of agents, tasks and messages', minutes: 15 },
  'remote-kills': {
    ...{ shows: 'no side effect of a remote tool happens twice, in 209 turns with a kill each', minutes: 40 },
    quick: { ANTIPHON_REMOTE_KILLS: '17' },
  },
  'tool-kills': {
    ...{ shows: 'no side effect of a tool happens twice', minutes: 25 },
    quick: { ANTIPHON_TOOL_TURNS: '6' },
  },
  validate: {
    shows: 'the deployment check finds each planted mistake',
    minutes: 20,
    missing: needCommand('go'),
  },
  wedged: {
    ...{ shows: 'a hanging provider slows other sessions by at most 1.1 ×', minutes: 20 },
    quick: { ANTIPHON_WEDGED_ROUNDS: '4' },
  },
  'start-stack': { shows: 'a stack of the real services starts and leaves nothing', minutes: 10 },
  supervisor: { shows: 'services that die or hang are restarted, and stop in order', minutes: 10 },
  restore: { shows: 'a restore that is killed at any step loses nothing', minutes: 10 },
  'search-figures': {
    ...{ shows: '10,000 files are searched in 300 ms (p95); hostile expressions end in time', minutes: 15 },
    quick: { ANTIPHON_SEARCHED_FILES: '1000' },
  },
  'secret-canaries': { shows: 'secrets are in no event, log, span, error or backup', minutes: 10 },
  'lost-call': { shows: 'calls that may have reached the outside end as unknown', minutes: 10 },
  'tool-retry': { shows: 'tool calls are retried within their limits', minutes: 10 },
  'extism-kits': { shows: "a module that Extism's kit for Go builds runs unchanged", minutes: 10 },
  'hostile-neighbours': { shows: 'hostile plug-ins delay no other call', minutes: 15 },
  'late-calls': { shows: 'calls that arrive late or twice have no second effect', minutes: 10 },
  'contended-stream': { shows: 'writers of one stream all succeed, and slow no other stream', minutes: 10 },
  'slow-subscribers': { shows: 'subscribers get every event at their own pace', minutes: 10 },
  twice: { shows: 'a request that is repeated at two gateways runs once', minutes: 10 },
  traces: { shows: 'one trace connects a turn over all services', minutes: 10 },
  'event-streams': { shows: 'clients of two gateways see the same events', minutes: 10 },
  'tree-budget': { shows: 'a tree of agents stays within its budget', minutes: 10 },
  zombies: { shows: 'a stopped process writes nothing after it wakes', minutes: 10 },
};

/**
 * Specs that run a second time with stacks of `npm start -- --compact`.
 * @returns {Part[]}
 */
const compactParts = (isQuick) => [
  {
    ...{ name: 'compact-main', shows: 'the main path works in the compact form', minutes: 15 },
    args: ['tools/bootstrap/test.cjs', '--selectProjects', 'e2e', '--', 'gateway-e2e/main-job'],
    env: { ANTIPHON_TEST_FORM: 'compact' },
  },
  {
    ...{ name: 'compact-runs', shows: 'runs survive kills and restarts in the compact form', minutes: 15 },
    args: ['tools/bootstrap/test.cjs', '--selectProjects', 'e2e', '--', 'gateway-e2e/runs'],
    env: { ANTIPHON_TEST_FORM: 'compact' },
  },
  {
    ...{ name: 'compact-crash', shows: 'killed services lose and repeat nothing in that form', minutes: 15 },
    args: ['tools/bootstrap/test.cjs', '--selectProjects', 'e2e', '--', 'gateway-e2e/crash'],
    env: { ANTIPHON_TEST_FORM: 'compact' },
  },
  {
    ...{ name: 'compact-resume', shows: 'turns resume after kill -9 in the compact form', minutes: 75 },
    args: nightlySpec('apps/gateway-e2e/resume-figures.nightly.spec.ts'),
    env: { ANTIPHON_TEST_FORM: 'compact', ANTIPHON_KILLS: isQuick ? '4' : '20' },
  },
];

/**
 * The properties of hostile texts, with 10,000 texts instead of their sample.
 * @returns {Part}
 */
const hostileTextPart = (isQuick) => ({
  ...{ name: 'hostile-text', shows: '10,000 hostile texts hold no event loop over 50 ms', minutes: 240 },
  args: ['tools/bootstrap/test.cjs', '--selectProjects', 'unit', 'int', '--', 'hostile-text'],
  env: { ANTIPHON_HOSTILE_TEXTS: isQuick ? '500' : '10000' },
});

/**
 * The readers of large events, with more of them than their process may keep.
 * @type {Part}
 */
const LARGE_EVENTS_PART = {
  ...{ name: 'large-events', shows: '900 MB of large events are read within 400 MiB', minutes: 10 },
  args: ['tools/bootstrap/test.cjs', '--selectProjects', 'int', '--', 'large-tasks', 'large-events'],
  env: { ANTIPHON_BIG_EVENTS: '300' },
};

const DEFAULT_SPEC = { shows: '(no description in tools/nightly/parts.mjs)', minutes: 30 };

/** Finds the nightly specs of the tree, so that a new one cannot be forgotten. */
export const findSpecs = (root = ROOT) =>
  ['libs', 'apps', 'tools']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) =>
        join(folder, path),
      ),
    )
    .filter((path) => path.endsWith('.nightly.spec.ts') && !/(^|\/)(dist|node_modules)\//.test(path))
    .sort();

export const specName = (path) => basename(path, '.nightly.spec.ts');

/** @returns {Part} */
const specPart = (path, isQuick) => {
  const name = specName(path);
  const { shows, minutes, env = {}, quick = {}, missing } = SPECS[name] ?? DEFAULT_SPEC;
  return {
    ...{ name, shows, minutes, missing },
    args: nightlySpec(path),
    env: isQuick ? { ...env, ...quick } : env,
  };
};

/**
 * Lists the parts of a run, in order.
 * @returns {Part[]}
 */
export const listParts = ({ quick, cold }, root = ROOT) => {
  const verify = 'tools/bootstrap/verify-fresh-clone.mjs';
  const coldPart = {
    ...{ name: 'cold-clone', shows: 'npm start, status, chat and audit work with empty caches', minutes: 45 },
    args: [verify, '--cold', '--only', 'fresh clone'],
    missing: needCommand('git'),
  };
  return [
    {
      ...{
        name: 'fresh-clone',
        shows: 'npm start, status, chat, audit and npm test work in a new clone',
        minutes: 75,
      },
      args: quick ? [verify, '--only', 'fresh clone'] : [verify, '--tests'],
      missing: needCommand('git'),
    },
    ...(cold || !quick ? [coldPart] : []),
    {
      name: 'earlier-release',
      shows: 'a home of an earlier release opens, passes the audit, replays and continues',
      ...{ minutes: 20, args: [verify, '--only', 'earlier release'], missing: needCommand('git') },
    },
    {
      ...{ name: 'deployment', shows: 'manifests, compose file and Dockerfile are valid', minutes: 20 },
      ...{ args: ['tools/deploy/validate.mjs'], missing: needCommand('go') },
    },
    ...findSpecs(root).map((path) => specPart(path, quick)),
    {
      ...{
        name: 'kill-table',
        shows: 'no effect is repeated or lost at 209 kills, next to peers',
        minutes: 120,
      },
      ...{ args: ['benchmarks/kill-table.mjs', ...(quick ? ['--quick'] : [])], missing: needLinux },
    },
    ...compactParts(quick),
    hostileTextPart(quick),
    LARGE_EVENTS_PART,
    {
      ...{ name: 'phoenix', shows: 'a trace backend shows a turn as one tree of spans', minutes: 30 },
      ...{ args: ['tools/nightly/traces-in-phoenix.mjs'], missing: needCommand('python3') },
    },
  ];
};
