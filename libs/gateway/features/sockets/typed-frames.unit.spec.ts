import { describe, expect, it } from '@jest/globals';
import { parseFrame } from './rpc-protocol.js';

const parse = (value: unknown) => {
  const text = JSON.stringify(value);
  const parsed = parseFrame(text, text.length);
  return parsed.kind === 'requests' ? parsed.requests[0] : parsed.fault;
};

describe('a typed frame', () => {
  it('is the request of the method of its type, without unknown fields', () =>
    expect(
      parse({
        ...{ type: 'chat.send', id: 7, channel: 'web', account: 'main', peer: 'ada', content: 'hello' },
        ...{ colour: 'red', traceparent: '00-1' },
      }),
    ).toEqual({
      id: 7,
      method: 'chat.send',
      params: { channel: 'web', account: 'main', peer: 'ada', content: 'hello' },
      traceparent: '00-1',
    }));

  it('of a method with alternative params has the fields of all of them', () =>
    expect(parse({ type: 'session.new', sessionId: 's', peer: 'p', other: 1 })).toMatchObject({
      method: 'session.new',
      params: { sessionId: 's', peer: 'p' },
    }));

  it.each(['nothing.like.it', '__proto__', 'constructor', ''])('of the unknown type %j is an error', (type) =>
    expect(parse({ type, id: 'a' })).toMatchObject({ code: -32601, id: 'a', isTyped: true }),
  );

  it('leaves a request with a method as it is', () =>
    expect(parse({ id: 1, method: 'ping', type: 'x' })).toMatchObject({ id: 1, method: 'ping' }));
});
