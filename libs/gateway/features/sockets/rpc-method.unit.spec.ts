import { describe, expect, it } from '@jest/globals';
import { METHODS } from '@antiphon/contracts/reference';
import { conflict } from '@antiphon/kernel';
import { parseCall, type RawCall } from './rpc-method.js';
import { rpcError } from './rpc-protocol.js';

const parse = (params: Record<string, unknown>) => parseCall(METHODS['chat.send'], { params } as RawCall);
const VALID = { channel: 'web', account: 'main', peer: 'alice', content: 'hello' };

const errorOf = (params: Record<string, unknown>) => {
  try {
    parse(params);
  } catch (error) {
    return rpcError(error, 'request-1');
  }
  throw new Error('the params are valid');
};

describe('params of a method', () => {
  it.each(['channel', 'account', 'peer', 'content'])('names the missing field %s in the error', (field) => {
    const { [field]: _removed, ...params } = VALID as Record<string, unknown>;
    expect(errorOf(params)).toEqual({
      code: -32602,
      message: `invalid params for chat.send: ${field} is required`,
      data: { code: 'GATEWAY.INVALID_PARAMS', fields: [field], requestId: 'request-1' },
    });
  });

  // @shows A5
  it('names every invalid field and every unknown field', () => {
    const { code, message, data } = errorOf({ ...VALID, peer: 7, content: '', pear: 'x' });
    expect(code).toBe(-32602);
    expect(message).toMatch(/peer: .*; content: .*; unknown field pear/);
    expect(data['fields']).toEqual(['peer', 'content', '']);
  });

  it('passes valid params to the handler', () => expect(parse(VALID).params).toEqual(VALID));
});

describe('data of an error', () => {
  it('has only the keys that clients may see', () => {
    const data = { lastOffset: 7, sqlstate: '42501', subject: 'cmd.agent.x', stderr: 'secret' };
    expect(rpcError(conflict('GATEWAY.OFFSET_AHEAD', 'ahead', { data }), 'request-1').data).toEqual({
      lastOffset: 7,
      code: 'GATEWAY.OFFSET_AHEAD',
      requestId: 'request-1',
    });
  });
});
