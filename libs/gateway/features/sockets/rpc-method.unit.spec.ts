import { describe, expect, it } from '@jest/globals';
import { ChatSendParams } from '@antiphon/contracts/gateway';
import { conflict } from '@antiphon/kernel';
import { defineMethod, type RpcCall } from './rpc-method.js';
import { rpcError } from './rpc-protocol.js';

const method = defineMethod('chat.send', ChatSendParams, () => Promise.resolve('accepted'));
const VALID = { channel: 'web', account: 'main', peer: 'alice', content: 'hello' };

const errorOf = async (params: Record<string, unknown>) => {
  const error = await method
    .handle({ params } as RpcCall<Record<string, unknown>>)
    .then(() => undefined)
    .catch((thrown: unknown) => thrown);
  return rpcError(error, 'request-1');
};

describe('params of a method', () => {
  it.each(['channel', 'account', 'peer', 'content'])(
    'names the missing field %s in the error',
    async (field) => {
      const { [field]: _removed, ...params } = VALID as Record<string, unknown>;
      expect(await errorOf(params)).toEqual({
        code: -32602,
        message: `invalid params for chat.send: ${field} is required`,
        data: { code: 'GATEWAY.INVALID_PARAMS', fields: [field], requestId: 'request-1' },
      });
    },
  );

  it('names every invalid field and every unknown field', async () => {
    const { code, message, data } = await errorOf({ ...VALID, peer: 7, content: '', pear: 'x' });
    expect(code).toBe(-32602);
    expect(message).toMatch(/peer: .*; content: .*; unknown field pear/);
    expect(data['fields']).toEqual(['peer', 'content', '']);
  });

  it('passes valid params to the handler', async () =>
    expect(await method.handle({ params: VALID } as unknown as RpcCall<Record<string, unknown>>)).toBe(
      'accepted',
    ));
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
