/** Types of the JavaScript modules in this folder, which run before anything is installed. */

/** Identifies one process: a reused pid has another start. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque start time. */
  readonly start: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly uid?: number;
  readonly gid?: number;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** Called with the child's pid, so that the next holder of a lock can end an orphaned child. */
  readonly adopt?: (pid: number) => void;
  readonly onLine?: (line: string) => void;
}
export type RunCommand = (file: string, args: readonly string[], options?: RunOptions) => Promise<string>;
export type SignalProcess = (
  identity: ProcessIdentity,
  signal: NodeJS.Signals,
  options?: { readonly group?: boolean },
) => boolean;
export type Terminate = (
  identity: ProcessIdentity,
  options?: { readonly signal?: NodeJS.Signals; readonly graceMs?: number; readonly group?: boolean },
) => Promise<'gone' | 'stopped' | 'killed'>;

export type WatchParent = (onEnd: () => void) => void;

/** How the guard of a test run ends the processes of a folder. */
export type TestHomeKind = 'engines' | 'stack' | 'folder';
export type RecordHome = (home: string, kind: TestHomeKind) => void;
export type EndTestRun = (folder: string, note: (line: string) => void) => Promise<void>;
export type StartTestRun = (env: NodeJS.ProcessEnv) => () => Promise<void>;

export interface LockRecord extends ProcessIdentity {
  readonly nonce: string;
  children: readonly ProcessIdentity[];
}
export interface Lock {
  readonly path: string;
  /** Records a child that must not outlive the holder. */
  adopt(pid: number): void;
  /** Ends every adopted child that still runs, with its process group. */
  endChildren(signal?: NodeJS.Signals): void;
  /** Returns false once the file was deleted or belongs to another holder. */
  isHeld(): boolean;
  release(): void;
}
export type LockAttempt =
  | { readonly acquired: true; readonly lock: Lock }
  | { readonly acquired: false; readonly holder: LockRecord | null };
export type AcquireLock = (
  path: string,
  options?: { readonly onWait?: (holder: LockRecord) => void; readonly signal?: AbortSignal },
) => Promise<Lock>;

export type WriteText<Content> = (
  path: string,
  content: Content,
  mode?: number,
  options?: { readonly flush?: boolean },
) => void;

export interface Progress {
  step<T>(label: string, work: (detail: (text: string) => void) => Promise<T>): Promise<T>;
  note(line: string): void;
}

/** A process that a supervisor started, as its record in the home names it. */
export interface RecordedChild extends ProcessIdentity {
  readonly name: string;
  readonly stopSignal: NodeJS.Signals;
  readonly graceMs: number;
}
export type EndOrphans = (
  home: string,
  note?: (line: string) => void,
  options?: { readonly keepRecord?: boolean },
) => Promise<string[]>;

export type EngineName = 'postgres' | 'nats' | 'temporal';
export interface EngineSpec {
  readonly name: string;
  readonly key: string;
  readonly binaries: readonly string[];
  readonly minimum: string;
  readonly variable: string;
  readonly variableMeans: string;
  readonly addressVariable: string;
  readonly parseVersion: (output: string) => string | null;
  readonly npmPackage?: string;
  readonly wheel?: { readonly name: string; readonly version: string; readonly sha256: readonly string[] };
  readonly release?: {
    readonly version: string;
    readonly baseVariable: string;
    readonly base: string;
    readonly archive: string;
    /** SHA-256 of the archive by platform, such as `linux-amd64`. */
    readonly sha256: Readonly<Record<string, string>>;
  };
  readonly goInstall?: { readonly module: string; readonly version: string; readonly duration: string };
}
export interface ResolvedEngine {
  readonly version: string;
  /** Folder of its programs. */
  readonly folder: string;
  /** Source of the programs, for people. */
  readonly source: string;
}
export type Probe =
  | { readonly ok: true; readonly version: string; readonly folder: string }
  | { readonly ok: false; readonly reason: string };

export interface PrepareContext {
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
  readonly adopt?: (pid: number) => void;
}
export interface EngineContext extends PrepareContext {
  readonly cache: string;
  /** Major version that made the home's data, which only the same one can open. */
  readonly major?: number | null;
  readonly onProgress?: (text: string) => void;
}
export type EnsureEngines = (
  names: readonly EngineName[],
  context: PrepareContext & { readonly cache: string; readonly postgresMajor: number | null },
  progress: Progress,
) => Promise<Partial<Record<EngineName, ResolvedEngine>>>;

export type PrepareStep = (context: PrepareContext, progress: Progress) => Promise<void>;
/** Folders of the project and the cache, and the environment of the commands. */
export type ChromiumContext = Pick<PrepareContext, 'root' | 'signal'> & {
  cache: string;
  env: NodeJS.ProcessEnv;
};
export type PrepareChromium = (
  context: ChromiumContext,
  progress: Progress,
  machine?: { readonly places?: readonly string[]; readonly apt?: string; readonly isRoot?: boolean },
) => Promise<string | undefined>;
export type ProbeEngine = (engine: EngineSpec, folder: string, major?: number | null) => Promise<Probe>;
export type FindOnPath = (program: string, path?: string) => string | null;
export type JudgeVersion = (
  engine: EngineSpec,
  version: string | null,
  folder: string,
  major?: number | null,
) => Probe;
export type IsAtLeast = (version: string, minimum: string) => boolean;
export type ResolveEngine = (engine: EngineSpec, context: EngineContext) => Promise<ResolvedEngine>;
export type CreateLock = (path: string, record: LockRecord) => Lock;
export type WaitForExit = (identity: ProcessIdentity, timeoutMs: number) => Promise<boolean>;
export type SignalGroup = (pid: number, signal?: NodeJS.Signals) => void;
export type CreateProgress = (write: (line: string) => void) => Progress;
export type StopStack = (home: string, note?: (line: string) => void) => Promise<{ wasRunning: boolean }>;
export interface UserErrorOptions {
  readonly exitCode?: number;
  readonly cause?: unknown;
}
/* eslint-disable @typescript-eslint/no-explicit-any -- A caught error has any shape. */
export type ExplainSystemError = (error: any, subject: string) => string | null;
export type ToUserError = (error: any, subject: string, advice?: string) => any;
export type RunToEnd = (command: string, args: string[], options: any) => Promise<any>;
