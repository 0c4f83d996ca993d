export declare class CommandError extends Error {
  readonly output: string;
}
export interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly uid?: number;
  readonly gid?: number;
  readonly signal?: AbortSignal;
  readonly adopt?: (pid: number) => void;
  readonly timeoutMs?: number;
  readonly onLine?: (line: string) => void;
}
export declare const runCommand: (
  file: string,
  args: readonly string[],
  options?: RunOptions,
) => Promise<string>;
