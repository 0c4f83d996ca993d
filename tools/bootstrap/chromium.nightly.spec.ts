import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { prepareChromium } from './chromium.mjs';
import { projectRoot } from './project.mjs';
import type { ChromiumContext, Progress } from './types.js';

jest.setTimeout(300_000);

let cache: string;
beforeAll(() => {
  cache = mkdtempSync(join(tmpdir(), 'antiphon-chromium-'));
});
afterAll(() => rmSync(cache, { recursive: true, force: true }));

it('a machine without Chromium gets one from the registry, which shows a page, and keeps it', async () => {
  let installs = 0;
  const progress = {
    note: (line: string) => Promise.reject(new Error(line)),
    step: (_: string, work: () => Promise<unknown>) => ((installs += 1), work()),
  } as unknown as Progress;
  const context = { root: projectRoot, cache, home: cache, env: process.env } as unknown as ChromiumContext;
  const machine = { places: [], apt: join(cache, 'no-apt-get') };
  const { ANTIPHON_CHROMIUM: _, ...env } = process.env;
  const program = await prepareChromium({ ...context, env }, progress, machine);
  expect(program).toMatch(/chromium\/[\d.]+\/start$/);
  expect(await prepareChromium({ ...context, env }, progress, machine)).toBe(program);
  expect(installs).toBe(2);

  const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox'] });
  const page = await browser.newPage();
  await page.setContent('<button>Send</button>');
  expect(await page.getByRole('button', { name: 'Send' }).count()).toBe(1);
  await browser.close();
});
