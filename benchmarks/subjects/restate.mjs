// Restate: a session is a virtual object with its history in its state, and a turn is an invocation
// of it. Each model call and each tool call is a journaled `ctx.run`. Turns of one session run in
// order. Its server is a process of its own; the service runs in the process of its caller.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as restate from '@restatedev/restate-sdk';
import * as clients from '@restatedev/restate-sdk-clients';
import { assertAnswer, createChatModel } from '../lib/chat-completions.mjs';
import { driveTurns } from '../lib/drive-turns.mjs';
import { costOf, familyOf } from '../lib/process-cost.mjs';
import { freePort, startRestateServer } from '../lib/restate-server.mjs';

const sessionOf = (model) =>
  restate.object({
    name: 'session',
    handlers: {
      turn: async (ctx, content) => {
        const messages = (await ctx.get('messages')) ?? [];
        const from = messages.length;
        messages.push({ role: 'user', content });
        for (;;) {
          const message = await ctx.run('model', () => model.complete(messages));
          messages.push(message);
          if (message.tool_calls === undefined) break;
          for (const { id } of message.tool_calls) {
            const result = await ctx.run('tool', async () => 'result');
            messages.push({ role: 'tool', tool_call_id: id, content: result });
          }
        }
        ctx.set('messages', messages);
        return messages.slice(from);
      },
    },
  });

export const open = async ({ providerUrl }) => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-bench-restate-'));
  const model = createChatModel(providerUrl);
  const session = sessionOf(model);
  const port = await freePort();
  await restate.serve({ services: [session], port });
  const server = await startRestateServer(folder);
  await server.register(`http://127.0.0.1:${port}`);
  const ingress = clients.connect({ url: server.ingressUrl });
  const turn = async ({ session: key, number, content, tools }) => {
    const options = clients.rpc.opts({ idempotencyKey: `${key}/${number}` });
    assertAnswer('Restate', await ingress.objectClient(session, key).turn(content, options), tools);
  };
  const serverMs = () => costOf(familyOf(server.pid())).cpuMs;
  return {
    turns: async (params) => {
      const before = serverMs();
      const result = await driveTurns(turn, params);
      return { ...result, cpuMs: result.cpuMs + serverMs() - before };
    },
    close: async () => {
      await server.stop();
      model.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
