import type { z } from 'zod';
import type { RequestContract } from '@antiphon/contracts/messaging';
import { healthContract } from '@antiphon/contracts/messaging';
import { assembleContext, believedFacts } from '@antiphon/contracts/memory';
import { reserveBudget, settleBudget } from '@antiphon/contracts/metering';
import {
  RESULT_PART_BYTES,
  callTool,
  findCall,
  listTools,
  readHeldResult,
} from '@antiphon/contracts/sandbox';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import { startSubject } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import { processSubject } from '@antiphon/contracts/messaging';
import { isAppError, notFound } from '@antiphon/kernel';

type In<C extends RequestContract<z.ZodType, z.ZodType>> = z.output<C['request']>;
type Out<C extends RequestContract<z.ZodType, z.ZodType>> = z.input<C['reply']>;

/** Scripted services that the agent requests. Each request is recorded. */
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
  /** True if the sandbox asks for permission as soon as it has a call that needs one. */
  beginsCalls: boolean;
  /** Asks the process that made a call for the permission of its first effect. */
  permits: (attemptId: string) => boolean;
  healthy: () => Promise<Out<ReturnType<typeof healthContract>>>;
  /** Returns null when this sandbox process does not know the call, and sends no reply. */
  find: (request: In<typeof findCall>) => Promise<Out<typeof findCall> | null>;
  tools: ToolDescription[];
  /** Large results by call, which the process `holder` hands over. */
  readonly held: Map<string, Buffer>;
  /** Stops the sandbox without a reply to its pending calls. */
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
  description: 'returns its input',
  inputSchema: { type: 'object' },
  idempotent,
  ...(retry ? { retry } : {}),
  moduleDigest: 'digest',
  grants: [],
});

type Script = Omit<Responders, 'stopSandbox' | 'startSandbox' | 'close'>;

interface Subscription {
  unsubscribe(): void;
}

/** Subscribes a scripted service. It sends no reply to a request whose result is null. */
const serve = <Request extends z.ZodType, Reply extends z.ZodType>(
  { connection }: NatsLink,
  contract: RequestContract<Request, Reply>,
  answer: (request: z.output<Request>) => Promise<z.input<Reply> | null>,
): Subscription =>
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

const defaultScript = (): Script => ({
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
  beginsCalls: true,
  permits: () => false,
  tools: [echoTool(true)],
  held: new Map(),
});

const NOT_PERMITTED = {
  ...{ outcome: 'failed' as const, code: 'TOOL.UNAVAILABLE', message: 'not permitted', durationMs: 1 },
};

const serveSandbox = (link: NatsLink, script: Script): Subscription[] => [
  serve(link, listTools, async () => ({ tools: script.tools })),
  serve(link, callTool, (request) => {
    script.asked.tool.push(request);
    const { attemptId } = request;
    const isRefused = script.beginsCalls && attemptId !== undefined && !script.permits(attemptId);
    return isRefused ? Promise.resolve(NOT_PERMITTED) : script.tool(request);
  }),
  serve(link, findCall, (request) => script.find(request)),
  serve(
    link,
    { ...readHeldResult, subject: processSubject(readHeldResult.subject, 'holder') as `cmd.${string}` },
    async ({ callId, offset }) => {
      const part = script.held.get(callId)?.subarray(offset, offset + RESULT_PART_BYTES);
      if (!part) throw notFound('SANDBOX.RESULT_GONE', 'gone');
      return { data: part.toString('base64') };
    },
  ),
  serve(link, healthContract('sandbox'), () => script.healthy()),
];

const serveOthers = (link: NatsLink, script: Script): Subscription[] => [
  serve(link, assembleContext, (request) => {
    script.asked.assemble.push(request);
    return script.assemble(request);
  }),
  serve(link, believedFacts, (request) => script.believed(request)),
  serve(link, reserveBudget, (request) => {
    script.asked.reserve.push(request);
    return script.reserve(request);
  }),
  serve(link, settleBudget, async (request) => {
    script.asked.settle.push(request);
    return { status: 'settled' as const };
  }),
];

export const createResponders = (link: NatsLink): Responders => {
  let sandbox: Subscription[] = [];
  const responders: Responders = {
    ...defaultScript(),
    startSandbox: async () => {
      sandbox = serveSandbox(link, responders);
      link.connection.publish(startSubject('sandbox'));
      await link.connection.flush();
    },
    stopSandbox: async () => {
      for (const subscription of sandbox.splice(0)) subscription.unsubscribe();
      await link.connection.flush();
    },
    close: () => {
      for (const subscription of [...sandbox, ...others]) subscription.unsubscribe();
    },
  };
  const others = serveOthers(link, responders);
  return responders;
};
