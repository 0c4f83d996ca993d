import { describe, expect, it } from '@jest/globals';
import type { NatsConnection } from '@nats-io/transport-node';
import pg from 'pg';
import { WebSocket } from 'ws';
import { createLogger } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import {
  batchNatsWrites,
  checkPostgresPatch,
  checkWebSocketPatch,
  createFrameBatcher,
  sendInOneWrite,
} from './batch-writes.js';
import { avoidRequestErrors } from './nats-requests.js';

const logsOf = (act: (logger: Logger) => void): unknown[] => {
  const lines: Record<string, unknown>[] = [];
  const sink = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
  act(createLogger({ service: 'agent', sink }));
  return lines.map(({ level, message, library }) => ({ level, message, library }));
};
const inactive = (library: string) => [{ level: 'warn', message: 'library patch inactive', library }];

describe('patches of library internals', () => {
  it('warn when the internals of nats-core have changed, and leave the connection usable', () => {
    const changed = { protocol: { outbound: {} } } as unknown as NatsConnection;
    expect(logsOf((logger) => batchNatsWrites(changed, logger)())).toEqual(inactive('@nats-io/nats-core'));
    expect(logsOf((logger) => avoidRequestErrors(changed, logger))).toEqual(inactive('@nats-io/nats-core'));
  });

  it('warn once when the requests of nats-core have changed, and add them as before', () => {
    const added: object[] = [];
    const connection = { protocol: { muxSubscriptions: { add: (request: object) => added.push(request) } } };
    const [many, changed] = [{ callback: null }, { deferred: {}, mux: {} }];
    const logs = logsOf((logger) => {
      avoidRequestErrors(connection as unknown as NatsConnection, logger);
      for (const request of [many, changed, changed]) connection.protocol.muxSubscriptions.add(request);
    });
    expect(logs).toEqual(inactive('@nats-io/nats-core'));
    expect(added).toEqual([many, changed, changed]);
  });

  it('warn when the internals of ws have changed, and let frames pass', () => {
    class Changed {}
    const socketClass = Changed as unknown as typeof WebSocket;
    expect(logsOf((logger) => checkWebSocketPatch(socketClass, logger))).toEqual(inactive('ws'));
    expect(createFrameBatcher(new Changed() as WebSocket, 1_000)).not.toThrow();
  });

  it('warn when the internals of pg have changed, and let queries pass', () => {
    const changed = { connection: {} } as unknown as pg.PoolClient;
    expect(logsOf((logger) => checkPostgresPatch(changed, logger))).toEqual(inactive('pg'));
    expect(sendInOneWrite(changed, () => 'sent')).toBe('sent');
  });

  it('are active with the installed versions of ws and pg', () => {
    expect(logsOf((logger) => checkWebSocketPatch(WebSocket, logger))).toEqual([]);
    expect(logsOf((logger) => checkPostgresPatch(new pg.Client(), logger))).toEqual([]);
  });
});
