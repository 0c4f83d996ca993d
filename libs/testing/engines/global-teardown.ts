interface SharedState {
  antiphonTestEngines?: { stop(): Promise<void> };
}

/** Stops the engines that global-setup.ts started. */
export default async function globalTeardown(): Promise<void> {
  await (globalThis as SharedState).antiphonTestEngines?.stop();
}
