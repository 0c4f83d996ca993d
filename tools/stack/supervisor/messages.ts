import type { StackJson } from '../stack-json.js';

/** What a supervisor tells whoever started it, over the channel between them. */
export type FromSupervisor =
  | { readonly type: 'progress'; readonly line: string }
  | { readonly type: 'ready'; readonly stack: StackJson }
  /** Another supervisor holds this home. */
  | { readonly type: 'held'; readonly pid: number }
  /** The start failed; `message` is for a person. */
  | { readonly type: 'failed'; readonly message: string; readonly exitCode: number };

export type ToSupervisor =
  /** Goes on without whoever started it. */
  | { readonly type: 'detach' }
  /** Stops in order; `now`: without waiting for anything. */
  | { readonly type: 'stop'; readonly now: boolean };

/** What a supervisor is started with, as one JSON argument. */
export interface SupervisorArguments {
  /** Absolute. */
  readonly home: string;
  readonly cache: string;
  /** Folder of the project. */
  readonly root: string;
  readonly scale: Readonly<Record<string, number>>;
  /** False: any free ports, for many stacks on one machine. */
  readonly usualPorts: boolean;
  /** Programs to run in place of the services', by name; for tests of the supervisor itself. */
  readonly mainFiles?: Readonly<Record<string, string>>;
}
