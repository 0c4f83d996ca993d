export interface EngineSpec {
  readonly name: string;
  readonly key: string;
  readonly binaries: readonly string[];
  readonly minimum: string;
  readonly variable: string;
  readonly parseVersion: (output: string) => string | null;
  readonly npmPackage?: string;
  readonly wheel?: { readonly name: string; readonly version: string };
  readonly release?: { readonly version: string; readonly archive: string };
  readonly goInstall?: { readonly module: string };
}
export declare const ENGINES: Readonly<Record<'postgres' | 'nats' | 'temporal', EngineSpec>>;
export declare const platformKey: string;
export declare const isAtLeast: (version: string, minimum: string) => boolean;
