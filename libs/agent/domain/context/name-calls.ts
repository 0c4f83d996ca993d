import type { TurnStep } from '../session/session-state.js';

/** What every vendor accepts as the id of a tool call. */
const PORTABLE_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Ids of tool calls within one request, by `callId`. */
export type CallNames = ReadonlyMap<string, string>;

/**
 * Names every tool call of these turns once: the model's own id where it is usable and new, ours otherwise,
 * since models repeat their ids and some give none.
 */
export const nameCalls = (turns: readonly { readonly steps: readonly TurnStep[] }[]): CallNames => {
  const names = new Map<string, string>();
  const used = new Set<string>();
  for (const { callId, providerCallId } of turns.flatMap(({ steps }) =>
    steps.flatMap(({ calls }) => calls),
  )) {
    const id = PORTABLE_ID.test(providerCallId) && !used.has(providerCallId) ? providerCallId : callId;
    used.add(id);
    names.set(callId, id);
  }
  return names;
};
