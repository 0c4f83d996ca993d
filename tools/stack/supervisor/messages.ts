import type { Logger } from '@antiphon/observability';
import { z } from 'zod';
import type { StackJson } from '../stack-json.js';

/** Messages of a supervisor to the process that started it. */
export type FromSupervisor =
  | { readonly type: 'progress'; readonly line: string }
  | { readonly type: 'ready'; readonly stack: StackJson }
  /** Another supervisor holds this home. */
  | { readonly type: 'held'; readonly pid: number }
  /** The start failed; `message` is for a person. */
  | { readonly type: 'failed'; readonly message: string; readonly exitCode: number };

const ToSupervisor = z.discriminatedUnion('type', [
  /** Continues without the process that started it. */
  z.object({ type: z.literal('detach') }),
  /** Stops in order, or by force with `now`. */
  z.object({ type: z.literal('stop'), now: z.boolean() }),
]);
export type ToSupervisor = z.infer<typeof ToSupervisor>;

/** Arguments of a supervisor, passed as JSON. */
export interface SupervisorArguments {
  /** Absolute. */
  readonly home: string;
  readonly cache: string;
  /** Folder of the project. */
  readonly root: string;
  readonly scale: Readonly<Record<string, number>>;
  /** True runs memory and metering in the process of the agent. */
  readonly isHosting: boolean;
  /** False takes any free ports, for many stacks on one machine. */
  readonly usualPorts: boolean;
  /** False for tests that suspend services and continue them. */
  readonly watchesHealth: boolean;
  /** Programs that replace the services', by name; for tests of the supervisor itself. */
  readonly mainFiles?: Readonly<Record<string, string>> | undefined;
}

/** The supervisor's end of the channel to the process that started it, if there is one. */
export interface Channel {
  send(message: FromSupervisor): void;
  /** Disconnects, so that the other process can end. */
  close(): void;
  onMessage(listener: (message: ToSupervisor) => void): void;
  /** Calls the listener when the other process ends. */
  onDisconnect(listener: () => void): void;
}

/** Returns the channel of this process. Without one, messages are dropped. */
export const processChannel = (): Channel => ({
  send: (message) => {
    // The callback receives the failure of a terminal that ends at this moment.
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
  },
  close: () => {
    if (process.connected) process.disconnect();
  },
  onMessage: (listener) =>
    void process.on('message', (message) => {
      const parsed = ToSupervisor.safeParse(message);
      if (parsed.success) listener(parsed.data);
    }),
  onDisconnect: (listener) => void process.on('disconnect', listener),
});

/** State of the requests to stop the stack. */
export interface StopRequest {
  /** Aborts at the first request. */
  readonly signal: AbortSignal;
  /** Resolves at the first request. */
  readonly requested: Promise<void>;
  /** Aborts at the second request: every process is killed. */
  readonly urgent: AbortSignal;
  request(reason: string, now?: boolean): void;
}

/** Listens for signals, stop messages and the end of the terminal's process. */
export const listenForStop = (channel: Channel, logger: Logger): StopRequest => {
  const first = new AbortController();
  const second = new AbortController();
  const requested = new Promise<void>((resolve) =>
    first.signal.addEventListener('abort', () => resolve(), { once: true }),
  );
  let isDetached = false;

  const request = (reason: string, now = false): void => {
    logger.info({ reason, now }, 'stop requested');
    if (now || first.signal.aborted) second.abort();
    first.abort(new Error(`the stack was stopped (${reason})`));
  };

  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => request(name));
  // The stack outlives its terminal, and a restarted service reads the configuration again.
  process.on('SIGHUP', () => logger.info({ signal: 'SIGHUP' }, 'signal ignored'));
  channel.onMessage((message) => {
    if (message.type === 'stop') return request('requested by the terminal', message.now);
    isDetached = true;
    channel.close();
  });
  channel.onDisconnect(() => {
    if (!isDetached) request('the process of its terminal has ended');
  });
  return { signal: first.signal, urgent: second.signal, requested, request };
};
