export interface ProcessIdentity {
  readonly pid: number;
  readonly start: string;
}
export interface TerminateOptions {
  readonly signal?: NodeJS.Signals;
  readonly graceMs?: number;
  readonly group?: boolean;
}
export declare const processStart: (pid: number) => string | null;
export declare const identify: (pid: number) => ProcessIdentity | null;
export declare const isAlive: (identity: ProcessIdentity) => boolean;
export declare const signalProcess: (
  identity: ProcessIdentity,
  signal: NodeJS.Signals,
  options?: { readonly group?: boolean },
) => boolean;
export declare const waitForExit: (identity: ProcessIdentity, timeoutMs: number) => Promise<boolean>;
export declare const terminate: (
  identity: ProcessIdentity,
  options?: TerminateOptions,
) => Promise<'gone' | 'stopped' | 'killed'>;
