import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { needsChromium, prepareChromium } from './chromium.mjs';
import type { ChromiumContext, Progress } from './types.js';

const progress = {
  note: () => undefined,
  step: () => Promise.reject(new Error('nothing is to be installed')),
} as unknown as Progress;
const contextOf = (env: Record<string, string>): ChromiumContext =>
  ({ root: '/nowhere', cache: '/nowhere', home: '/nowhere', env }) as unknown as ChromiumContext;

const working = {
  note: () => undefined,
  step: (_: string, work: () => Promise<unknown>) => work(),
} as unknown as Progress;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-chromium-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('Chromium for the tests', () => {
  it.each([
    [[], true],
    [['--maxWorkers=1'], true],
    [['--selectProjects', 'e2e'], true],
    [['--runTestsByPath', 'apps/gateway-e2e/dashboard-views.nightly.spec.ts'], true],
    [['--selectProjects', 'unit', '--', 'libs/kernel'], false],
    [['--runTestsByPath', 'libs/kernel/money.unit.spec.ts'], false],
  ])('is needed for the arguments %j: %s', (args, isNeeded) => expect(needsChromium(args)).toBe(isNeeded));

  it('is the one that the developer names', () =>
    expect(prepareChromium(contextOf({ ANTIPHON_CHROMIUM: '/opt/chrome' }), progress)).resolves.toBe(
      '/opt/chrome',
    ));

  it('is installed by apt-get where root permits it', async () => {
    const [apt, place] = [join(folder, 'apt-get'), join(folder, 'chromium')];
    // Writes down the package that it is to install.
    writeFileSync(apt, `#!/bin/sh\n[ "$1" = install ] && echo "$DEBIAN_FRONTEND $4" > '${place}'\nexit 0\n`, {
      mode: 0o755,
    });
    const context = contextOf({ PATH: process.env['PATH'] ?? '' });
    const found = prepareChromium(context, working, { places: [place], apt, isRoot: true });
    await expect(found).resolves.toBeUndefined();
    expect(readFileSync(place, 'utf8')).toBe('noninteractive chromium\n');
  });

  it('is none where neither apt-get nor the registry has it, and the reasons are shown', async () => {
    const apt = join(folder, 'broken-apt-get');
    writeFileSync(apt, '#!/bin/sh\nexit 100\n', { mode: 0o755 });
    const notes: string[] = [];
    const progress = { ...working, note: (line: string) => void notes.push(line) } as Progress;
    // A file stands where the cache would be.
    const context = { ...contextOf({ PATH: process.env['PATH'] ?? '' }), cache: apt };
    const found = prepareChromium(context, progress, { places: [], apt, isRoot: true });
    await expect(found).resolves.toBeUndefined();
    expect(notes).toEqual([expect.stringMatching(/there is no Chromium: apt-get failed: .+; .*ENOTDIR/)]);
  });

  it('is the installed one, and nothing is installed next to it', () =>
    expect(
      prepareChromium(contextOf({}), progress, { places: [process.execPath] }),
    ).resolves.toBeUndefined());
});
