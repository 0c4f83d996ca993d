import { afterAll, beforeAll } from '@jest/globals';
import { appendContract } from './append-contract.js';
import { interleavingContract, type InterleavingOptions } from './interleaving-contract.js';
import { leaseContract } from './lease-contract.js';
import type { LogUnderTest, MakeLog } from './log-under-test.js';
import { readContract } from './read-contract.js';
import { repeatContract } from './repeat-contract.js';

export { freshStream, freshWorkspace, newEvent, toStream } from './log-under-test.js';
export type { LogUnderTest, MakeLog } from './log-under-test.js';

/**
 * Defines the tests that every adapter of the event store must pass. Call it inside a `describe`.
 */
export const eventStoreContract = (makeLog: MakeLog, options: InterleavingOptions = {}): void => {
  let log: LogUnderTest;
  beforeAll(async () => {
    log = await makeLog();
  }, 60_000);
  afterAll(() => log.close(), 60_000);

  const opened = (): LogUnderTest => log;
  appendContract(opened);
  repeatContract(opened);
  readContract(opened);
  leaseContract(opened);
  interleavingContract(opened, options);
};
