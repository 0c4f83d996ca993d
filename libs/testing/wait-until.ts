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
