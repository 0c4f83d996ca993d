import type { ModelPrompt } from '@antiphon/providers-domain';
import { AnswerBuilder } from '../transport/answer-builder.js';
import { runCall } from '../transport/provider-call.js';
import type { CallEnvironment, ProviderAdapter } from '../transport/provider-call.js';
import { builtInReply } from './built-in-reply.js';
import { ScenarioPlayer } from './play-scenario.js';
import type { ScenarioLookup, ScenarioReply } from './scenario.js';
import { countPrompt, viewTurn, type TurnView } from './turn-view.js';

const isMatch = ({ when }: ScenarioReply, turn: TurnView, model: string): boolean =>
  (when.user === undefined || turn.user.includes(when.user)) &&
  (when.step === undefined || when.step === turn.step) &&
  (when.model === undefined || when.model === model);

/**
 * Creates a provider without a model: deterministic, offline, and labelled in each answer. It plays
 * the first matching reply of the scenario, or the built-in one.
 */
export const createScriptedAdapter = (
  environment: CallEnvironment,
  scenarioOf: ScenarioLookup,
): ProviderAdapter => {
  const uses = new Map<ScenarioReply, number>();
  const choose = (prompt: ModelPrompt, turn: TurnView): ScenarioReply => {
    const chosen = scenarioOf(prompt.model)?.replies.find(
      (reply) => isMatch(reply, turn, prompt.model) && (uses.get(reply) ?? 0) < (reply.times ?? Infinity),
    );
    if (chosen === undefined) return builtInReply(turn);
    uses.set(chosen, (uses.get(chosen) ?? 0) + 1);
    return chosen;
  };
  return {
    kind: 'scripted',
    complete: (request, sink) => {
      const turn = viewTurn(request);
      const answer = new AnswerBuilder(sink);
      return runCall(request, environment, {
        complete: (call) =>
          new ScenarioPlayer(turn, request, { answer, call, environment }).play(choose(request, turn)),
        usage: () => null,
      });
    },
    inputBound: countPrompt,
  };
};
