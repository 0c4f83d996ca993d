import { describe, expect, it } from '@jest/globals';
import type { ChannelMessage } from '@antiphon/contracts/agent';
import { conflict, forbidden, notFound, transient } from '@antiphon/kernel';
import { ApprovalButtons } from './approval-buttons.js';
import type { ApprovalButtonsDeps } from './approval-buttons.js';
import type { Channel } from '../settings/channel-directory.js';

const approvalId = '0b5f3a52-8a53-4c0e-9c3f-0d7c1b2a3f4e';
const config = { workspace: 'default', name: 'slack', approvers: ['U1'], approverRole: 'operator' };
const channel = { config } as unknown as Channel;

const decide = (answer: () => Promise<unknown>, { sender = 'U1', peer = 'C1' } = {}): Promise<string> => {
  const state = { approval: { approvalId, digest: 'd' }, peer: 'C1' };
  const deps = { streams: { read: () => Promise.resolve({ state }) }, answers: { handle: answer } };
  const message = { peer, sender: { id: sender } } as ChannelMessage;
  const buttons = new ApprovalButtons(deps as unknown as ApprovalButtonsDeps);
  return buttons.decide(channel, { approvalId, decision: 'approve' }, message);
};
const closed = (status: string) => () =>
  Promise.reject(conflict('APPROVAL.CLOSED', 'closed', { data: { approvalId, status } }));

describe('the press of a button of an approval', () => {
  it.each([
    ['granted', 'The approval was given before.'],
    ['denied', 'The approval was denied before.'],
    ['expired', 'The approval has expired.'],
    ['voided', 'The approval does not hold any more: the tool has changed.'],
    ['withdrawn', 'The approval is not needed any more: the turn has ended.'],
  ])('that is %s says so', async (status, text) => expect(await decide(closed(status))).toBe(text));

  it('says that the role of the channel may not decide, or that the call has changed', async () => {
    const role = () => Promise.reject(forbidden('APPROVAL.ROLE_TOO_LOW', 'role'));
    expect(await decide(role)).toBe('You may not decide this approval.');
    const digest = () => Promise.reject(conflict('APPROVAL.DIGEST_MISMATCH', 'digest'));
    expect(await decide(digest)).toBe('The call has changed since it was shown.');
    const gone = () => Promise.reject(notFound('APPROVAL.NOT_FOUND', 'gone'));
    expect(await decide(gone)).toBe('The approval is not known any more.');
  });

  it('of another sender, or in another conversation, decides nothing', async () => {
    const never = () => Promise.reject(new Error('it was decided'));
    expect(await decide(never, { sender: 'U2' })).toBe('You may not decide this approval.');
    expect(await decide(never, { peer: 'C2' })).toBe(
      'This button is about no approval of this conversation.',
    );
  });

  it('is repeated after an error that may pass', async () => {
    const down = () => Promise.reject(transient('DATABASE.UNAVAILABLE', 'down'));
    await expect(decide(down)).rejects.toMatchObject({ code: 'DATABASE.UNAVAILABLE' });
  });
});
