interface SharedState {
  antiphonTestEngines?: { stop(): Promise<void> } | null;
}

/** Ends what global-setup.ts started. */
export default async function globalTeardown(): Promise<void> {
  await (globalThis as SharedState).antiphonTestEngines?.stop();
}
