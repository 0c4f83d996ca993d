import { describe, expect, it } from '@jest/globals';
import { AFTER_LOSS, ATTEMPT_SPAN, framesOf, initialCursor } from '@antiphon/contracts/agent';
import type { Frame, FrameCursor, SessionEventOf } from '@antiphon/contracts/agent';
import fc from 'fast-check';
import { DeltaStream, MAX_STREAMED_BYTES } from './delta-stream.js';

type Aborted = SessionEventOf<'ModelCallAborted'>['data'];

const cursor: FrameCursor = { ...initialCursor, attempt: 3, nextIndex: 1, lastOffset: 3 * ATTEMPT_SPAN };
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
const watch = () => {
  const frames: Frame[] = [];
  let overflows = 0;
  const stream = new DeltaStream(
    cursor,
    't',
    (out) => void frames.push(...out),
    () => overflows++,
  );
  return { stream, frames, overflows: () => overflows };
};

describe('DeltaStream', () => {
  it('sends the first delta at once, and later ones once per event-loop round', async () => {
    const { stream, frames } = watch();
    stream.onText('a');
    expect(frames).toHaveLength(1);
    stream.onText('b');
    stream.onText('c');
    expect(frames).toHaveLength(1);
    await nextTurn();
    expect(frames.map(({ data }) => data)).toEqual(['a', 'bc']);
  });

  it('preserves the order of text and thought', () => {
    const { stream, frames } = watch();
    stream.onThought('hm');
    stream.onText('so');
    stream.onThought('no');
    const { text, thought } = stream.end();
    expect(frames.map(({ event, data }) => [event, data])).toEqual([
      ['thought', 'hm'],
      ['text', 'so'],
      ['thought', 'no'],
    ]);
    expect([text, thought]).toEqual(['so', 'hmno']);
  });

  it('sends the frames that the fold of its event yields, for any deltas', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            kind: fc.constantFrom('text', 'thought'),
            delta: fc.string({ unit: 'binary' }),
            wait: fc.boolean(),
          }),
        ),
        async (deltas) => {
          const { stream, frames } = watch();
          for (const { kind, delta, wait } of deltas) {
            if (kind === 'text') stream.onText(delta);
            else stream.onThought(delta);
            if (wait) await nextTurn();
          }
          const streamed = stream.end();
          const folded = framesOf(cursor, {
            type: 'ModelCallAborted',
            schemaVersion: 2,
            data: { turnId: 't', ...streamed } as unknown as Aborted,
          });
          expect(frames).toEqual(folded.frames);
          expect(streamed.text.isWellFormed()).toBe(true);
        },
      ),
      { numRuns: 50 },
    ));

  it('sends larger frames after very many, and none twice', async () => {
    const { stream, frames } = watch();
    for (let n = 0; n < 3_000; n++) {
      stream.onText('x');
      await nextTurn();
    }
    stream.end();
    expect(frames.length).toBeLessThan(2_010);
    expect(frames.map(({ data }) => data).join('')).toBe('x'.repeat(3_000));
  });

  it('reports an overflow once', () => {
    const { stream, overflows } = watch();
    stream.onText('x'.repeat(MAX_STREAMED_BYTES + 1));
    stream.onText('y');
    expect(overflows()).toBe(1);
    expect(stream.end().text).not.toContain('y');
  });

  it.each([
    ['words', 'word '],
    ['Chinese', '\u5b57'],
    ['control characters', '\u0001'],
    ['single characters', 'x'],
  ])('holds %s until their event is nearly full', (_, part) => {
    const { stream, overflows } = watch();
    while (overflows() === 0) {
      stream.onText(part);
      // Each thought ends a frame of text, so the list of frames is as long as it can be.
      if (part === 'x') stream.onThought(part);
    }
    const size = Buffer.byteLength(JSON.stringify(stream.end()));
    expect([size > 600_000, size < 850_000]).toEqual([true, true]);
  });

  it('ignores deltas after its end, so that no frame is missing from the log', async () => {
    const { stream, frames } = watch();
    stream.onText('a');
    stream.onText('b');
    const streamed = stream.end();
    stream.onText('c');
    await nextTurn();
    expect(stream.end()).toEqual(streamed);
    expect([streamed.text, frames.map(({ data }) => data)]).toEqual(['ab', ['a', 'b']]);
  });

  it('sends a complete response at its end, unless it was streamed', () => {
    const whole = { thought: 'hm', text: 'so' };
    expect(watch().stream.end(whole)).toMatchObject({ ...whole, frames: [{ length: 2 }, { length: 2 }] });
    const { stream } = watch();
    stream.onText('sooner');
    expect(stream.end(whole)).toMatchObject({ text: 'sooner', thought: '' });
  });

  it('uses offsets below those of the next attempt', () =>
    expect(1 + MAX_STREAMED_BYTES / 36).toBeLessThan(AFTER_LOSS));
});
