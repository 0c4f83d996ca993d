import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { CliWorld } from './cli-world.js';
import type { CliRun } from './stack-under-test.js';

/** Tests of the commands of keys, workspaces and credentials, in the world of another spec. */
export const describeKeyCommands = (worldOf: () => CliWorld): void => {
  const cli = (...args: string[]): Promise<CliRun> => worldOf().cli(...args);
  const run = (...args: string[]): Promise<string> => worldOf().run(...args);
  const runJson = <T>(...args: string[]): Promise<T> => worldOf().runJson<T>(...args);

  describe('antiphon key and antiphon workspace', () => {
    const tokenIn = (text: string): string => /ak_[a-z2-7]{16}_[A-Za-z0-9_-]{43}/.exec(text)?.[0] ?? '';
    const idOf = (token: string): string => token.split('_')[1] ?? '';

    it('use the admin key that the first start made, which its owner alone can read', async () => {
      const { adminKeyFile } = JSON.parse(readFileSync(join(worldOf().home, 'stack.json'), 'utf8')) as {
        adminKeyFile: string;
      };
      expect(statSync(adminKeyFile).mode & 0o777).toBe(0o600);
      const [own] = (await runJson<{ keys: { id: string; name: string; role: string }[] }>('key', 'list'))
        .keys;
      expect(own).toMatchObject({ name: 'bootstrap', role: 'admin' });
      expect(own?.id).toBe(idOf(readFileSync(adminKeyFile, 'utf8').trim()));
    });

    it('create, list, rotate and revoke a key, whose secret is shown once', async () => {
      const created = await run('key', 'create', 'ci', '--role', 'viewer', '--expires', '30d');
      const token = tokenIn(created);
      expect((await cli('events', 'list', '--token', token)).code).toBe(0);
      expect(await cli('key', 'list', '--token', token)).toMatchObject({
        code: 4,
        stderr: expect.stringContaining('keys:manage'),
      });
      const listed = await run('key', 'list');
      expect(listed).toMatch(new RegExp(`${idOf(token)}  active +viewer +ci  until `));
      expect(listed).not.toContain(token);
      const rotated = tokenIn(await run('key', 'rotate', idOf(token), '--overlap', '10m'));
      expect((await cli('events', 'list', '--token', rotated)).code).toBe(0);
      expect(await run('key', 'revoke', idOf(token))).toBe(`${idOf(token)}: revoked\n`);
      expect((await cli('events', 'list', '--token', rotated)).code).toBe(4);
      expect((await cli('key', 'create', 'x', '--expires', 'soon')).stderr).toContain('30d or 12h');
    });

    it('create and list workspaces, whose keys see nothing of each other', async () => {
      const token = tokenIn(await run('workspace', 'create', 'acme', '--name', 'Acme'));
      expect(await run('workspace', 'list')).toMatch(/^acme +\S+ {2}Acme\ndefault +\S+ {2}Default\n$/);
      expect(await run('workspace', 'list', '--token', token)).toMatch(/^acme +\S+ {2}Acme\n$/);
      expect(await run('key', 'list', '--token', token)).not.toContain('bootstrap');
      expect(await cli('workspace', 'create', 'other', '--token', token)).toMatchObject({
        code: 4,
        stderr: expect.stringContaining('in the workspace default'),
      });
    });
  });

  describe('antiphon credential and antiphon key rotate-master', () => {
    const SECRET = 'sk-canary-credential-90aa1b2c3d4e';

    it('store the key of a provider from a file, show it nowhere, and encrypt it under a new key', async () => {
      const file = join(worldOf().folder, 'provider.key');
      writeFileSync(file, `${SECRET}\n`);
      const stored = await run('credential', 'set', 'scripted', '--file', file);
      expect(stored).toMatch(/^scripted: stored, encrypted under the master key [0-9a-f]{16}\n$/);
      const rotated = await run('key', 'rotate-master');
      expect(rotated).toMatch(/^master key [0-9a-f]{16}: 1 data keys wrapped, 0 remain\n$/);
      const listed = await run('credential', 'list');
      expect(listed).toContain(/master key (\w+)/.exec(rotated)?.[1] ?? 'none');
      expect(stored + rotated + listed).not.toContain(SECRET);
      expect(
        readFileSync(join(worldOf().home, 'credentials', 'master.key'), 'utf8')
          .trim()
          .split('\n'),
      ).toHaveLength(1);
      expect(await run('credential', 'remove', 'scripted')).toBe('scripted: removed\n');
      expect((await cli('credential', 'set', 'none', '--file', file)).stderr).toContain(
        'no provider with this name',
      );
      for (const name of ['agent-1', 'gateway-1'])
        expect(readFileSync(join(worldOf().home, 'logs', `${name}.log`), 'utf8')).not.toContain(SECRET);
    });

    it('store a secret of tools without its value in any fact', async () => {
      const file = join(worldOf().folder, 'tool.secret');
      writeFileSync(file, `${SECRET}-of-a-tool\n`);
      const printed = [
        await run('secret', 'set', 'github', '--file', file),
        await run('secret', 'list'),
        await run('secret', 'remove', 'github'),
        await run('secret', 'remove', 'github'),
        await run('secret', 'list'),
      ];
      expect(printed).toEqual([
        'github: stored, encrypted\n',
        expect.stringMatching(/^github +\S+  by \S+\n$/),
        'github: removed\n',
        'github: no secret was stored\n',
        'no secret is stored\n',
      ]);
      const facts = await run('events', 'list', '--type', 'SecretStored,SecretRemoved', '--json');
      for (const fact of ['SecretStored', 'SecretRemoved']) expect(facts).toContain(`"${fact}"`);
      expect(facts).not.toContain('-of-a-tool');
    });
  });
};
