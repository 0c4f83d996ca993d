import { ContextPanel } from '../why/context-panel.js';
import { ContextTable } from '../why/context-shares.js';
import { CONTEXT, EXPLANATION, HOSTILE_CONTEXT, PARTIAL_CONTEXT, TRANSCRIPT } from './context-samples.js';
import { TURN } from './samples.js';

const CONTEXTS = [CONTEXT, HOSTILE_CONTEXT, PARTIAL_CONTEXT];
const choose = (): void => undefined;

/** Shows the context of a model call: whole, long and hostile, and with parts that are missing. */
export const ContextStates = () => (
  <>
    {CONTEXTS.map((view) => (
      <ContextTable key={view.tokens} view={view} choose={choose} />
    ))}
    <ContextPanel sessionId="sample" transcript={TRANSCRIPT} turn={TURN} explanation={EXPLANATION} />
  </>
);
