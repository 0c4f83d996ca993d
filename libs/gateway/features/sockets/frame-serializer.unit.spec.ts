import { describe, expect, it } from '@jest/globals';
import { FRAME_EVENTS, type FrameEvent } from '@antiphon/contracts/agent';
import { FrameSerializer, type StreamFrame } from './frame-serializer.js';

const DATA = [
  ...['', 'a "quote", a \\ and a\nline', '\u2028 \ud83d\ude00 \ud800 alone', null, 0.1, true],
  { id: 'call', input: { b: [1, { a: '</script>' }] }, is_error: false },
];
const IDS = [1, 0.5, 'text "quoted"\n', null, undefined];

describe('FrameSerializer', () => {
  it('returns exactly the JSON of id, event, data and offset, in any order of clients', () => {
    const serializer = new FrameSerializer();
    const frames = DATA.flatMap((data) =>
      FRAME_EVENTS.map((event: FrameEvent): StreamFrame => ({ event, data, offset: 7 })),
    );
    for (const frame of frames)
      for (const [nth, id] of [...IDS, ...IDS].entries()) {
        const { event, data } = frame;
        const whole = JSON.stringify({ id: id ?? null, event, data, offset: nth });
        expect(serializer.serialize(id as string, frame, nth)).toBe(whole);
      }
  });

  it('serialises the data of a frame once for all readers of a session', () => {
    let made = 0;
    const data = { toJSON: () => `made ${++made} times` };
    const [first, second]: StreamFrame[] = [1, 2].map((offset) => ({ event: 'text', data, offset }));
    const serializer = new FrameSerializer();
    for (let id = 0; id < 50; id++) serializer.serialize(id, first as StreamFrame, 1);
    expect(made).toBe(1);
    expect(serializer.serialize(50, second as StreamFrame, 2)).toContain('made 2 times');
  });
});
