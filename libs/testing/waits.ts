import { sleep } from '@antiphon/kernel';

const POLL_MS = 10;

/** Polls until `fact` returns true. Throws after `timeoutMs`, or the error of `fact`. */
export const until = async (fact: () => boolean | Promise<boolean>, timeoutMs = 15_000): Promise<void> => {
  const deadline = Date.now() + timeoutMs;
  while (!(await fact())) {
    if (Date.now() > deadline)
      throw new Error(`did not come true within ${timeoutMs} ms: ${fact.toString()}`);
    await sleep(POLL_MS);
  }
};

/**
 * Lets time pass that is an input of the test: the length of an outage, the pace of a load, the
 * slowness of a model. A test that waits for a fact uses `until`.
 */
export const letTimePass = (ms: number): Promise<void> => sleep(ms);

/** Waits before the test asserts that something did not happen: time in which it would. */
export const giveTimeToFail = (ms: number): Promise<void> => sleep(ms);
