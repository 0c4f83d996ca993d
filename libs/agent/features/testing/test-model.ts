import { createHash } from 'node:crypto';
import type { ModelAnswer, ModelPort, ModelRequest, ModelSink } from '@antiphon/providers-domain';
import { ModelFailure } from '@antiphon/providers-domain';

export type Reply = (request: ModelRequest, sink: ModelSink, call: number) => Promise<ModelAnswer>;

/** A scripted model that records its requests. */
export interface TestModel extends ModelPort {
  readonly requests: ModelRequest[];
  reply: Reply;
}

export const USAGE = { inputTokens: 10, outputTokens: 5 };

/** Returns the hash of the prompt of a request: two calls of one turn have an equal one. */
export const promptHashOf = ({ system, messages, tools }: ModelRequest): string =>
  createHash('sha256').update(JSON.stringify({ system, messages, tools })).digest('hex');

export const says = (text: string): ModelAnswer => ({
  text,
  thought: '',
  toolCalls: [],
  finishReason: 'stop',
  usage: USAGE,
});

export const asksFor = (
  ...calls: { name: string; input?: ModelAnswer['toolCalls'][number]['input'] }[]
): ModelAnswer => ({
  text: '',
  thought: '',
  toolCalls: calls.map(({ name, input = {} }, index) => ({ providerCallId: `call_${index}`, name, input })),
  finishReason: 'tool_calls',
  usage: USAGE,
});

export const streams =
  (...deltas: string[]): Reply =>
  async (_request, sink) => {
    for (const delta of deltas) {
      sink.onText(delta);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return says(deltas.join(''));
  };

/** Streams `beginning` and then hangs until its signal aborts. */
export const hangs =
  (beginning = '', begun: () => void = () => undefined): Reply =>
  (request, sink) =>
    new Promise((_, reject) => {
      if (beginning !== '') sink.onText(beginning);
      const stop = () =>
        reject(
          new ModelFailure({ reason: 'cancelled', message: 'cancelled', dispatched: true, retryable: false }),
        );
      request.signal.addEventListener('abort', stop, { once: true });
      begun();
    });

export const createTestModel = (): TestModel => {
  const requests: ModelRequest[] = [];
  const model: TestModel = {
    requests,
    reply: streams('hello ', 'there'),
    complete: (request, sink) => {
      requests.push(request);
      return model.reply(request, sink, requests.length);
    },
    open: () => Promise.resolve(),
    knows: () => true,
    inputBound: () => 100,
    inputsOf: () => ({ images: true, documents: true, contextWindow: 32_768 }),
    limitsOf: () => ({ maxOutputTokens: 1_000, longestMs: 0, tries: 3 }),
    kindOf: () => 'scripted',
    connectedKindOf: () => null,
  };
  return model;
};
