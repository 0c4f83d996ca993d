import { isTurnEnd } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { InFlight } from '@antiphon/agent-domain';

/** What a driver has begun once it has appended these events itself. */
export const trackInFlight = (hands: InFlight, events: readonly SessionEvent[]): InFlight => {
  let { attempt } = hands;
  let calls = new Set(hands.calls);
  for (const { type, data } of events) {
    if (type === 'ModelCallStarted') ({ attempt } = data);
    else if (type === 'ToolCallRequested' || type === 'ToolCallClaimed') calls.add(data.callId);
    else if (isTurnEnd(type)) calls = new Set();
  }
  return { attempt, calls };
};
