import { SOCKET_METHODS, STREAM_FRAMES } from '@antiphon/contracts/reference';
import { EngineStatusChange } from '@antiphon/contracts/gateway';
import type { SocketMethod } from '@antiphon/contracts/reference';
import type { JsonObject } from '@antiphon/kernel';
import { jsonSchemaOf } from './json-schema.js';

const ID = {
  type: ['string', 'number', 'null'],
  description: 'Chosen by the client; answers and frames carry it.',
};

const keyOf = (name: string): string => name.replaceAll('.', '_');

const requestMessage = ({ name, summary, params }: SocketMethod): JsonObject => ({
  name,
  summary,
  payload: {
    type: 'object',
    required: ['method'],
    properties: { id: ID, method: { const: name }, params: jsonSchemaOf(params, 'input') },
  },
});

const answerMessage = ({ name, answer }: SocketMethod): JsonObject => ({
  name: `${name} answer`,
  payload:
    answer === 'stream'
      ? { $ref: '#/components/schemas/StreamFrame' }
      : {
          type: 'object',
          required: ['id', 'result'],
          properties: { id: ID, result: jsonSchemaOf(answer, 'output') },
        },
});

const streamFrame = (): JsonObject => ({
  oneOf: Object.entries(STREAM_FRAMES).map(([event, { summary, data }]) => ({
    type: 'object',
    description: summary,
    required: ['id', 'event', 'data', 'offset'],
    properties: {
      id: ID,
      event: { const: event },
      data: jsonSchemaOf(data, 'output'),
      offset: { type: 'integer', description: 'Only grows within a session; `session.resume` takes it up.' },
    },
  })),
});

const ERROR: JsonObject = {
  type: 'object',
  required: ['id', 'error'],
  properties: {
    id: ID,
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: { code: { type: 'integer' }, message: { type: 'string' }, data: { type: 'object' } },
    },
  },
};

const ENGINE_NEWS: JsonObject = {
  name: 'engine news',
  summary: 'An engine that the gateway needs cannot be reached, or can be again. Comes unasked.',
  payload: jsonSchemaOf(EngineStatusChange, 'output'),
};

const ref = (path: string): JsonObject => ({ $ref: path });

/** AsyncAPI 3 of `/ws`, made from the contracts that check the frames. */
export const asyncApiDocument = (version: string): JsonObject => ({
  asyncapi: '3.0.0',
  info: { title: 'Antiphon', version, license: { name: 'Apache-2.0' } },
  channels: {
    ws: {
      address: '/ws',
      messages: Object.fromEntries([
        ...SOCKET_METHODS.map((method) => [keyOf(method.name), requestMessage(method)] as const),
        ...SOCKET_METHODS.map((method) => [`${keyOf(method.name)}_answer`, answerMessage(method)] as const),
        ['engine_news', ENGINE_NEWS],
        ['error', { name: 'error answer', payload: ref('#/components/schemas/Error') }],
      ]),
    },
  },
  operations: {
    engine_news: {
      action: 'send',
      channel: ref('#/channels/ws'),
      messages: [ref('#/channels/ws/messages/engine_news')],
    },
    ...Object.fromEntries(
      SOCKET_METHODS.map(({ name, summary }) => [
        keyOf(name),
        {
          action: 'receive',
          summary,
          channel: ref('#/channels/ws'),
          messages: [ref(`#/channels/ws/messages/${keyOf(name)}`)],
          reply: {
            channel: ref('#/channels/ws'),
            messages: [
              ref(`#/channels/ws/messages/${keyOf(name)}_answer`),
              ref('#/channels/ws/messages/error'),
            ],
          },
        },
      ]),
    ),
  },
  components: { schemas: { StreamFrame: streamFrame(), Error: ERROR } },
});
