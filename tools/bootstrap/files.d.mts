export interface WriteOptions {
  readonly flush?: boolean;
}
export declare const makeDir: (path: string, mode?: number) => void;
export declare const writeFileAtomic: (
  path: string,
  text: string,
  mode?: number,
  options?: WriteOptions,
) => void;
export declare const writeJsonAtomic: (
  path: string,
  value: unknown,
  mode?: number,
  options?: WriteOptions,
) => void;
export declare const readJson: (path: string) => unknown;
