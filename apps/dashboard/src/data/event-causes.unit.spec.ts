import { describe, expect, it } from '@jest/globals';
import type { LogEvent } from '@antiphon/client';
import { causesOf } from './event-causes.js';

const event = (position: number, metadata: object = {}): LogEvent =>
  ({ position, eventId: `e${position}`, metadata }) as unknown as LogEvent;
const positions = (events: readonly LogEvent[]): number[] => events.map(({ position }) => position);

describe('the causes of an event', () => {
  const asked = event(5, { causationId: 'e2', correlationId: 'request-1' });

  it('are the event before it that it names, and the later ones that name it', () => {
    const after = [event(6, { causationId: 'e5' }), event(7, { correlationId: 'request-1' })];
    const { cause, effects, isByRequest } = causesOf(asked, [event(4), event(2)], after);
    expect([cause?.position, positions(effects), isByRequest]).toEqual([2, [6], false]);
  });

  it('are the later events of its request where no event names it', () => {
    const after = [event(6, { correlationId: 'request-2' }), event(7, { correlationId: 'request-1' })];
    const { cause, effects, isByRequest } = causesOf(asked, [event(4)], after);
    expect([cause, positions(effects), isByRequest]).toEqual([null, [7], true]);
  });

  it('are none of an event without an origin', () => {
    const { cause, effects, isByRequest } = causesOf(event(5), [event(4)], [event(6)]);
    expect([cause, effects, isByRequest]).toEqual([null, [], false]);
  });
});
