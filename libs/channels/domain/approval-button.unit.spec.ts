import { describe, expect, it } from '@jest/globals';
import { approvalButtons, approvalText, readPress } from './approval-button.js';

const ID = '0b5f3a52-8a53-4c0e-9c3f-0d7c1b2a3f4e';

describe('the buttons of an approval', () => {
  it('are read back, and fit what Telegram takes', () => {
    const values = approvalButtons(ID).map(({ value }) => value);
    expect(values.map(readPress)).toEqual([
      { approvalId: ID, decision: 'approve' },
      { approvalId: ID, decision: 'deny' },
    ]);
    expect(values.filter((value) => Buffer.byteLength(value) > 64)).toEqual([]);
  });

  it.each([undefined, '', 'approval:x:approve', `approval:${ID}:maybe`, ` approval:${ID}:deny`, `${ID}`])(
    'are not %p',
    (value) => expect(readPress(value)).toBeNull(),
  );
});

describe('the text that asks for an approval', () => {
  it('has the tool and its arguments on one line', () =>
    expect(approvalText('main', 'write_file', { path: 'a\u202eb' })).toBe(
      'main asks for an approval.\nTool: write_file\nArguments: {"path":"a b"}',
    ));

  it('says that long arguments are cut', () => {
    const text = approvalText('main', 't', { text: '\u{1f600}'.repeat(1_000) });
    expect(text).toContain('(cut: 2011 characters)');
    expect(text.length).toBeLessThan(800);
    expect(text.isWellFormed()).toBe(true);
  });
});
