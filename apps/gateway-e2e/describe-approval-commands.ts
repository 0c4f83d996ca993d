import { describe, expect, it } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CliWorld } from './cli-world.js';

/** Tests of `antiphon approvals`, in the world of another spec. */
export const describeApprovalCommands = (worldOf: () => CliWorld): void => {
  const run = (...args: string[]): Promise<string> => worldOf().run(...args);

  describe('antiphon approvals', () => {
    it('show a call and approve it with other arguments, and the waiting chat continues', async () => {
      const { approval, ended } = await worldOf().startGuardedChat('approve');
      expect(await run('approvals', 'show', approval.id)).toMatch(
        /guarded wants to call calculator\n {2}\{"expression":"19\+23"\}\n {2}waits for /,
      );
      const approve = ['approvals', 'approve', approval.id, '--digest', approval.digest, '--input'];
      const refused = await worldOf().cli(...approve, '{"expression":7}');
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('/expression')]);
      writeFileSync(join(worldOf().folder, 'other.json'), '{"expression":"20+23"}');
      const approved = await run(...approve, 'other.json');
      expect(approved).toMatch(new RegExp(`^${approval.id}: approved with changed arguments by \\S+ at `));
      const { code, stdout } = await ended;
      expect([code, stdout]).toEqual([0, expect.stringContaining('[= 43]\n')]);
      expect(await run('approvals', 'show', approval.id)).toContain('approved with {"expression":"20+23"}');
      expect(stdout).toContain(`[waits for an approval: antiphon approvals approve|deny ${approval.id}]`);
    });

    it('deny a call, and the chat shows that the tool did not run', async () => {
      const { approval, ended } = await worldOf().startGuardedChat('deny');
      expect(await run('approvals', 'deny', approval.id, '--reason', 'not today')).toContain(': denied by ');
      const { code, stdout } = await ended;
      expect([code, stdout]).toEqual([0, expect.stringContaining('not today')]);
      expect(stdout).not.toContain('[= 42]');
      expect(await run('approvals', 'list', '--all')).toContain('not today');
    });
  });
};
