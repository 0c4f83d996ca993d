import { fileURLToPath } from 'node:url';

/*
 * Jest loads this file outside of its module system. So it imports the compiled package
 * (`npm run build`), and shares the engines with global-teardown.ts through `globalThis`.
 */
interface SharedState {
  antiphonTestEngines?: { stop(): Promise<void> };
}
interface ProjectConfig {
  readonly displayName?: { readonly name: string };
}

/** The figures of nightly specs are those of commits to a disk. */
const isNightly = (project: ProjectConfig): boolean => project.displayName?.name === 'nightly';

/** Starts the engines that the specs share, unless the `ANTIPHON_TEST_*` variables name some. */
export default async function globalSetup(_config: unknown, project: ProjectConfig): Promise<void> {
  const compiled = fileURLToPath(new URL('../dist/engines/shared-engines.js', import.meta.url));
  const { startSharedEngines } = (await import(compiled)) as {
    startSharedEngines(env: NodeJS.ProcessEnv, isDurable: boolean): Promise<{ stop(): Promise<void> }>;
  };
  (globalThis as SharedState).antiphonTestEngines = await startSharedEngines(process.env, isNightly(project));
}
