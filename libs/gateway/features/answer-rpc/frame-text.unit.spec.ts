import { describe, expect, it } from '@jest/globals';
import { FRAME_EVENTS, type FrameEvent } from '@antiphon/contracts/agent';
import type { StreamFrame } from './client-connection.js';
import { createFrameText } from './frame-text.js';

const DATA = [
  ...['', 'a "quote", a \\ and a\nline', '\u2028 \ud83d\ude00 \ud800 alone', null, 0.1, true],
  { id: 'call', input: { b: [1, { a: '</script>' }] }, is_error: false },
];
const IDS = [1, 0.5, 'text "quoted"\n', null, undefined];

describe('the text of a frame', () => {
  it('is byte for byte the JSON of its id, event, data and offset, whoever was told before', () => {
    const textOf = createFrameText();
    const frames = DATA.flatMap((data) =>
      FRAME_EVENTS.map((event: FrameEvent): StreamFrame => ({ event, data, offset: 7 })),
    );
    for (const frame of frames)
      for (const [nth, id] of [...IDS, ...IDS].entries()) {
        const { event, data } = frame;
        const whole = JSON.stringify({ id: id ?? null, event, data, offset: nth });
        expect(textOf(id as string, frame, nth)).toBe(whole);
      }
  });

  it('makes the JSON of what all readers of a session are told once', () => {
    let made = 0;
    const data = { toJSON: () => `made ${++made} times` };
    const [first, second]: StreamFrame[] = [1, 2].map((offset) => ({ event: 'text', data, offset }));
    const textOf = createFrameText();
    for (let id = 0; id < 50; id++) textOf(id, first as StreamFrame, 1);
    expect(made).toBe(1);
    expect(textOf(50, second as StreamFrame, 2)).toContain('made 2 times');
  });
});
