import { createPublicKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { CliWorld } from './cli-world.js';
import { waitForValue, type CliRun } from './stack-under-test.js';

/** Tests of an operator's commands, in the world of another spec. The last one stops its stack. */
export const describeOperatorCommands = (worldOf: () => CliWorld): void => {
  const cli = (...args: string[]): Promise<CliRun> => worldOf().cli(...args);
  const run = (...args: string[]): Promise<string> => worldOf().run(...args);
  const runJson = <T>(...args: string[]): Promise<T> => worldOf().runJson<T>(...args);

  const api = async (path: string): Promise<Record<string, unknown>> => {
    const response = await fetch(`${worldOf().gatewayUrl()}${path}`);
    expect([path, response.status]).toEqual([path, 200]);
    return (await response.json()) as Record<string, unknown>;
  };

  describe('the commands of an operator', () => {
    it('projections list and rebuild show tables that equal the log', async () => {
      expect(await run('projections', 'list')).toMatch(/^projection +service +position +lag +parked\n/);
      expect(await run('projections', 'rebuild', 'agent-sessions')).toMatch(
        /^agent-sessions: \d+ rows changed/,
      );
      expect(await run('projections', 'rebuild', '--all', '--compare')).toContain('\n0 rows differ\n');
    });

    it('dlq list and dlq replay find nothing parked', async () => {
      expect(await run('dlq', 'list')).toBe('nothing is parked\n');
      const letters = await api('/api/v1/dead-letters');
      expect(letters).toEqual({ streams: [], messages: [], hasMore: false, nextAfter: null });
      const { projections } = await api('/api/v1/projections');
      expect(projections).toContainEqual(expect.objectContaining({ name: 'memory-facts', parked: 0 }));
      expect(await run('dlq', 'replay')).toBe('0 streams and 0 messages replayed, 0 stay parked\n');
    });

    it('tool list and tool show say who may call a tool', async () => {
      expect(await run('tool', 'list')).toMatch(/^calculator +/m);
      expect(await run('tool', 'show', 'calculator')).toContain('expression');
    });

    it('events prove writes a proof that events verify accepts with the public key, offline', async () => {
      const { events } = await runJson<{ events: { eventId: string }[] }>('events', 'list', '--limit', '1');
      const [id, proof] = [events[0]?.eventId ?? '', join(worldOf().folder, 'one.proof.json')];
      await waitForValue('a root over the event', async () =>
        (await cli('events', 'prove', id, '--out', proof)).code === 0 ? true : undefined,
      );
      const key = createPublicKey(readFileSync(join(worldOf().home, 'credentials', 'log-signing.key')));
      const publicKey = join(worldOf().folder, 'log-signing.pub');
      writeFileSync(publicKey, key.export({ type: 'spki', format: 'pem' }));
      expect(await run('events', 'verify', proof, '--key', publicKey)).toMatch(/the proof holds\n$/);
      expect(await api('/api/v1/roots?limit=1')).toMatchObject({ signs: true, roots: [{ kind: 'root' }] });
      writeFileSync(proof, readFileSync(proof, 'utf8').replace('"position":1,', '"position":2,'));
      const changed = await cli('events', 'verify', proof, '--key', publicKey);
      expect([changed.code, changed.stderr]).toEqual([1, expect.stringContaining('the proof does not hold')]);
    });

    it('roots adopt refuses a log whose roots begin with it', async () => {
      const refused = await cli('roots', 'adopt', '--reason', 'a test');
      expect([refused.code, refused.stderr]).toEqual([
        expect.any(Number),
        expect.stringContaining('there is nothing to adopt'),
      ]);
      expect(refused.code).toBeGreaterThan(0);
    });

    it('events archive, archives and restore move closed streams out of the log and back', async () => {
      const archived = await runJson<{ archives: { events: number }[] }>(
        ...['events', 'archive', '--before', '999999999'],
      );
      expect(archived.archives[0]?.events).toBeGreaterThan(0);
      expect(await run('events', 'archives')).toMatch(/events of \d+ event streams\n$/);
      const { archives } = await api('/api/v1/archives');
      expect(archives).toMatchObject([{ state: 'intact', bytes: expect.any(Number) }]);
      expect(await run('events', 'restore', '--all')).toMatch(/^restored: /);
      expect(await api('/api/v1/archives')).toMatchObject({ archives: [] });
    });

    it('audit, backup, down and restore keep a log that the audit accepts', async () => {
      const { code, stdout } = await cli('audit', '--record');
      expect([code, stdout.split('\n').at(-2)]).toEqual([0, 'everything holds']);
      const { audits } = await api('/api/v1/audits?limit=1');
      expect(audits).toMatchObject([{ ok: true, proof: { keyId: expect.any(String) } }]);
      expect(await runJson('audits', '--limit', '1')).toMatchObject({ audits });
      expect(await run('audits')).toMatch(/^\S+Z  holds  \(\d+ events up to \d+, by key/);
      const backup = join(worldOf().folder, 'backup');
      expect(await run('backups')).toMatch(/^no backup has been recorded: /);
      expect(await api('/api/v1/backups')).toMatchObject({ backups: [], restores: [] });
      expect(await run('backup', backup, '--record')).toMatch(
        /rows of \d+ tables, 0 archive files\nthe log up to position \d+[^]*\nsigned with the key [0-9a-f]{16}\n$/,
      );
      expect(await api('/api/v1/backups')).toMatchObject({
        backups: [{ folder: backup, recordedBy: expect.stringMatching(/^key/), keyId: expect.any(String) }],
      });
      expect(await run('backups', '--limit', '1')).toContain(`${backup}  (up to `);
      expect((await cli('down')).code).toBe(0);
      expect((await cli('status')).code).toBe(3);
      const restored = await cli('restore', backup);
      expect([restored.code, restored.stdout]).toEqual([
        0,
        expect.stringMatching(
          /^restored: the log up to position \d+ \(.*\); epoch 2 begins\nverified: .*\nsigned: record \d+ .*\nlost: /,
        ),
      ]);
    });
  });
};
