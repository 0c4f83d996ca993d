/** Waits for a fact; fails with the last error, or because it did not come true in time. For specs. */
export const until = async (fact: () => boolean | Promise<boolean>, timeoutMs = 15_000): Promise<void> => {
  const deadline = Date.now() + timeoutMs;
  while (!(await fact())) {
    if (Date.now() > deadline)
      throw new Error(`did not come true within ${timeoutMs} ms: ${fact.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};
