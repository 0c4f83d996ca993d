// Restate: a session is a virtual object, each model call and each tool call is a journaled
// `ctx.run`. Its server calls this process again after it broke. The tool has the strictest policy
// that Restate offers, a single attempt: it refers to errors of the tool, not to a lost process.
import * as restate from '@restatedev/restate-sdk';
import { createChatModel } from '../../lib/chat-completions.mjs';
import { CHARGE_TOOLS, runCall } from './charge-tool.mjs';

const { PROVIDER_URL, PORT } = process.env;
const model = createChatModel(PROVIDER_URL, CHARGE_TOOLS);

const session = restate.object({
  name: 'session',
  handlers: {
    turn: async (ctx, content) => {
      const messages = [{ role: 'user', content }];
      for (;;) {
        const message = await ctx.run('model', () => model.complete(messages));
        messages.push(message);
        if (message.tool_calls === undefined) break;
        for (const call of message.tool_calls)
          messages.push(await ctx.run('tool', () => runCall(call), { maxRetryAttempts: 1 }));
      }
      ctx.set('messages', messages);
      return { text: messages.at(-1).content };
    },
  },
});

await restate.serve({ services: [session], port: Number(PORT) });
process.once('disconnect', () => process.exit(0));
process.send('ready');
