import { describe, expect, it } from '@jest/globals';
import { filesOf, userPartsOf } from '@antiphon/providers-domain';
import { withAttached, withFiles } from './message-files.js';

const media = { mediaType: 'image/png', width: 64, height: 48 } as const;
const image = (path: string, at: number) => ({ path, digest: path, size: 9, media, at });
const note = (path: string, at: number) => ({ path, digest: path, size: 9, at });

/** Returns the parts of a message: its texts, and the paths of its files. */
const shown = (message: Parameters<typeof userPartsOf>[0]): string[] =>
  userPartsOf(message).map((part) => ('text' in part ? part.text.trim() : `<${part.file.path}>`));

describe('files of a message', () => {
  it('stand at their places in the text, each after its name', () => {
    const message = withFiles('first\n\nsecond', [image('a.png', 5), image('b.png', 13)], new Map());
    expect(shown(message)).toEqual([
      'first\n\n--- a.png (image/png, 64 x 48 pixels, 9 bytes, sha256 a.png)',
      '<a.png>',
      'second\n\n--- b.png (image/png, 64 x 48 pixels, 9 bytes, sha256 b.png)',
      '<b.png>',
    ]);
  });

  it('are texts where the model gets them as text, also an image that it does not take', () => {
    const texts = new Map([
      ['a.md', 'low tide'],
      ['b.png', '[not sent]'],
    ]);
    const message = withFiles('', [note('a.md', 0), image('b.png', 0)], texts);
    expect(message.files).toBeUndefined();
    expect(message.text).toContain('--- a.md (9 bytes, sha256 a.md)\nlow tide');
    expect(message.text).toContain('[not sent]');
  });

  it('keep their places behind attached ones, also beyond an edited text', () => {
    const first = { role: 'user' as const, ...withFiles('cut', [image('own.png', 900)], new Map()) };
    const messages = withAttached([first], [image('all.png', 0)]);
    expect(filesOf({ messages }).map(({ path }) => path)).toEqual(['all.png', 'own.png']);
    const [message] = messages;
    if (message?.role !== 'user') throw new Error('no message of the user');
    expect(shown(message).filter((part) => part.startsWith('<'))).toEqual(['<all.png>', '<own.png>']);
    for (const { at } of message.files ?? []) expect(message.text.slice(0, at)).toMatch(/sha256 \S+\)$/);
  });
});
