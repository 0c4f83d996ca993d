import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, statSync } from 'node:fs';
import { identify } from '@antiphon/bootstrap/processes';
import type { ProcessIdentity } from '@antiphon/bootstrap/types';
import { UserError } from '@antiphon/bootstrap/user-error';
import { signalGroup } from '@antiphon/bootstrap/processes';
import { SUPERVISED_HOME } from '@antiphon/bootstrap/stop-stack';

/** Everything about one incarnation of a process. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Of the stack that it belongs to. */
  readonly home: string;
  /** Both its outputs are appended to this file. */
  readonly logFile: string;
  /** With a channel for `{type:'ready', port}` messages. */
  readonly ipc?: boolean;
  readonly uid?: number;
  readonly gid?: number;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface RunningChild {
  readonly identity: ProcessIdentity;
  /** Where its log began, to quote what it said itself. */
  readonly logStart: number;
  readonly exited: Promise<Exit>;
  /** Resolves with each message over the channel. */
  onMessage(listener: (message: unknown) => void): void;
  /** Asks it to end, and kills it with its whole process group when it does not within `graceMs`. */
  end(signal: NodeJS.Signals, graceMs: number): Promise<void>;
}

const logSize = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

const spawnInto = (launch: Launch, log: number): ChildProcess =>
  spawn(launch.command, launch.args, {
    cwd: launch.cwd,
    // The mark by which a cleaning-up finds even a child that was never written down.
    env: { ...launch.env, [SUPERVISED_HOME]: launch.home },
    // A session of its own: Ctrl-C in a terminal reaches the supervisor alone, which stops everything in order.
    detached: true,
    stdio: launch.ipc ? ['ignore', log, log, 'ipc'] : ['ignore', log, log],
    ...(launch.uid === undefined ? {} : { uid: launch.uid, gid: launch.gid ?? launch.uid }),
  });

const spawnFailure = (child: ChildProcess, command: string): Promise<UserError> =>
  new Promise((resolve) =>
    child.once('error', (error: NodeJS.ErrnoException) =>
      resolve(
        new UserError(`${command} could not be run (${error.code ?? error.message})`, { cause: error }),
      ),
    ),
  );

const send = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};

const running = new Map<number, NodeJS.Signals>();

/** The last thing that a failing supervisor can do for its children: ask all of them to end, at once. */
export const endAllChildren = (): void => {
  for (const [pid, signal] of running) send(pid, signal);
};

/** Starts a process, which `stopSignal` asks to end; `started` is called as soon as its pid is known, before anything else can happen. */
export const startChild = async (
  launch: Launch,
  stopSignal: NodeJS.Signals,
  started: (identity: ProcessIdentity) => void,
): Promise<RunningChild> => {
  const logStart = logSize(launch.logFile);
  const log = openSync(launch.logFile, 'a', 0o600);
  const child = spawnInto(launch, log);
  closeSync(log);
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => {
      running.delete(child.pid as number);
      // What it started itself (a sandbox's cells) must not outlive it.
      signalGroup(child.pid as number);
      resolve({ code, signal });
    });
  });
  const { pid } = child;
  if (pid === undefined) throw await spawnFailure(child, launch.command);
  running.set(pid, stopSignal);
  // A child that has ended already still has its pid until its exit is collected, but no start time any more.
  const identity = identify(pid) ?? { pid, start: 'ended' };
  try {
    // In the same breath as the spawn: the supervisor may be killed at any moment after it.
    started(identity);
  } catch (error) {
    // One that cannot be written down (a full disk) could never be found again.
    send(pid, 'SIGKILL');
    await exited;
    throw error;
  }
  return {
    identity,
    logStart,
    exited,
    onMessage: (listener) => void child.on('message', listener),
    end: async (signal, graceMs) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      send(pid, signal);
      const kill = setTimeout(() => send(pid, 'SIGKILL'), graceMs);
      await exited;
      clearTimeout(kill);
    },
  };
};
