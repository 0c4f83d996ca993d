import type { z } from 'zod';
import type { RequestContract } from '@antiphon/contracts/messaging';
import { healthContract } from '@antiphon/contracts/messaging';
import { assembleContext, believedFacts } from '@antiphon/contracts/memory';
import { reserveBudget, settleBudget } from '@antiphon/contracts/metering';
import { callTool, findCall, listTools } from '@antiphon/contracts/sandbox';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import type { NatsLink } from '@antiphon/messaging';
import { isAppError } from '@antiphon/kernel';

type In<C extends RequestContract<z.ZodType, z.ZodType>> = z.output<C['request']>;
type Out<C extends RequestContract<z.ZodType, z.ZodType>> = z.input<C['reply']>;

/** The services that the agent asks, as a spec wants them to answer; each request is kept. */
export interface Responders {
  readonly asked: {
    readonly assemble: In<typeof assembleContext>[];
    readonly reserve: In<typeof reserveBudget>[];
    readonly settle: In<typeof settleBudget>[];
    readonly tool: In<typeof callTool>[];
  };
  assemble: (request: In<typeof assembleContext>) => Promise<Out<typeof assembleContext>>;
  believed: (request: In<typeof believedFacts>) => Promise<Out<typeof believedFacts>>;
  reserve: (request: In<typeof reserveBudget>) => Promise<Out<typeof reserveBudget>>;
  tool: (request: In<typeof callTool>) => Promise<Out<typeof callTool>>;
  healthy: () => Promise<Out<ReturnType<typeof healthContract>>>;
  /** Null: this sandbox process does not know the call, and is silent. */
  find: (request: In<typeof findCall>) => Promise<Out<typeof findCall> | null>;
  tools: ToolDescription[];
  /** No sandbox process is there any more; what it was doing is never answered. */
  stopSandbox(): Promise<void>;
  startSandbox(): Promise<void>;
  close(): void;
}

export const echoTool = (
  idempotent: boolean,
  name = 'echo',
  retry?: ToolDescription['retry'],
): ToolDescription => ({
  name,
  description: 'answers its input',
  inputSchema: { type: 'object' },
  idempotent,
  ...(retry ? { retry } : {}),
  moduleDigest: 'digest',
  grants: [],
});

export const createResponders = (link: NatsLink): Responders => {
  const { connection } = link;
  const serve = <Request extends z.ZodType, Reply extends z.ZodType>(
    contract: RequestContract<Request, Reply>,
    answer: (request: z.output<Request>) => Promise<z.input<Reply> | null>,
  ) =>
    connection.subscribe(contract.subject, {
      callback: (_error, message) => {
        const request = contract.request.parse(message.json());
        answer(request).then(
          (result) => result !== null && message.respond(JSON.stringify({ ok: true, result })),
          (error: unknown) => {
            if (!isAppError(error)) throw error;
            const { kind, code, message: text, data } = error;
            message.respond(JSON.stringify({ ok: false, error: { kind, code, message: text, data } }));
          },
        );
      },
    });
  let sandbox: { unsubscribe(): void }[] = [];

  const responders: Responders = {
    asked: { assemble: [], reserve: [], settle: [], tool: [] },
    assemble: async ({ atLeast }) => ({ soul: null, facts: [], tokens: 0, version: atLeast }),
    believed: async () => ({ facts: [] }),
    reserve: async ({ reservationId, maxOutputTokens }) => ({
      granted: true,
      reservationId,
      maxOutputTokens,
      price: { inputMicroUsdPerMtok: 1_000_000, outputMicroUsdPerMtok: 2_000_000 },
    }),
    tool: async ({ input }) => ({
      outcome: 'completed',
      content: JSON.stringify(input),
      isError: false,
      moduleDigest: 'digest',
      durationMs: 1,
    }),
    healthy: async () => ({
      ...{ service: 'sandbox' as const, healthy: true, version: '0' },
      ...{ pid: 1, uptimeMs: 1, checks: [] },
    }),
    find: async () => ({ state: 'running' as const }),
    tools: [echoTool(true)],
    startSandbox: async () => {
      sandbox = [
        serve(listTools, async () => ({ tools: responders.tools })),
        serve(callTool, (request) => {
          responders.asked.tool.push(request);
          return responders.tool(request);
        }),
        serve(findCall, (request) => responders.find(request)),
        serve(healthContract('sandbox'), () => responders.healthy()),
      ];
      await connection.flush();
    },
    stopSandbox: async () => {
      for (const subscription of sandbox.splice(0)) subscription.unsubscribe();
      await connection.flush();
    },
    close: () => {
      for (const subscription of [...sandbox, ...others]) subscription.unsubscribe();
    },
  };
  const others = [
    serve(assembleContext, (request) => {
      responders.asked.assemble.push(request);
      return responders.assemble(request);
    }),
    serve(believedFacts, (request) => responders.believed(request)),
    serve(reserveBudget, (request) => {
      responders.asked.reserve.push(request);
      return responders.reserve(request);
    }),
    serve(settleBudget, async (request) => {
      responders.asked.settle.push(request);
      return { status: 'settled' as const };
    }),
  ];
  return responders;
};
