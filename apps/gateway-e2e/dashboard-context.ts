import { expect } from '@jest/globals';
import type { TurnContextView } from '@antiphon/contracts/agent';
import { readApi, type DashboardWorld } from './dashboard-world.js';

/** Compares the parts of a context on the page of a turn with those of the API. */
export const expectContextParts = async (
  world: DashboardWorld,
  sessionId: string,
  turnId: string,
): Promise<void> => {
  const { page } = world;
  const built = await readApi<TurnContextView>(
    world,
    `/api/v1/sessions/${sessionId}/turns/${turnId}/context`,
  );
  const total = built.tokens.toLocaleString('en-US');
  await page.getByRole('heading', { name: `Context by tokens: about ${total} of` }).waitFor();
  const parts = page.getByRole('region', { name: 'Context by tokens', exact: true });
  const believed = await readApi<{ entries: { memoryId: string; object: string }[] }>(
    world,
    `/api/v1/memory?session=${sessionId}&at=${built.memory?.position}`,
  );
  expect(believed.entries.map(({ object }) => object)).toEqual(['Ada']);
  const [first] = built.memory?.facts ?? [];
  expect(first?.memoryId).toBe(believed.entries[0]?.memoryId);
  const fact = parts.getByRole('row').filter({ hasText: 'user · name: Ada' });
  expect(await fact.getByRole('link').getAttribute('href')).toBe(`/memory?entry=${first?.memoryId}`);
  const cells = await fact.getByRole('cell').allInnerTexts();
  expect(Number(cells[2])).toBe(first?.tokens);
  // The turn made a tool call after an earlier turn, both of which are in its last context.
  expect([built.turns.length, built.results.map(({ name }) => name)]).toEqual([1, ['calculator']]);
  const listed = [built.memory?.facts, built.files, built.turns, built.results].flat().length;
  expect(await parts.locator('tbody tr').count()).toBe(listed + (built.identity ? 6 : 5));
  await page.getByText(built.promptHash ?? 'no hash').waitFor();
};
