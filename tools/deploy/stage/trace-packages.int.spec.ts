import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { tracePackages } from './trace-packages.mjs';

const ROOT = join(import.meta.dirname, '../../..');

it('the image of the agent has the packages that only its threads import', () => {
  const { own, others } = tracePackages(ROOT, 'apps/agent/dist/main.js', { arch: 'x64' });
  expect([...others.values()]).toEqual(expect.arrayContaining(['re2js', 'diff', 'yaml']));
  expect([...own.keys()]).toContain('@antiphon/service-host');
});
