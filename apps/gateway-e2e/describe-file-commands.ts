import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { CALCULATION, type CliWorld } from './cli-world.js';
import type { CliRun } from './stack-under-test.js';

/** Tests of `antiphon files` and `antiphon plan`, in the world of another spec. */
export const describeFileCommands = (worldOf: () => CliWorld): void => {
  const cli = (...args: string[]): Promise<CliRun> => worldOf().cli(...args);
  const run = (...args: string[]): Promise<string> => worldOf().run(...args);
  const say = (content: string, ...options: string[]): Promise<string> => worldOf().say(content, ...options);

  describe('antiphon files and antiphon plan', () => {
    const write = async (path: string, text: string, expect?: string): Promise<string> => {
      const url = `${worldOf().gatewayUrl()}/api/v1/workspaces/default/files/${encodeURIComponent(path)}`;
      const [headers, body] = [{ 'content-type': 'application/json' }, JSON.stringify({ text, expect })];
      const response = await fetch(url, { method: 'PUT', headers, body });
      return ((await response.json()) as { files: [{ digest: string }] }).files[0].digest;
    };

    it('list, print, compare, export, restore, put and erase a file', async () => {
      const [path, out] = ['docs/tides.md', join(worldOf().folder, 'exported')];
      await write(path, 'high at seven\n', await write(path, 'high at six\n'));
      expect(await run('files', 'ls', 'docs')).toContain(path);
      expect(await run('files', 'cat', path)).toBe('high at seven\n');
      expect((await run('files', 'history', path)).match(/docs\/tides\.md/g)).toHaveLength(2);
      expect(await run('files', 'diff', path, '--from', '1')).toBe(
        `--- a/${path}\n+++ b/${path}\n@@ -1,1 +1,1 @@\n-high at six\n+high at seven\n`,
      );
      await run('files', 'restore', path, '--from', '1');
      expect(await run('files', 'cat', path)).toBe('high at six\n');
      await run('files', 'export', '--out', out);
      expect(readFileSync(join(out, path), 'utf8')).toBe('high at six\n');
      await run('files', 'export', '--out', `${out}.tar`);
      // Without a proof there is nothing to verify.
      expect((await cli('files', 'verify', `${out}.tar`)).code).toBe(2);
      expect(await run('files', 'put', join(out, path), 'copy.md')).toContain('copy.md: 12 bytes');
      expect(await run('files', 'cat', 'copy.md')).toBe('high at six\n');
      const erased = await run('files', 'erase', path, '--reason', 'personal data');
      expect(erased).toMatch(/^erased 2 contents[^]*deleted copy.md\n/);
      expect((await cli('files', 'cat', path, '--at', '1')).stderr).toContain('were erased');
      await run('files', 'export', '--at', '1', '--out', `${out}-erased.tar`);
      expect(readFileSync(`${out}-erased.tar.json`, 'utf8')).toContain(`"erased": [\n    "${path}"`);
    });

    it('take back the changes that a session made after one of its events', async () => {
      await write('mine/kept.md', 'before\n');
      const write1 = (path: string, content: string): string =>
        `/tool write ${JSON.stringify({ path, content })}`;
      const sessionId = await say(write1('mine/first.md', 'one\n'), '--peer', 'rewind');
      const listed = await run('events', 'tail', '--once', '--stream', `session-${sessionId}`);
      const at = listed.trim().split('\n').length;
      const more = [write1('mine/second.md', 'two\n'), '/tool rm {"path":"mine/kept.md"}'];
      await say([...more, write1('mine/third.md', 'three\n')].join('\n'), '--session', sessionId);
      await write('mine/third.md', 'of another\n');
      const restore = ['files', 'restore', '--session', sessionId, '--at', String(at)];
      const lines = [
        ...['deleted mine/second.md', 'restored mine/kept.md'],
        expect.stringMatching(/^kept mine\/third.md: a newer change of /),
        expect.stringMatching(/^version \d+, 2 files restored or deleted, 1 conflicts$/),
      ];
      expect((await run(...restore, '--dry-run')).trim().split('\n')).toEqual(lines);
      expect(await run('files', 'cat', 'mine/second.md')).toBe('two\n');
      expect((await run(...restore)).trim().split('\n')).toEqual(lines);
      expect(await run('files', 'cat', 'mine/kept.md')).toBe('before\n');
      expect(await run('files', 'cat', 'mine/first.md')).toBe('one\n');
      expect(await run('files', 'cat', 'mine/third.md')).toBe('of another\n');
      expect((await cli('files', 'cat', 'mine/second.md')).stderr).toContain('there is no file');
      // The route itself, to the beginning of the session.
      const url = `${worldOf().gatewayUrl()}/api/v1/sessions/${sessionId}/files/rewind`;
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(url, { method: 'POST', headers, body: '{"at":0,"dryRun":false}' });
      expect([response.status, await response.json()]).toEqual([
        200,
        expect.objectContaining({
          files: [expect.objectContaining({ path: 'mine/first.md', change: 'deleted' })],
        }),
      ]);
      expect((await cli('files', 'cat', 'mine/first.md')).code).toBe(1);
    });

    it('run a plan until its last step is done with evidence', async () => {
      const report = { path: 'done.plan.md', step: 's1', status: 'done', evidence: { tool: 'calculator' } };
      const step = `${CALCULATION}\n/then\n/tool plan_step ${JSON.stringify(report)}`;
      await write('done.plan.md', `# Sums\n\n- [ ] Add two numbers\n\n${step}\n`);
      expect(await run('plan', 'run', 'done.plan.md', '--agent', 'main', '--watch')).toContain('completed');
      expect(await run('files', 'cat', 'done.plan.md')).toContain('- [x] Add two numbers');
    });

    it('show a plan, run its step in a turn of an agent, and stop no run that has ended', async () => {
      await write('release.plan.md', '# Release\n\n- [ ] Write the tests\n');
      expect(await run('plan', 'list')).toContain('release.plan.md  open  0 of 1 steps');
      expect(await run('plan', 'show', 'release.plan.md')).toContain('Write the tests');
      const ran = await cli('plan', 'run', 'release.plan.md', '--agent', 'main', '--watch');
      // The scripted model reports no end of the step.
      expect(ran).toMatchObject({ code: 1, stdout: expect.stringContaining('step_failed') });
      expect(await run('plan', 'stop', 'release.plan.md')).toContain('step_failed');
    });
  });
};
