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
  await expectTurnsOfEntry(world, first?.memoryId ?? '', turnId);
  const cells = await fact.getByRole('cell').allInnerTexts();
  expect(Number(cells[2])).toBe(first?.tokens);
  // The turn made a tool call after an earlier turn, both of which are in its last context.
  expect([built.turns.length, built.results.map(({ name }) => name)]).toEqual([1, ['calculator']]);
  const listed = [built.memory?.facts, built.files, built.turns, built.results].flat().length;
  expect(await parts.locator('tbody tr').count()).toBe(listed + (built.identity ? 6 : 5));
  await page.getByText(built.promptHash ?? 'no hash').waitFor();
  // The text of a part is shown by a click on its name.
  const result = parts.getByRole('row').filter({ hasText: 'Tool result' });
  await result.locator('summary').click();
  await result.getByText('42', { exact: true }).waitFor();
};

/** Opens an entry in a tab of its own, and finds a turn that used it, as the API and a link to it. */
const expectTurnsOfEntry = async (world: DashboardWorld, memoryId: string, turnId: string): Promise<void> => {
  const path = `/api/v1/memory/${memoryId}/turns`;
  const { turns } = await readApi<{ turns: { turnId: string; sessionId: string }[] }>(world, path);
  expect(turns.map((turn) => turn.turnId)).toContain(turnId);
  const page = await world.browser.newPage({ baseURL: new URL(world.page.url()).origin });
  await page.goto(`/memory?entry=${memoryId}`);
  const rows = page.getByRole('region', { name: 'Turns that used the entry' }).last().locator('tbody tr');
  await rows.first().waitFor();
  const links = await rows
    .locator('td:nth-child(2) a')
    .evaluateAll((found) => found.map((link) => link.getAttribute('href')));
  expect(links).toEqual(turns.map((turn) => `/sessions/${turn.sessionId}/why/${turn.turnId}`));
  await rows.locator('td:nth-child(2) a').first().click();
  await page.getByRole('heading', { level: 1, name: /^Why: / }).waitFor();
  await page.close();
};
