import { fileURLToPath } from 'node:url';

/*
 * Jest loads this file as it is, outside its own module system: it and global-teardown.ts get the compiled package
 * (`npm run build`), and share what runs through `globalThis`.
 */
interface SharedState {
  antiphonTestEngines?: { stop(): Promise<void> } | null;
}

/** Starts the engines that the specs share, unless the `ANTIPHON_TEST_*` variables point at some. */
export default async function globalSetup(): Promise<void> {
  const compiled = fileURLToPath(new URL('../dist/engines/shared-engines.js', import.meta.url));
  const { startSharedEngines } = (await import(compiled)) as {
    startSharedEngines(env: NodeJS.ProcessEnv): Promise<SharedState['antiphonTestEngines']>;
  };
  (globalThis as SharedState).antiphonTestEngines = (await startSharedEngines(process.env)) ?? null;
}
