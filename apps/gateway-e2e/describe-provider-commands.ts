import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { startMockModel } from '@antiphon/testing/providers';
import type { CliWorld } from './cli-world.js';
import { waitForValue } from './stack-under-test.js';

/** Describes the commands for providers that are connected at run time, and their agents. */
export const describeProviderCommands = (worldOf: () => CliWorld): void => {
  describe('commands for connected providers', () => {
    it('add, test, list and remove a provider, and give it to an agent', async () => {
      const mock = await startMockModel(() => ({ text: ['hi'] }));
      try {
        const { cli, run, runJson, folder } = worldOf();
        const file = join(folder, 'connected.key');
        writeFileSync(file, 'sk-of-the-connected-provider');
        const place = ['--name', 'extra', '--base-url', `${mock.url}/v1`, '--file', file];
        const added = await cli('provider', 'add', 'openai', ...place);
        expect(added).toMatchObject({ code: 0, stdout: 'extra: connected (openai, key stored)\n' });
        expect(added.stderr).toContain('works · 3 models');
        expect(await run('provider', 'list')).toMatch(/^scripted .+\nextra +openai +connected .+ready\n$/);
        expect(await run('provider', 'test', 'extra')).toContain('works');
        expect(await run('provider', 'models', 'extra')).toContain('mock-large');
        const { id } = await runJson<{ id: string }>('agent', 'spawn', 'Extra');
        const set = await runJson('agent', 'set', id, '--provider', 'extra', '--model', 'mock-large');
        expect(set).toMatchObject({ provider: 'extra', overrides: ['model', 'provider'] });
        await waitForValue('the changed agent in lists', async () => {
          const { agents } = await runJson<{ agents: { provider: string }[] }>('agent', 'list');
          return agents.some(({ provider }) => provider === 'extra') || undefined;
        });
        expect(await run('provider', 'remove', 'extra')).toContain(`agents without a provider: ${id}`);
        expect(await run('agent', 'terminate', id)).toBe(`${id}: terminated\n`);
      } finally {
        await mock.close();
      }
    });
  });
};
