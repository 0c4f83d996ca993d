import type { ProcessIdentity } from './processes.mjs';

export interface RecordedChild extends ProcessIdentity {
  readonly name: string;
  readonly stopSignal: NodeJS.Signals;
  readonly graceMs: number;
}
export declare const liveChildren: (home: string) => RecordedChild[];
export declare const endOrphans: (
  home: string,
  tell?: (line: string) => void,
  options?: { readonly keepRecord?: boolean },
) => Promise<string[]>;
export declare const endGroup: (pid: number) => void;
export declare const stopStack: (
  home: string,
  tell?: (line: string) => void,
) => Promise<{ wasRunning: boolean }>;
export declare const SUPERVISED_HOME: string;
