import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readJson, writeJsonAtomic } from '@antiphon/bootstrap/files';
import { identify, signalGroup } from '@antiphon/bootstrap/processes';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { SUPERVISED_HOME } from '@antiphon/bootstrap/stop-stack';
import type { ProcessIdentity, RecordedChild } from '@antiphon/bootstrap/types';
import { UserError } from '@antiphon/bootstrap/user-error';
import type { Logger } from '@antiphon/observability';
import { fileSize } from './bounded-log.js';

/** Command, environment and log of one incarnation of a process. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Home of its stack. */
  readonly home: string;
  /** Standard output and error are appended to this file. */
  readonly logFile: string;
  /** Opens a channel for `{type:'ready', port}` messages. */
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
  /** Size of its log at the start, to quote only this incarnation. */
  readonly logStart: number;
  readonly exited: Promise<Exit>;
  onMessage(listener: (message: unknown) => void): void;
  /** Calls the listener at the next message of a type; an earlier listener of the type is dropped. */
  onceMessage(type: string, listener: () => void): void;
  /** Sends a message, if it has a channel. */
  send(message: object): void;
  /** Sends `signal`, and SIGKILL after `graceMs`. */
  end(signal: NodeJS.Signals, graceMs: number): Promise<void>;
}

export interface ChildRecord extends RecordedChild {
  /** Position in the start order; stopping uses the reverse order. */
  readonly rank: number;
  /** Owner of a service's leases. */
  readonly serviceId?: string | undefined;
}

/**
 * Record of a supervisor's children, for the next supervisor after a kill -9. A record that cannot
 * be written, on a full disk for example, stops no child: it is written later.
 */
export interface ChildrenRecord {
  add(child: ChildRecord): void;
  remove(pid: number): void;
  /** Writes the record if its last change could not be written. */
  retry(): void;
}

/** Reads the record of this home's previous supervisor. */
export const readChildren = (paths: HomeLayout): readonly ChildRecord[] =>
  (readJson(paths.childrenFile) as ChildRecord[] | null) ?? [];

/**
 * Creates an empty record. Writes nothing once `isHeld` returns false, as the home is another's
 * then.
 */
export const createChildrenRecord = (
  paths: HomeLayout,
  isHeld: () => boolean,
  logger: Logger,
): ChildrenRecord => {
  let children: readonly ChildRecord[] = [];
  let isWritten = true;
  const write = (next: readonly ChildRecord[]): void => {
    children = [...next].sort((a, b) => a.rank - b.rank);
    try {
      // Without fsync: a power failure ends the children too.
      if (isHeld()) writeJsonAtomic(paths.childrenFile, children, 0o600, { flush: false });
      isWritten = true;
    } catch (error) {
      if (isWritten) logger.error({ err: error }, 'children record write failed');
      isWritten = false;
    }
  };
  return {
    add: (child) => write([...children, child]),
    remove: (pid) => write(children.filter((child) => child.pid !== pid)),
    retry: () => {
      if (!isWritten) write(children);
    },
  };
};

/** Opens a log. Where that fails, as on a full disk, the child runs without one. */
const openLog = (path: string): number | 'ignore' => {
  try {
    return openSync(path, 'a', 0o600);
  } catch {
    return 'ignore';
  }
};

const spawnInto = (
  { command, args, ipc, home, env, ...options }: Launch,
  log: number | 'ignore',
): ChildProcess =>
  spawn(command, args, {
    cwd: options.cwd,
    // Marks the child, so that a cleanup finds it even without a record.
    env: { ...env, [SUPERVISED_HOME]: home },
    // Its own session: Ctrl-C reaches the supervisor alone, which stops all children in order.
    detached: true,
    stdio: ipc ? ['ignore', log, log, 'ipc'] : ['ignore', log, log],
    uid: options.uid,
    gid: options.gid,
  });

const waitForSpawnError = (child: ChildProcess, command: string): Promise<UserError> =>
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

/** Returns the listeners of the next message by its type. Each is called once. */
const listenOnce = (child: ChildProcess): Map<string, () => void> => {
  const waiting = new Map<string, () => void>();
  child.on('message', (message) => {
    const { type = '' } = message as { type?: string };
    waiting.get(type)?.();
    waiting.delete(type);
  });
  return waiting;
};

const running = new Map<number, NodeJS.Signals>();

/** Signals all children of this process to stop, without waiting: for a supervisor that fails. */
export const signalAllChildren = (): void => {
  for (const [pid, signal] of running) send(pid, signal);
};

/**
 * Starts a process that stops on `stopSignal`. Calls `onStarted` synchronously after the spawn: a
 * supervisor may be killed at any later moment, and the child must be recorded by then.
 */
export const startChild = async (
  launch: Launch,
  stopSignal: NodeJS.Signals,
  onStarted: (identity: ProcessIdentity) => void,
): Promise<RunningChild> => {
  const logStart = fileSize(launch.logFile);
  const log = openLog(launch.logFile);
  let child: ChildProcess;
  try {
    child = spawnInto(launch, log);
  } finally {
    if (log !== 'ignore') closeSync(log);
  }
  const { pid } = child;
  if (pid === undefined) throw await waitForSpawnError(child, launch.command);
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => {
      running.delete(pid);
      // Its own children, such as a sandbox's cells, must not outlive it.
      signalGroup(pid);
      resolve({ code, signal });
    });
  });
  running.set(pid, stopSignal);
  const waiting = listenOnce(child);
  // A child that has already ended keeps its pid until its exit is collected, without a start time.
  const identity = identify(pid) ?? { pid, start: 'ended' };
  onStarted(identity);
  return {
    identity,
    logStart,
    exited,
    onMessage: (listener) => void child.on('message', listener),
    onceMessage: (type, listener) => void waiting.set(type, listener),
    send: (message) => {
      // The callback receives a failure that would otherwise be an event without a listener.
      if (child.connected) child.send(message, () => undefined);
    },
    end: async (signal, graceMs) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      send(pid, signal);
      const kill = setTimeout(() => send(pid, 'SIGKILL'), graceMs);
      await exited;
      clearTimeout(kill);
    },
  };
};
