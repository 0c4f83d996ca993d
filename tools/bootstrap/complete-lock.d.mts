export interface LockFile {
  readonly packages: Readonly<Record<string, object>>;
}
export declare const missingOptionals: (lock: LockFile) => [path: string, entry: object][];
export declare const completeLock: (lock: LockFile) => LockFile;
