export interface TestCount {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}
export declare const summary: (count: TestCount) => string;
export declare const runTests: (
  args: readonly string[],
  runBundled: (args: string[], env: NodeJS.ProcessEnv) => Promise<number>,
) => Promise<number>;
