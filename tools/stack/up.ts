import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { lockHolder } from '@antiphon/bootstrap/lock';
import { isAlive } from '@antiphon/bootstrap/processes';
import type { ProcessIdentity } from '@antiphon/bootstrap/types';
import { bundledNode, cacheFolder, homeFolder, projectRoot } from '@antiphon/bootstrap/project';
import { UserError } from '@antiphon/bootstrap/user-error';
import { prepareHome } from './home/prepare-home.js';
import { readStack } from './stack-json.js';
import type { StackJson } from './stack-json.js';
import { fullScale } from './stack-options.js';
import type { Scale } from './stack-options.js';
import type { FromSupervisor, SupervisorArguments, ToSupervisor } from './supervisor/messages.js';

export interface UpOptions {
  /** Default: `ANTIPHON_HOME`, else `./.antiphon`. */
  readonly home?: string;
  /** How many of each service; one of those that are not named. */
  readonly scale?: Partial<Scale>;
  /** Environment of the supervisor and, through it, of the services; default: this process's. */
  readonly env?: NodeJS.ProcessEnv;
  /** Where relative paths begin, and `antiphon.toml` is looked for. */
  readonly cwd?: string;
  /** False: any free ports rather than the usual ones. */
  readonly usualPorts?: boolean;
  /** Lines for a person: slow steps, taken ports, deaths and restarts. */
  readonly onProgress?: (line: string) => void;
  /** Fires to give up a start: what was started is stopped in order, and `up` rejects after that. */
  readonly signal?: AbortSignal;
  /** Programs to run in place of the services', by name; for tests of the supervisor itself. */
  readonly mainFiles?: Readonly<Record<string, string>>;
}

/** A stack that is ready. */
export interface RunningStack {
  readonly stack: StackJson;
  /** True when it ran (or was being started by somebody else) already. */
  readonly joined: boolean;
  /** Lets it run on without this process. */
  detach(): void;
  /** Asks the supervisor that this process started to stop; `now`: by force. */
  requestStop(now?: boolean): void;
  /** Resolves when the supervisor that this process started has ended: to why, null for an orderly stop. */
  readonly ended: Promise<string | null>;
}

const JOIN_POLL_MS = 50;

const supervisorMain = (): string => join(projectRoot, 'tools/stack/dist/supervisor/supervisor-main.js');

/** The Node that came with the packages; in an image that has no such package, the one that runs us. */
const nodeProgram = (): string => (existsSync(bundledNode()) ? bundledNode() : process.execPath);

const spawnSupervisor = (args: SupervisorArguments, logs: string, options: UpOptions): ChildProcess => {
  const log = openSync(join(logs, 'supervisor.log'), 'a', 0o600);
  try {
    const child = spawn(nodeProgram(), [supervisorMain(), JSON.stringify(args)], {
      cwd: options.cwd,
      env: { ...(options.env ?? process.env), ANTIPHON_HOME: args.home },
      // A session of its own: it outlives this terminal, and Ctrl-C reaches it only through us.
      detached: true,
      stdio: ['ignore', log, log, 'ipc'],
    });
    return child;
  } finally {
    closeSync(log);
  }
};

const send = (child: ChildProcess, message: ToSupervisor, after?: () => void): void => {
  if (child.connected) child.send(message, () => after?.());
};

type Verdict = { readonly ready: StackJson } | { readonly held: true } | { readonly failed: UserError };

const endedEarly = (how: string, logs: string, options: UpOptions): UserError =>
  options.signal?.aborted
    ? new UserError('stopped before it was ready', { exitCode: 130 })
    : new UserError(`the start was ended (${how}); what it said is in ${join(logs, 'supervisor.log')}`);

const awaitVerdict = (child: ChildProcess, logs: string, options: UpOptions): Promise<Verdict> =>
  new Promise((resolve) => {
    options.signal?.addEventListener('abort', () => send(child, { type: 'stop', now: false }), {
      once: true,
    });
    child.on('message', (raw) => {
      const message = raw as FromSupervisor;
      if (message.type === 'progress') options.onProgress?.(message.line);
      else if (message.type === 'ready') resolve({ ready: message.stack });
      else if (message.type === 'held') resolve({ held: true });
      else resolve({ failed: new UserError(message.message, { exitCode: message.exitCode }) });
    });
    child.once('error', (error) =>
      resolve({ failed: new UserError(`the supervisor could not be run: ${error.message}`) }),
    );
    child.once('exit', (code, signal) =>
      resolve({ failed: endedEarly(signal ?? `exit code ${code ?? '?'}`, logs, options) }),
    );
  });

const whenEnded = (child: ChildProcess): Promise<string | null> =>
  new Promise((resolve) =>
    child.once('exit', (code, signal) =>
      resolve(signal === null ? (code === 0 ? null : `exit code ${code ?? '?'}`) : signal),
    ),
  );

const ownStack = (child: ChildProcess, stack: StackJson): RunningStack => ({
  stack,
  joined: false,
  ended: whenEnded(child),
  requestStop: (now = false) => send(child, { type: 'stop', now }),
  detach: () =>
    send(child, { type: 'detach' }, () => {
      child.disconnect();
      child.unref();
    }),
});

const joinedStack = (stack: StackJson): RunningStack => ({
  stack,
  joined: true,
  ended: Promise.resolve(null),
  requestStop: () => undefined,
  detach: () => undefined,
});

/** Waits until the stack of another supervisor is ready; null when that one ends before. */
const awaitOther = async (
  home: string,
  holder: ProcessIdentity,
  signal: AbortSignal | undefined,
): Promise<StackJson | null> => {
  while (isAlive(holder)) {
    if (signal?.aborted) throw new UserError('stopped waiting for it', { exitCode: 130 });
    const stack = readStack(home);
    if (stack?.supervisor.pid === holder.pid && stack.state === 'ready') return stack;
    await sleep(JOIN_POLL_MS);
  }
  return null;
};

const joinOther = async (home: string, options: UpOptions): Promise<RunningStack | null> => {
  const holder = lockHolder(prepareHome(home).lockFile);
  if (holder === null) return null;
  if (readStack(home)?.state !== 'ready')
    options.onProgress?.(`  process ${holder.pid} is starting or stopping this stack; waiting for it`);
  const stack = await awaitOther(home, holder, options.signal);
  return stack === null ? null : joinedStack(stack);
};

/**
 * Starts the stack of a home, or joins the one that runs there. Resolves when it is ready; rejects with a UserError
 * that says what is wrong and what to do. Packages, build and engines must be there (the bootstrap sees to that).
 * The stack stops when this process ends, unless it is detached.
 */
export const up = async (options: UpOptions = {}): Promise<RunningStack> => {
  const env = options.env ?? process.env;
  const home = options.home ?? homeFolder(env, options.cwd);
  const { logs } = prepareHome(home);
  const running = await joinOther(home, options);
  if (running !== null) return running;
  const args: SupervisorArguments = {
    home,
    cache: cacheFolder(env),
    root: projectRoot,
    scale: fullScale(options.scale ?? {}),
    usualPorts: options.usualPorts ?? true,
    ...(options.mainFiles === undefined ? {} : { mainFiles: options.mainFiles }),
  };
  const child = spawnSupervisor(args, logs, options);
  const verdict = await awaitVerdict(child, logs, options);
  if ('ready' in verdict) return ownStack(child, verdict.ready);
  // Two starts at the same moment: the other one was quicker.
  if ('held' in verdict) return up(options);
  throw verdict.failed;
};
