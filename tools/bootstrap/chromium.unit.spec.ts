import { describe, expect, it } from '@jest/globals';
import { needsChromium, prepareChromium } from './chromium.mjs';
import type { ChromiumContext, Progress } from './types.js';

const progress = {
  note: () => undefined,
  step: () => Promise.reject(new Error('nothing is to be installed')),
} as unknown as Progress;
const contextOf = (env: Record<string, string>): ChromiumContext =>
  ({ root: '/nowhere', cache: '/nowhere', home: '/nowhere', env }) as unknown as ChromiumContext;

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

  it('is the installed one, and nothing is installed next to it', () =>
    expect(
      prepareChromium(contextOf({}), progress, { places: [process.execPath] }),
    ).resolves.toBeUndefined());
});
