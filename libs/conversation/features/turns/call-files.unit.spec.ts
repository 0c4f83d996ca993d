import { describe, expect, it } from '@jest/globals';
import { notFound } from '@antiphon/kernel';
import type { ModelFile, UserMessage } from '@antiphon/providers-domain';
import { CallFiles } from './call-files.js';

const MIB = 1_024 * 1_024;
const LEFT_OUT = '\n[left out: the images and documents of this call are too large together]';
const MANY_TOKENS = 1_000_000;

const imageOf = (digest: string, at = 0): ModelFile => ({
  ...{ path: `${digest}.png`, digest, data: '', at },
  media: { mediaType: 'image/png', width: 100, height: 100 },
});

type Read = (workspace: string, digest: string) => Promise<Uint8Array>;
const fillPrompt = async (
  messages: readonly UserMessage[],
  read: Read,
  tokens = MANY_TOKENS,
): Promise<readonly UserMessage[]> => {
  const callFiles = new CallFiles({ blobs: { read } as never, models: {} as never });
  const filled = await callFiles.fill('default', { system: '', messages, tools: [] } as never, tokens);
  return filled.messages as readonly UserMessage[];
};
/** Fills a prompt of one message a file, each of `size` bytes. */
const fill = (files: readonly ModelFile[], size: number, tokens?: number) =>
  fillPrompt(
    files.map((file) => ({ role: 'user', text: 'look', files: [file] })),
    () => Promise.resolve(new Uint8Array(size)),
    tokens,
  );
const digestsSent = (messages: readonly UserMessage[]): string[] =>
  messages.flatMap(({ files = [] }) => files.map(({ digest }) => digest));
const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `image-${n}`);

describe('the files of a call', () => {
  it('are the newest 20 images, and a note stands for each older one', async () => {
    const all = names(22);
    const messages = await fill(
      all.map((name) => imageOf(name)),
      10,
    );
    expect(digestsSent(messages)).toEqual(all.slice(2));
    expect(messages.map(({ text }) => text)).toEqual([
      ...[`${LEFT_OUT}look`, `${LEFT_OUT}look`],
      ...all.slice(2).map(() => 'look'),
    ]);
  });

  it('have at most 20 MiB together, the newest first', async () => {
    const messages = await fill([imageOf('a'), imageOf('b'), imageOf('c')], 8 * MIB);
    expect(digestsSent(messages)).toEqual(['b', 'c']);
    expect(messages[0]?.text).toBe(`${LEFT_OUT}look`);
  });

  it('fit into the tokens of the call, but for the newest', async () => {
    const files = [imageOf('a'), imageOf('b')];
    expect(digestsSent(await fill(files, 10, 0))).toEqual(['b']);
    expect(digestsSent(await fill(files, 10, 1_000))).toEqual(['a', 'b']);
  });

  it('keep their places in a text that gets a note for erased bytes', async () => {
    const message = {
      role: 'user' as const,
      text: 'one two',
      files: [imageOf('gone', 3), imageOf('kept', 7)],
    };
    const read = (_: string, digest: string): Promise<Uint8Array> =>
      digest === 'gone'
        ? Promise.reject(notFound('FILE.ERASED', 'erased'))
        : Promise.resolve(Uint8Array.of(1, 2));
    const [filled] = await fillPrompt([message], read);
    const note = filled?.text.slice(3, -4) ?? '';
    expect(note).toContain('erased');
    expect(filled).toMatchObject({ text: `one${note} two`, files: [{ digest: 'kept', data: 'AQI=' }] });
    expect(filled?.files?.[0]?.at).toBe(filled?.text.length);
  });
});
