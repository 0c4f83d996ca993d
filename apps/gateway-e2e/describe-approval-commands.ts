import { describe, expect, it } from '@jest/globals';
import type { CliWorld } from './cli-world.js';

/** Tests of `antiphon approvals`, in the world of another spec. */
export const describeApprovalCommands = (worldOf: () => CliWorld): void => {
  const run = (...args: string[]): Promise<string> => worldOf().run(...args);

  describe('antiphon approvals', () => {
    it('show and approve a call, and the waiting chat continues', async () => {
      const { approval, ended } = await worldOf().startGuardedChat('approve');
      expect(await run('approvals', 'show', approval.id)).toMatch(
        /guarded wants to call calculator\n {2}\{"expression":"19\+23"\}\n {2}waits for /,
      );
      const approved = await run('approvals', 'approve', approval.id, '--digest', approval.digest);
      expect(approved).toMatch(new RegExp(`^${approval.id}: approved by \\S+ at `));
      const { code, stdout } = await ended;
      expect([code, stdout]).toEqual([0, expect.stringContaining('[= 42]\n')]);
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
