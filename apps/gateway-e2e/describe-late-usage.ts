import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { textOf } from '@antiphon/testing/client';
import { startHttpProvider, type HttpProvider } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { readEvents, runCli, waitForValue, type LoggedEvent } from './stack-under-test.js';

/** Agent of an OpenRouter at this address. */
export const routerConfig = (url: string): string => `
[[providers]]
name = "router"
kind = "openrouter"
base_url = "${url}/api/v1"
api_key_env = "E2E_PROVIDER_KEY"

[[agents]]
id = "routed"
workspace = "*"
provider = "router"
model = "anthropic/claude-sonnet-4.5"
`;

/** A fake OpenRouter: the first call breaks after its first text, and each usage comes later. */
export class FakeRouter {
  private calls = 0;
  /** Generations that it has counted. It answers 404 for the others. */
  readonly counted = new Set<string>();

  private constructor(
    readonly provider: HttpProvider,
    private readonly asked: string[],
  ) {}

  static async start(): Promise<FakeRouter> {
    const asked: string[] = [];
    const provider = await startHttpProvider(({ path, method }, response) => {
      const id = URL.parse(path, 'http://it')?.searchParams.get('id') ?? '';
      if (method === 'GET') {
        asked.push(id);
        const usage = { native_tokens_prompt: 40, native_tokens_completion: 2 };
        const isKnown = router.counted.has(id);
        response.writeHead(isKnown ? 200 : 404, { 'content-type': 'application/json' });
        response.end(JSON.stringify(isKnown ? { data: { id, ...usage } } : { error: { code: 404 } }));
        return;
      }
      const generation = `gen-${++router.calls}`;
      const chunk = (choice: object, more: object = {}): string =>
        `data: ${JSON.stringify({ id: generation, choices: [{ index: 0, ...choice }], ...more })}\n\n`;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`: OPENROUTER PROCESSING\n\n${chunk({ delta: { content: 'fine' } })}`, () => {
        if (router.calls === 1) return void response.destroy();
        const usage = { prompt_tokens: 9, completion_tokens: 1 };
        response.end(`${chunk({ delta: {}, finish_reason: 'stop' }, { usage })}data: [DONE]\n\n`);
      });
    });
    const router: FakeRouter = new FakeRouter(provider, asked);
    return router;
  }

  /** Returns how often the usage of a generation was asked for. */
  countAsked(id: string): number {
    return this.asked.filter((one) => one === id).length;
  }
}

export interface LateUsageWorld {
  readonly stack: () => TestStack;
  readonly router: () => FakeRouter;
  /** Sends a message of a new session. */
  readonly send: (agent: string) => Promise<{ sessionId: string; frames: Parameters<typeof textOf>[0] }>;
}

/** Tests that a vendor's later figure replaces the estimate of a call, in another spec's world. */
export const describeLateUsage = ({ stack, router, send }: LateUsageWorld): void => {
  let connection: Connection;
  beforeAll(async () => {
    connection = await Connection.connect({ address: stack().temporalAddress });
  });
  afterAll(() => connection?.close());

  /** Lets the schedule of the sweep fire until `read` returns a value. */
  const sweepUntil = <T>(what: string, read: () => Promise<T | undefined>): Promise<T> =>
    waitForValue(what, async () => {
      const found = await read();
      const { schedule } = new Client({ connection, namespace: 'antiphon' });
      if (found === undefined) await schedule.getHandle('antiphon/learn-vendor-figures').trigger();
      return found;
    });

  const agentPid = (): number => {
    const agent = stack().stackJson().services.agent[0];
    return agent?.state === 'ready' ? (agent.pid ?? 0) : 0;
  };
  const chargesOf = async (reservationId: unknown): Promise<LoggedEvent[]> => {
    const events = await readEvents(stack(), { stream: `budget-${String(reservationId)}` });
    return events.filter(({ type }) => type !== 'BudgetReserved');
  };
  const estimated = async (): Promise<number> => {
    const response = await fetch(`${stack().gatewayUrl}/api/v1/usage?by=model`);
    const { total } = (await response.json()) as { total: { estimatedTokens?: number } };
    return total.estimatedTokens ?? 0;
  };

  describe('the usage of a broken call that its vendor tells later', () => {
    it('replaces the estimate once, after answers of 404 and kill -9 of the agent', async () => {
      const { sessionId, frames } = await send('routed');
      expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
      const [broken] = await readEvents(stack(), {
        stream: `session-${sessionId}`,
        type: 'ModelCallAborted',
      });
      expect(broken?.data).toMatchObject({ generationId: 'gen-1', usage: null, dispatched: true });
      const { reservationId } = broken?.data ?? {};
      await sweepUntil('a question for the usage', () =>
        Promise.resolve(router().countAsked('gen-1') > 0 || undefined),
      );
      const [settled] = await chargesOf(reservationId);
      expect(settled).toMatchObject({ type: 'BudgetSettled', data: { estimated: true } });
      const before = await estimated();
      const pid = agentPid();
      process.kill(pid, 'SIGKILL');
      router().counted.add('gen-1');
      await waitForValue('the next agent', () =>
        Promise.resolve((agentPid() !== 0 && agentPid() !== pid) || undefined),
      );
      const charges = await sweepUntil('the correction', async () => {
        const all = await chargesOf(reservationId);
        return all.length > 1 ? all : undefined;
      });
      const { inputTokens = 0, outputTokens = 0, microUsd } = settled?.data ?? {};
      const replaced = Number(inputTokens) + Number(outputTokens);
      expect(charges.slice(1)).toMatchObject([
        {
          type: 'BudgetCorrected',
          data: {
            ...{ inputTokens: 40, outputTokens: 2, microUsd: 150 },
            figure: { generationId: 'gen-1', replacedTokens: replaced, replacedMicroUsd: microUsd },
          },
        },
      ]);
      expect(before - (await estimated())).toBe(replaced);
      const { stdout } = await runCli(stack(), ['session', 'explain', sessionId]);
      expect(stdout).toContain('call 1 was charged as an estimate; its vendor counted 40 + 2 tokens');
    });

    it('is asked for no more, and changes nothing a second time', async () => {
      const asked = router().countAsked('gen-1');
      const { sessionId } = await send('routed');
      const [completed] = await readEvents(stack(), {
        ...{ stream: `session-${sessionId}`, type: 'ModelCallCompleted' },
      });
      expect(completed?.data).not.toHaveProperty('generationId');
      expect(router().countAsked('gen-1')).toBe(asked);
      expect(router().countAsked('gen-2')).toBe(0);
      expect(await readEvents(stack(), { type: 'BudgetCorrected' })).toHaveLength(1);
    });
  });
};
