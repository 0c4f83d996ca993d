import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect } from '@jest/globals';
import type { AgentConfig } from '@antiphon/config';
import { steadyNow } from '../calls/caller-clocks.js';
import { startSandbox } from './sandbox.fixture.spec.js';
import type { TestSandbox } from './sandbox.fixture.spec.js';

const rule = { tool: 'hello', ask: 'always', expiresAfterMs: 1_000, escalateAfterMs: null } as const;
const agents = [
  { id: 'careful', tools: ['hello'], approvals: [rule] },
  { id: 'free', tools: ['hello'], approvals: [] },
] as unknown as readonly AgentConfig[];

/** One cell with tools that reach a server, and an agent whose tool needs an approval. */
export interface CallWorld {
  readonly box: TestSandbox;
  /** Requests that the server got. */
  arrived: number;
  respond: RequestListener;
  /** Begins a case: no requests, and a server that responds. */
  reset(): void;
  close(): Promise<void>;
}

const respond: RequestListener = (_request, response) =>
  void response.setHeader('content-type', 'text/plain').end('ok');

export const startCallWorld = async (): Promise<CallWorld> => {
  const server: Server = createServer((request, response) => {
    world.arrived += 1;
    world.respond(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const egress = {
    resolve: async () => ['93.184.216.34'],
    dial: () => connect((server.address() as AddressInfo).port, '127.0.0.1'),
  };
  const box = await startSandbox(
    ['hello', 'fetch-loop', 'fetch-trap', 'fetch-ok', 'loop'],
    { capabilities: ['http:api.example.com'], timeoutMs: 5_000 },
    { egress, agents, cells: 1 },
  );
  const world: CallWorld = {
    ...{ box, arrived: 0, respond },
    reset: () => Object.assign(world, { arrived: 0, respond }),
    close: async () => {
      await box.close();
      server.close();
    },
  };
  return world;
};

/** Deadline of a request that was proven `ageMs` ago. */
export const proven = (ageMs: number, caller = 'agent-1') => {
  const at = steadyNow() - ageMs;
  return { sentAt: { caller, at }, notAfter: at + 3_000 };
};

/** Matches the reply to a call that did not run, for a reason. */
export const unavailable = (reason: string) => ({
  outcome: 'failed',
  code: 'TOOL.UNAVAILABLE',
  message: expect.stringContaining(reason),
});
