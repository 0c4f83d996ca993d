import type { ProcessIdentity } from './processes.mjs';

export interface Lock {
  readonly path: string;
  adopt(pid: number): void;
  endChildren(signal?: NodeJS.Signals): void;
  isHeld(): boolean;
  release(): void;
}
export interface LockRecord extends ProcessIdentity {
  readonly nonce: string;
  readonly children: readonly ProcessIdentity[];
}
export type LockAttempt =
  | { readonly acquired: true; readonly lock: Lock }
  | { readonly acquired: false; readonly holder: LockRecord | null };
export declare const tryLock: (path: string) => Promise<LockAttempt>;
export declare const acquireLock: (
  path: string,
  options?: { readonly onWait?: (holder: LockRecord) => void; readonly signal?: AbortSignal },
) => Promise<Lock>;
export declare const lockHolder: (path: string) => LockRecord | null;
