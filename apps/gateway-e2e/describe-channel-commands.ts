import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { CliWorld } from './cli-world.js';

/** Table of the channel that the commands use. */
export const CLI_CHANNEL = `
[[channels]]
name = "mock"
`;

/** Describes the commands for channels: their secrets, peers and deliveries. */
export const describeChannelCommands = (worldOf: () => CliWorld): void => {
  describe('commands for channels', () => {
    it('store a secret, pair and block peers, and list deliveries', async () => {
      const { cli, run, runJson, folder, gatewayUrl } = worldOf();
      const file = join(folder, 'channel.secret');
      writeFileSync(file, 'secret-of-the-channel');
      const stored = await cli('channel', 'connect', 'mock', '--secret-stdin', '--file', file);
      expect(stored).toMatchObject({ code: 0, stdout: 'mock: secret stored, encrypted\n' });
      expect(await run('channel', 'list')).toMatch(
        /^mock +mock +webhook +ready +secrets secret, 0 paired\n$/,
      );
      const { code } = await runJson<{ code: string }>('channel', 'pair', 'mock');
      expect(code).toMatch(/^[A-Z2-9]{10}$/);
      expect(await run('channel', 'pair', 'mock', 'alice')).toBe('alice: paired\n');
      const sent = await fetch(`${gatewayUrl()}/webhook/mock`, {
        method: 'POST',
        headers: { 'x-antiphon-channel-secret': 'secret-of-the-channel' },
        body: JSON.stringify({ id: 'cli-1', from: 'alice', text: 'hello' }),
      });
      expect(sent.status).toBe(200);
      expect(await run('channel', 'block', 'mock', 'alice')).toBe('alice: blocked\n');
      expect(await run('channel', 'peers', 'mock')).toMatch(/^alice +blocked /);
      expect(await run('channel', 'unpair', 'mock', 'alice')).toBe('alice: unpaired\n');
      expect(await run('channel', 'deliveries', '--channel', 'mock')).toContain('mock alice');
      expect(await run('channel', 'dead-letters')).toBe('there are none\n');
      const replay = await cli('channel', 'replay', randomUUID());
      expect([replay.code, replay.stderr]).toEqual([1, expect.stringContaining('no delivery')]);
    });
  });
};
