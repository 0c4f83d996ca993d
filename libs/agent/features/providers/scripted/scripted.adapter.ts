import type { ModelPrompt } from '@antiphon/agent-domain';
import type { ProviderAdapter } from '../provider-adapter.js';
import { createAnswerBuilder } from '../transport/answer-builder.js';
import { runCall, type CallEnvironment } from '../transport/run-call.js';
import { builtInReply } from './built-in-reply.js';
import type { ScenarioLookup } from './load-scenarios.js';
import { playReply } from './play-reply.js';
import type { ScenarioReply } from './scenario.js';
import { countPrompt } from './scripted-count.js';
import { viewTurn, type TurnView } from './turn-view.js';

const matches = ({ when }: ScenarioReply, turn: TurnView, model: string): boolean =>
  (when.user === undefined || turn.user.includes(when.user)) &&
  (when.step === undefined || when.step === turn.step) &&
  (when.model === undefined || when.model === model);

/**
 * A provider without a model: deterministic, offline, and labelled in each of its answers.
 * It plays a scenario's first reply that matches, else the built-in one.
 */
export const createScriptedAdapter = (
  environment: CallEnvironment,
  scenarioOf: ScenarioLookup,
  maxOutputTokens: (model: string) => number,
): ProviderAdapter => {
  const used = new Map<ScenarioReply, number>();
  const choose = (prompt: ModelPrompt, turn: TurnView): ScenarioReply => {
    const chosen = scenarioOf(prompt.model)?.replies.find(
      (reply) => matches(reply, turn, prompt.model) && (used.get(reply) ?? 0) < (reply.times ?? Infinity),
    );
    if (chosen === undefined) return builtInReply(turn);
    used.set(chosen, (used.get(chosen) ?? 0) + 1);
    return chosen;
  };
  return {
    kind: 'scripted',
    complete: (request, sink) => {
      const turn = viewTurn(request);
      const answer = createAnswerBuilder(sink);
      return runCall(request, environment, {
        answer: (flight) => playReply(choose(request, turn), turn, request, { answer, flight }),
        usage: () => null,
      });
    },
    inputBound: countPrompt,
    maxOutputTokens,
  };
};
