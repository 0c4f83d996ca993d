import { AGENT_FRAMES, EngineStatusChange } from '@antiphon/contracts/gateway';
import { EVENT_FRAMES, SOCKET_METHODS, STREAM_FRAMES } from '@antiphon/contracts/reference';
import type { SocketMethod } from '@antiphon/contracts/reference';
import type { JsonObject, JsonValue } from '@antiphon/kernel';
import { jsonSchemaOf } from './json-schema.js';

const ID = {
  type: ['string', 'number', 'null'],
  description: 'Id that the client chose for its request. Responses and stream frames carry it.',
};

const DESCRIPTION = `The WebSocket API of an Antiphon gateway, at \`/ws\`. Frames are JSON text.

A request is \`{"id":1,"method":"…","params":{…}}\`. Its response is \`{"id":1,"result":…}\`,
\`{"id":1,"error":{"code":…,"message":"…","data":{…}}}\` (JSON-RPC 2.0 codes), or a stream of frames
\`{"id":1,"event":"…","data":…,"offset":N}\` that ends with \`done\`. Offsets grow within a session; \`session.resume\`
continues after one.

If a token is configured, send \`Authorization: Bearer\` on the upgrade or \`connect\` as the first frame. A frame over
1 MiB or 64 levels deep gets an error; a frame over 4 MiB closes the connection with 1009.`;

const keyOf = (name: string): string => name.replaceAll('.', '_');
const ref = (path: string): JsonObject => ({ $ref: path });
const messageRef = (name: string): JsonObject => ref(`#/channels/ws/messages/${name}`);

const requestMessage = ({ name, summary, description, params, example }: SocketMethod): JsonObject => ({
  name,
  title: `${name} request`,
  summary,
  description,
  payload: {
    type: 'object',
    required: ['method'],
    properties: { id: ID, method: { const: name }, params: jsonSchemaOf(params, 'input') },
  },
  examples: [{ payload: { id: 1, method: name, params: example.params as JsonValue } }],
});

const frameExamples = (): JsonObject[] =>
  Object.entries(STREAM_FRAMES).map(([event, { summary, example }], i) => ({
    name: event,
    summary,
    payload: { id: 1, event, data: example as JsonValue, offset: 2 ** 20 + i },
  }));

const CURSOR = 'cDEwMjRlMQ';

const eventExamples = (): JsonObject[] =>
  Object.entries(EVENT_FRAMES).map(([event, { summary, example }]) => ({
    name: event,
    summary,
    payload: { id: 1, event, data: example as JsonValue, cursor: CURSOR },
  }));

const eventFrame = (): JsonObject => ({
  description: 'A frame of a subscription to events. `data` depends on `event`.',
  oneOf: Object.entries(EVENT_FRAMES).map(([event, { summary, data }]) => ({
    type: 'object',
    title: event,
    description: summary,
    required: ['id', 'event', 'data', 'cursor'],
    properties: {
      id: ID,
      event: { const: event },
      data: jsonSchemaOf(data, 'output'),
      cursor: { type: 'string', description: 'Pass the last one as `from` to resume.' },
    },
  })),
});

const responseMessage = ({ name, answer, example }: SocketMethod): JsonObject => {
  const title = `${name} response`;
  if (answer === 'stream')
    return {
      name: title,
      title,
      summary: 'Stream frames, up to `done`.',
      payload: ref('#/components/schemas/StreamFrame'),
      examples: frameExamples(),
    };
  if (answer === 'events')
    return {
      name: title,
      title,
      summary: 'Frames of events, until the subscription ends.',
      payload: ref('#/components/schemas/EventFrame'),
      examples: eventExamples(),
    };
  return {
    name: title,
    title,
    payload: {
      type: 'object',
      required: ['id', 'result'],
      properties: { id: ID, result: jsonSchemaOf(answer, 'output') },
    },
    examples: [{ payload: { id: 1, result: example.result as JsonValue } }],
  };
};

const streamFrame = (): JsonObject => ({
  description: 'A frame of a turn. `data` depends on `event`.',
  oneOf: Object.entries(STREAM_FRAMES).map(([event, { summary, data }]) => ({
    type: 'object',
    title: event,
    description: summary,
    required: ['id', 'event', 'data', 'offset'],
    properties: {
      id: ID,
      event: { const: event },
      data: jsonSchemaOf(data, 'output'),
      offset: {
        type: 'integer',
        description: 'Position in the session; it only grows. Pass the last one to `session.resume`.',
      },
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
      properties: {
        code: {
          type: 'integer',
          description:
            'JSON-RPC 2.0 code. -32001 unauthenticated, -32003 forbidden, -32004 not found, -32009 conflict, ' +
            '-32029 over budget or rate, -32050 provider failed, -32053 an engine is down.',
        },
        message: { type: 'string', description: 'What happened. Invalid params are named.' },
        data: { type: 'object', description: 'Stable `code`, `requestId` of the log lines, and details.' },
      },
    },
  },
};

const ERROR_MESSAGE: JsonObject = {
  name: 'error response',
  title: 'error response',
  payload: ref('#/components/schemas/Error'),
  examples: [
    {
      payload: {
        id: 1,
        error: {
          code: -32602,
          message: 'invalid params for chat.send: peer is required',
          data: { fields: ['peer'], code: 'GATEWAY.INVALID_PARAMS' },
        },
      },
    },
  ],
};

const ENGINE_STATUS: JsonObject = {
  name: 'engine status change',
  title: 'engine status change',
  summary: 'An engine became unreachable or reachable again. Sent without a request.',
  payload: jsonSchemaOf(EngineStatusChange, 'output'),
  examples: [
    {
      payload: {
        type: 'gateway.degraded',
        engines: ['postgres'],
        message: 'postgres cannot be reached.',
        since: '2026-11-22T10:15:00.000Z',
      },
    },
  ],
};

/** Typed frames after `agent.subscribe`. */
const AGENT_MESSAGES: Readonly<Record<string, JsonObject>> = Object.fromEntries(
  Object.entries(AGENT_FRAMES).map(([name, schema]) => [
    keyOf(name),
    {
      ...{ name, title: `${name} frame`, summary: schema.description ?? name },
      payload: jsonSchemaOf(schema, 'output'),
    },
  ]),
);

const operationOf = ({ name, summary, description }: SocketMethod): JsonObject => ({
  action: 'receive',
  title: name,
  summary,
  description,
  channel: ref('#/channels/ws'),
  messages: [messageRef(keyOf(name))],
  reply: {
    channel: ref('#/channels/ws'),
    messages: [messageRef(`${keyOf(name)}_answer`), messageRef('error')],
  },
});

/**
 * Returns the AsyncAPI 3 document of `/ws`, generated from the schemas that validate the frames.
 */
export const asyncApiDocument = (version: string, host = '127.0.0.1'): JsonObject => ({
  asyncapi: '3.0.0',
  info: {
    title: 'Antiphon WebSocket API',
    version,
    description: DESCRIPTION,
    license: { name: 'Apache-2.0' },
  },
  servers: { gateway: { host, protocol: 'ws', description: 'This gateway' } },
  channels: {
    ws: {
      address: '/ws',
      description: 'All methods and frames of a client.',
      messages: Object.fromEntries([
        ...SOCKET_METHODS.map((method) => [keyOf(method.name), requestMessage(method)] as const),
        ...SOCKET_METHODS.map((method) => [`${keyOf(method.name)}_answer`, responseMessage(method)] as const),
        ...Object.entries(AGENT_MESSAGES),
        ['engine_news', ENGINE_STATUS],
        ['error', ERROR_MESSAGE],
      ]),
    },
  },
  operations: {
    agent_frames: {
      action: 'send',
      title: 'frames about agents',
      summary: 'Typed frames after `agent.subscribe`.',
      channel: ref('#/channels/ws'),
      messages: Object.keys(AGENT_MESSAGES).map(messageRef),
    },
    ...Object.fromEntries(SOCKET_METHODS.map((method) => [keyOf(method.name), operationOf(method)])),
    engine_news: {
      action: 'send',
      title: 'engine status change',
      summary: 'An engine became unreachable or reachable again.',
      channel: ref('#/channels/ws'),
      messages: [messageRef('engine_news')],
    },
  },
  components: { schemas: { StreamFrame: streamFrame(), EventFrame: eventFrame(), Error: ERROR } },
});
